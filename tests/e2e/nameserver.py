"""A name server that lies: UDP and TCP on a port of 127.0.0.1. A name
KIND.hostile.example, or one below it, is answered in the manner of its KIND
(honest, honest1, … as an honest server would);
below `example` there is nothing else, and no PTR record anywhere.

    with Nameserver() as dns:
        dns.address                 # "127.0.0.1@PORT"
"""
import socket
import socketserver
import struct
import threading
import time

A, CNAME, PTR, MX, TXT = 1, 5, 12, 15, 16
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
LATE_SECONDS = 3
SLOW_SECONDS = 0.7
RECORD = "v=spf1 ip4:192.0.2.25 -all"
POLICY = "v=DMARC1; p=reject"


def pack_name(name):
    out = b""
    for label in name.rstrip(".").split("."):
        raw = label.encode("latin-1")
        out += bytes([len(raw)]) + raw
    return out + b"\0"


def read_name(packet, at):
    labels = []
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode("latin-1"))
        at += 1 + packet[at]
    return ".".join(labels), at + 1


def txt(text):
    raw = text.encode("latin-1")
    parts = [raw[i:i + 255] for i in range(0, len(raw), 255)] or [b""]
    return b"".join(bytes([len(p)]) + p for p in parts)


def record(name, kind, data, ttl=60):
    return (pack_name(name) + struct.pack("!HHIH", kind, 1, ttl, len(data))
            + data)


class Question:
    def __init__(self, packet):
        self.id, = struct.unpack("!H", packet[:2])
        self.name, at = read_name(packet, 12)
        self.type, = struct.unpack("!H", packet[at:at + 2])
        self.raw = packet[12:at + 4]
        labels = self.name.lower().split(".")
        self.kind = labels[-3] if labels[-2:] == ["hostile", "example"] and \
            len(labels) > 2 else None
        self.zone = ".".join(labels[-3:])
        self.below = ".".join(labels[:-3])

    def reply(self, records=(), rcode=NOERROR, ident=None, question=None,
              truncated=False):
        flags = 0x8580 | rcode | (0x0200 if truncated else 0)
        return struct.pack("!HHHHHH", self.id if ident is None else ident,
                           flags, 1, len(records), 0, 0) \
            + (self.raw if question is None else question) + b"".join(records)

    def usual(self):
        """What an honest server says."""
        if self.type != TXT or self.below not in ("", "_dmarc"):
            return self.reply() if self.below in ("", "_dmarc") else \
                self.reply(rcode=NXDOMAIN)
        text = POLICY if self.below == "_dmarc" else RECORD
        return self.reply([record(self.name, TXT, txt(text))])

    def spf(self, text, more=None):
        """`text` is the SPF record, `more` finds what stands below."""
        if self.type == TXT and self.below == "":
            return self.reply([record(self.name, TXT, txt(text))])
        return more or self.usual()


def wrongid(q, tcp):
    return q.reply([record(q.name, TXT, txt(RECORD))], ident=q.id ^ 0x5555)


def wrongowner(q, tcp):
    return q.reply([record("other.example", TXT, txt(RECORD))])


def wrongquestion(q, tcp):
    other = pack_name("other.example") + struct.pack("!HH", TXT, 1)
    return q.reply([record("other.example", TXT, txt(RECORD))],
                   question=other)


def garbage(q, tcp):
    return struct.pack("!H", q.id) + b"\x85\x80" + b"\xff" * 60


def nothing(q, tcp):
    return b""


def silent(q, tcp):
    return None


def late(q, tcp):
    time.sleep(LATE_SECONDS)
    return q.usual()


def servfail(q, tcp):
    return q.reply(rcode=SERVFAIL)


def refused(q, tcp):
    return q.reply(rcode=REFUSED)


def loop(q, tcp):
    return q.reply([record(q.name, CNAME, pack_name(q.name))])


def circle(q, tcp):
    to = q.zone if q.below == "x" else "x." + q.zone
    return q.reply([record(q.name, CNAME, pack_name(to))])


def chain(q, tcp):
    n = int(q.below[1:]) if q.below[:1] == "c" else 0
    return q.reply([record(q.name, CNAME,
                           pack_name(f"c{n + 1}.{q.zone}"))])


def fatchain(q, tcp):
    """The whole chain in one answer, and a record at its end."""
    if not tcp:
        return q.reply(truncated=True)
    names = [q.name] + [f"c{i}.{q.zone}" for i in range(300)]
    records = [record(a, CNAME, pack_name(b))
               for a, b in zip(names, names[1:])]
    return q.reply(records + [record(names[-1], TXT, txt(RECORD))])


