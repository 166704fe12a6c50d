"""A client of the milter protocol, version 6, as an MTA speaks it: for tests
of the daemon and of its milter floor. Everything sent is explicit, every
reply is returned."""
import socket
import struct
import time

ACTIONS_ALL = 0x1ff
STEPS_ALL = 0x1fffff

NOUNKNOWN, NODATA, SKIP = 0x100, 0x200, 0x400
NR_HDR, NR_CONN, NR_HELO, NR_MAIL = 0x80, 0x1000, 0x2000, 0x4000
NR_RCPT, NR_DATA, NR_EOH, NR_BODY = 0x8000, 0x10000, 0x40000, 0x80000
HDR_LEADSPC = 0x100000
# Of an MTA that waits until each has been dealt with.
STEPS_ASKING = STEPS_ALL & ~(NR_CONN | NR_MAIL)

# The reply that ends a command; others before it are changes.
FINAL = b"acdrtys4f"


class Closed(Exception):
    """The daemon closed the connection."""


class Milter:
    def __init__(self, address, timeout=20):
        """address: a path, or (host, port)."""
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.sock = socket.socket(family)
        self.sock.settimeout(timeout)
        self.sock.connect(address)
        if not isinstance(address, str):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.steps = 0
        self.actions = 0
        self.symlist = {}
        self.buffer = b""

    # -- packets

    def send(self, command, data=b""):
        self.sock.sendall(struct.pack("!I", len(data) + 1) + command + data)

    def receive(self):
        while True:
            if len(self.buffer) >= 4:
                size = struct.unpack("!I", self.buffer[:4])[0]
                if len(self.buffer) >= 4 + size:
                    packet = self.buffer[4:4 + size]
                    self.buffer = self.buffer[4 + size:]
                    return packet[:1], packet[1:]
            try:
                more = self.sock.recv(65536)
            except ConnectionError as e:
                raise Closed from e
            if not more:
                raise Closed
            self.buffer += more

    def reply(self):
        """All packets of the answer to a command, the final one last."""
        packets = []
        while True:
            packets.append(self.receive())
            if packets[-1][0] in FINAL and packets[-1][0]:
                return packets

    def silent(self, seconds=0.05):
        """True when nothing comes."""
        old = self.sock.gettimeout()
        self.sock.settimeout(seconds)
        try:
            self.buffer += self.sock.recv(65536) or self.fail()
        except (TimeoutError, socket.timeout):
            return not self.buffer
        finally:
            self.sock.settimeout(old)
        return False

    @staticmethod
    def fail():
        raise Closed

    # -- commands

    def negotiate(self, actions=ACTIONS_ALL, steps=STEPS_ALL, version=6):
        self.send(b"O", struct.pack("!III", version, actions, steps))
        command, data = self.receive()
        assert command == b"O", command
        got = struct.unpack("!III", data[:12])
        rest = data[12:]
        while rest:
            stage = struct.unpack("!I", rest[:4])[0]
            names, rest = rest[4:].split(b"\0", 1)
            self.symlist[stage] = names.decode().split()
        self.actions, self.steps = got[1], got[2]
        return got

    def macros(self, command, **values):
        """`_x=` stands for {x}; one-letter names stand for themselves."""
        data = command
        for name, value in values.items():
            name = name if len(name) == 1 else "{" + name + "}"
            data += name.encode() + b"\0" + value.encode() + b"\0"
        self.send(b"D", data)

    def step(self, command, data, no_reply=0):
        self.send(command, data)
        return None if self.steps & no_reply else self.reply()

    def connect(self, name="client.example", ip="192.0.2.1", port=2525,
                **macros):
        self.macros(b"C", **({"j": "mx.example",
                              "daemon_name": "smtpd"} | macros))
        if ip is None:
            data = name.encode() + b"\0U"
        elif ip.startswith("/"):
            data = name.encode() + b"\0L" + struct.pack("!H", 0) + \
                ip.encode() + b"\0"
        else:
            family = b"6" if ":" in ip else b"4"
            data = name.encode() + b"\0" + family + struct.pack("!H", port) + \
                ip.encode() + b"\0"
        return self.step(b"C", data, NR_CONN)

    def helo(self, name="client.example", **macros):
        if macros:
            self.macros(b"H", **macros)
        return self.step(b"H", name.encode() + b"\0", NR_HELO)

    def mail(self, sender="<a@example.org>", *args, **macros):
        if macros:
            self.macros(b"M", **macros)
        data = b"".join(a.encode() + b"\0" for a in (sender,) + args)
        return self.step(b"M", data, NR_MAIL)

    def rcpt(self, recipient="<b@example.net>"):
        return self.step(b"R", recipient.encode() + b"\0", NR_RCPT)

    def data(self):
        if self.steps & NODATA:
            return None
        return self.step(b"T", b"", NR_DATA)

    def header(self, name, value):
        """`value` as on the wire, with its leading space and LF folds."""
        if not self.steps & HDR_LEADSPC and value.startswith(" "):
            value = value[1:]
        data = name.encode("latin-1") + b"\0" + value.encode("latin-1") + b"\0"
        return self.step(b"L", data, NR_HDR)

    def end_of_header(self):
        return self.step(b"N", b"", NR_EOH)

    def body(self, data):
        return self.step(b"B", data, NR_BODY)

    def end_of_message(self, **macros):
        self.macros(b"E", **({"i": "4ABCDEF"} | macros))
        return self.step(b"E", b"")

    def abort(self):
        self.send(b"A")

    def quit(self):
        self.send(b"Q")
        try:
            while True:
                self.receive()
        except Closed:
            pass
        self.sock.close()

    def close(self):
        self.sock.close()

    # -- whole messages

    def open(self, **kwargs):
        """Negotiate, connect, HELO; the connect reply."""
        negotiation = {k: kwargs.pop(k) for k in ("actions", "steps")
                       if k in kwargs}
        self.negotiate(**({"steps": STEPS_ASKING} | negotiation))
        reply = self.connect(**kwargs)
        if reply is None or reply[-1][0] == b"c":
            self.helo()
        return reply

    def message(self, sender="<a@example.org>", rcpts=("<b@example.net>",),
                headers=(("From", " a@example.org"), ("Subject", " x")),
                body=b"text\r\n", chunk=65535, **macros):
        """MAIL to end of message; the reply to MAIL when that is no
        "continue", else the last one."""
        reply = self.mail(sender, **macros)
        if reply is not None and reply[-1][0] != b"c":
            return reply
        for r in rcpts:
            self.rcpt(r)
        self.data()
        for name, value in headers:
            self.header(name, value)
        self.end_of_header()
        for at in range(0, len(body), chunk):
            self.body(body[at:at + chunk])
        return self.end_of_message()


def wait_until(condition, seconds=20):
    """Poll; AssertionError when it does not become true."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)
