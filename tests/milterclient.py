"""The MTA's side of the milter protocol (version 6), as much as tests need.

    with Client("unix:/path") as mta:      # or "inet:PORT@HOST"
        mta.connect("mail.example", "192.0.2.1")
        mta.helo("mail.example")
        answer = mta.send("a@b.example", ["c@d.example"], raw)

Header values are handed over as Postfix does: folds with bare LF, the leading
space kept when it was negotiated. Answer.reply is "accept", "reject",
"tempfail", "discard" or a reply line like "550 5.7.1 ..."; Answer.edits holds
("insert", index, name, value), ("change", index, name, value) and ("add",
name, value); Answer.stage says which command got it.
"""
import re
import socket
import struct

ACTIONS, STEPS = 0x1FF, 0x1FFFFF
# command → (flag that it is not wanted, flag that it gets no reply)
FLAGS = {"C": (0x1, 0x1000), "H": (0x2, 0x2000), "M": (0x4, 0x4000),
         "R": (0x8, 0x8000), "T": (0x200, 0x10000), "L": (0x20, 0x80),
         "N": (0x40, 0x40000), "B": (0x10, 0x80000), "E": (0, 0)}
LEADING_SPACE = 0x100000
CHUNK = 65535
WORDS = {"a": "accept", "c": "continue", "r": "reject", "t": "tempfail",
         "d": "discard", "s": "skip"}


class Answer:
    def __init__(self, stage, reply, edits, quarantine=None):
        self.stage, self.reply, self.edits = stage, reply, edits
        self.quarantine = quarantine

    def accepted(self):
        return self.reply in ("accept", "continue")

    def inserted(self, name):
        """Values of fields of this name that were added."""
        return [e[-1].strip() for e in self.edits
                if e[0] in ("insert", "add") and e[-2].lower() == name.lower()]


def text(data):
    return data.decode("utf-8", "surrogateescape")


def octets(value):
    return value if isinstance(value, bytes) else value.encode(
        "utf-8", "surrogateescape")


class Client:
    def __init__(self, where, timeout=60, steps=STEPS):
        kind, _, place = where.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(place)
        else:
            port, _, host = place.partition("@")
            self.socket = socket.create_connection(
                (host or "127.0.0.1", int(port)), timeout)
        self.file = self.socket.makefile("rb")
        self._put("O", struct.pack("!III", 6, ACTIONS, steps))
        command, data = self._get()
        if command != "O":
            raise ConnectionError(f"negotiation got {command!r}")
        _, self.actions, self.steps = struct.unpack("!III", data[:12])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._put("Q")
        except OSError:
            pass
        self.file.close()
        self.socket.close()

    def _put(self, command, data=b""):
        self.socket.sendall(struct.pack("!I", len(data) + 1)
                            + command.encode() + data)

    def _get(self):
        head = self.file.read(4)
        if len(head) < 4:
            raise ConnectionError("the milter hung up")
        body = self.file.read(struct.unpack("!I", head)[0])
        return chr(body[0]), body[1:]

    def macros(self, command, **values):
        data = command.encode()
        for name, value in values.items():
            name = name if len(name) == 1 else "{%s}" % name
            data += octets(name) + b"\0" + octets(value) + b"\0"
        self._put("D", data)

    def step(self, command, data=b""):
        """One command; None when it may go on, else the Answer."""
        unwanted, silent = FLAGS[command]
        if self.steps & unwanted:
            return None
        self._put(command, data)
        if self.steps & silent:
            return None
        edits, quarantine = [], None
        while True:
            reply, data = self._get()
            if reply == "p":
                continue
            if reply in "him":
                edits.append(self._edit(reply, data))
            elif reply == "q":
                quarantine = text(data.rstrip(b"\0"))
            elif reply == "y":
                return Answer(command, text(data.rstrip(b"\0")), edits,
                              quarantine)
            elif reply in WORDS:
                if command != "E" and reply in "cs":
                    return None
                return Answer(command, WORDS[reply], edits, quarantine)
            else:
                raise ConnectionError(f"unexpected reply {reply!r}")

    @staticmethod
    def _edit(reply, data):
        if reply == "h":
            name, value = data.split(b"\0")[:2]
            return ("add", text(name), text(value))
        index = struct.unpack("!I", data[:4])[0]
        name, value = data[4:].split(b"\0")[:2]
        return ("insert" if reply == "i" else "change", index, text(name),
                text(value))

    def connect(self, name, ip, **macros):
        self.macros("C", **dict({"j": "mx.example.org", "v": "Postfix 3.7.11",
                                 "daemon_name": "smtpd"}, **macros))
        if not ip or ip == "unspec":
            data = octets(name) + b"\0U"
        else:
            family = b"6" if ":" in ip else b"4"
            data = octets(name) + b"\0" + family + b"\x9c\x40" \
                + octets(ip) + b"\0"
        return self.step("C", data)

    def helo(self, name):
        return self.step("H", octets(name) + b"\0")

    def send(self, sender, recipients, raw, queue_id="QUEUEID", auth=None,
             chunk=CHUNK):
        """One message (CRLF); the Answer that ended it."""
        macros = {"auth_authen": auth, "auth_type": "PLAIN"} if auth else {}
        self.macros("M", **dict({"i": queue_id}, **macros))
        answer = self.step("M", b"<" + octets(sender) + b">\0")
        for recipient in recipients:
            answer = answer or self.step(
                "R", b"<" + octets(recipient) + b">\0")
        if answer or (answer := self.step("T")):
            return answer
        head, gap, body = raw.partition(b"\r\n\r\n")
        for name, value in self.fields(head):
            if answer := self.step("L", name + b"\0" + value + b"\0"):
                return answer
        if answer := self.step("N"):
            return answer
        for at in range(0, len(body), chunk):
            if answer := self.step("B", body[at:at + chunk]):
                return answer
        self.macros("E", i=queue_id)
        return self.step("E")

    def fields(self, head):
        for line in re.split(rb"\r?\n(?![ \t])", head):
            name, colon, value = line.partition(b":")
            if not colon:
                continue
            value = value.replace(b"\r\n", b"\n")
            if not self.steps & LEADING_SPACE and value[:1] == b" ":
                value = value[1:]
            yield name.rstrip(b" \t"), value