def pointers(q, tcp):
    """An owner name that points at itself."""
    at = 12 + len(q.raw)
    return q.reply([struct.pack("!HHHIH", 0xc000 | at, TXT, 1, 60, 1) + b"\0"])


def truncated(q, tcp):
    return b"" if tcp else q.reply(truncated=True)


def endless(q, tcp):
    """TCP that begins an answer and does not end it."""
    return b"\0" if tcp else q.reply(truncated=True)


def big(q, tcp):
    if not tcp:
        return q.reply(truncated=True)
    return q.spf("v=spf1 " + "a " * 30000 + "-all")


def many(q, tcp):
    if not tcp:
        return q.reply(truncated=True)
    return q.reply([record(q.name, TXT, txt(RECORD + " " * (i % 50)))
                    for i in range(600)])


def mx1000(q, tcp):
    if q.type == MX:
        if not tcp:
            return q.reply(truncated=True)
        return q.reply([record(q.name, MX, struct.pack("!H", i)
                               + pack_name(f"m{i}.{q.zone}"))
                        for i in range(1000)])
    return q.spf("v=spf1 mx -all")


def bytes8(q, tcp):
    return q.spf("v=spf1 ip4:192.0.2.25 \0\xff\xfe exists:\xe9.example -all")


def nulpolicy(q, tcp):
    if q.below == "_dmarc":
        return q.reply([record(q.name, TXT, txt("v=DMARC1; p=\0reject\xff"))])
    return q.usual()


def longname(q, tcp):
    return q.spf("v=spf1 exists:" + ".".join(["%{d}"] * 20) + " include:"
                 + ".".join(["a" * 60] * 5) + ".example -all")


def macros(q, tcp):
    """An explanation of more macros than libspf2 has room for."""
    if q.below == "e":
        return q.reply([record(q.name, TXT, txt("%{i}%{s}" * 60))])
    return q.spf(f"v=spf1 -all exp=e.{q.zone}")


def includes(q, tcp):
    """Ten includes, each of them slow."""
    if q.below.startswith("i"):
        time.sleep(SLOW_SECONDS)
        return q.reply([record(q.name, TXT, txt("v=spf1 ?all"))])
    return q.spf("v=spf1 " + " ".join(f"include:i{i}.{q.zone}"
                                      for i in range(10)) + " -all")


def recursion(q, tcp):
    return q.spf(f"v=spf1 include:{q.zone} redirect={q.zone}")


KINDS = {f.__name__: f for f in (
    wrongid, wrongowner, wrongquestion, garbage, nothing, silent, late,
    servfail, refused, loop, circle, chain, fatchain, pointers, truncated,
    endless, big, many, mx1000, bytes8, nulpolicy, longname, macros, includes,
    recursion)}


def answer(packet, tcp):
    q = Question(packet)
    if (q.kind or "").startswith("honest"):
        return q.usual()
    kind = KINDS.get(q.kind)
    return kind(q, tcp) if kind else q.reply(rcode=NXDOMAIN)


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        packet, sock = self.request
        out = answer(packet, False)
        if out is not None:
            try:
                sock.sendto(out, self.client_address)
            except OSError:
                pass  # the server was stopped meanwhile


class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        head = self.request.recv(2)
        if len(head) < 2:
            return
        packet = self.request.recv(struct.unpack("!H", head)[0])
        out = answer(packet, True)
        if out is None or out == b"\0":
            if out:
                self.request.sendall(b"\xff\xff\0")
            time.sleep(30)
        elif out:
            self.request.sendall(struct.pack("!H", len(out)) + out)


class UdpServer(socketserver.ThreadingUDPServer):
    daemon_threads = True
    max_packet_size = 65535


class TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Nameserver:
    def __init__(self):
        while True:
            self.udp = UdpServer(("127.0.0.1", 0), Udp)
            self.port = self.udp.server_address[1]
            try:
                self.tcp = TcpServer(("127.0.0.1", self.port), Tcp)
                break
            except OSError:
                self.udp.server_close()
        self.address = f"127.0.0.1@{self.port}"
        for server in (self.udp, self.tcp):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for server in (self.udp, self.tcp):
            server.shutdown()
            server.server_close()


if __name__ == "__main__":
    with Nameserver() as server:
        print(server.address, flush=True)
        threading.Event().wait()
