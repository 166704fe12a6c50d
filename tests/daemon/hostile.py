#!/usr/bin/env python3
"""Any bytes through the milter's socket into an archive whose small disk gets
full: what was accepted is there byte for byte, all else got a 4xx; and a 5xx
only where a limit says so. Needs root, for the disk. Prints TAP."""
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND, nobody  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

cases = tap.Cases()
MB = 1 << 20
# No text: what the index makes of it takes no time.
BINARY = [("Content-Type", " application/octet-stream")]


class SmallDisk(Daemon):
    """Its archive is a file system of a few megabytes."""

    def __init__(self, megabytes, **settings):
        super().__init__(start=False, archive_reserve="2M", **settings)
        os.mkdir(self.path("archive"))
        subprocess.run(["mount", "-t", "tmpfs", "-o",
                        f"size={megabytes}m,mode=750,uid={nobody()},gid=0",
                        "tmpfs", self.path("archive")], check=True)
        self.accepted = {}  # subject: the bytes presented
        self.later = []     # subjects of what got a 4xx
        self.never = []

    def __exit__(self, *args):
        self.kill()
        subprocess.run(["umount", "-l", self.path("archive")], check=False)
        super().__exit__(*args)

    def give(self, name, headers, body, chunk=65535):
        """One message; the code of the reply."""
        headers = [("From", " a@sender.example"), *headers,
                   ("Subject", f" {name}")]
        m = self.connect(timeout=120)
        m.open(**INBOUND)
        reply = m.message("<a@sender.example>", headers=headers, body=body,
                          chunk=chunk)
        m.quit()
        raw = "".join(f"{n}:{v}".replace("\n", "\r\n") + "\r\n"
                      for n, v in headers).encode("latin-1")
        if reply[-1] == (b"c", b""):
            self.accepted[name] = raw + b"\r\n" + body
        elif reply[-1][1].startswith(b"4") or reply[-1][0] == b"t":
            self.later.append(name)
        else:
            assert reply[-1][1].startswith(b"5"), reply
            self.never.append(name)

    def archive(self, *words, status=0):
        run = subprocess.run([HANAPER, "archive", words[0], "-c", self.conf,
                              "--unrecorded", *words[1:]],
                             capture_output=True, timeout=120)
        assert run.returncode == status, (words, run.returncode,
                                          run.stderr[-1000:])
        return run.stdout

    def ids(self):
        """Of the messages accepted, as the log has them."""
        found = re.findall(r"action=accept archive=([0-9.]+) ", self.log())
        assert len(found) == len(self.accepted), (found, self.accepted.keys())
        return dict(zip(self.accepted, found))

    def check(self, index=False):
        """Each accepted message is there, byte for byte; and is found, once
        there is an index."""
        for name, one in self.ids().items():
            raw = self.archive("show", "--raw", one)
            assert raw == self.accepted[name], (name, one, raw[:200])
        if index:
            wait_until(lambda: " 0 un-indexed" in self.said(
                "search", "--count", "dir:in"), 60)
            tap.check(int(self.archive("search", "--count", "dir:in")),
                      len(self.accepted), "messages found")

    def said(self, *words):
        return subprocess.run(
            [HANAPER, "archive", words[0], "-c", self.conf, "--unrecorded",
             *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False).stderr


def nested(depth):
    head = [("MIME-Version", " 1.0"),
            ("Content-Type", " multipart/mixed; boundary=b0")]
    body = b"".join(b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d"
                    b"\r\n\r\n" % (n, n + 1) for n in range(depth))
    return head, body


def parts(count):
    return [("Content-Type", " multipart/mixed; boundary=b")], \
        b"--b\r\n\r\nx\r\n" * count + b"--b--\r\n"


def oddities():
    """(name, header fields, body)"""
    noise = random.Random(7)
    yield "nul", [("X-Nul", " a")], b"a\0b\r\n\0\r\n"
    yield "bare", [], b"bare\rCR, bare\nLF, \r\r\n\n\r.\r\n.\r\n..\r\nend"
    yield "eight", [("X-8", " \xff\xfe\x80 \xe4")], bytes(range(256)) * 40
    yield "empty", [], b""
    yield "cr", [], b"\r"
    yield "folds", [("X-Fold", " a\n\t \n  b\n "), ("X-Empty", "")], b"x\r\n"
    yield "depth", *nested(20000)
    yield "parts", *parts(100000)
    yield "names", [("!" * 500, " x")] * 50, b"x\r\n"
    yield "charset", [("Content-Type", " text/plain; charset="
                       + "iso-2022-jp" * 300)], b"\x1b$B" * 20000
    yield "words", [("X-Words", " " + "=?utf-8?b?4pi6?= " * 3000)], b"x\r\n"
    yield "noise", [], noise.randbytes(300000)
    yield "boundary", [("Content-Type", " multipart/mixed; boundary=\""
                        + "-" * 245 + '"')], b"-" * 200000


@cases.add
def any_bytes_come_back():
    with SmallDisk(64) as d:
        d.start()
        for name, headers, body in oddities():
            d.give(name, headers, body)
        for chunk in (1, 7):
            d.give(f"chunks{chunk}", [], b"in\0 pieces\r\n\n\r--\r\n" * 9,
                   chunk)
        # a segment in the mail is no part of the store
        segment = os.path.join(d.path("archive"), "families", "mail")
        segment = os.path.join(segment, os.listdir(segment)[0], "segment")
        with open(segment, "rb") as f:
            mailed = f.read(2 * MB)
        d.give("segment", [], mailed)
        tap.check((d.later, d.never), ([], []), "not accepted")
        d.check(index=True)
        tap.check(d.term(), 0)
        d.start()
        d.check(index=True)
        d.kill()
        d.archive("verify", "--all")


@cases.add
def many_fields():
    with SmallDisk(64, max_header_bytes="16M") as d:
        d.start()
        d.give("fields", [("X", f" {n}") for n in range(200000)], b"x\r\n")
        d.give("after", [], b"x\r\n")
        assert "after" in d.accepted, (d.later, d.never)
        # refused for what it is, or kept: never put off for days
        tap.check(d.later, [], "put off")
        d.check()


@cases.add
def the_disk_gets_full():
    noise = random.Random(11)
    with SmallDisk(24) as d:
        d.start()
        n = 0
        while len(d.later) < 12 and n < 400:
            size = noise.choice((100, 3000, 70000, 900000, 5 * MB))
            d.give(f"full{n}", BINARY, noise.randbytes(size) + b"\0\r\n")
            n += 1
        assert d.accepted and len(d.later) == 12, (n, len(d.accepted))
        tap.check(d.never, [], "refused for good")
        d.check()
        # and it goes on by itself once there is room
        subprocess.run(["mount", "-o", "remount,size=64m",
                        d.path("archive")], check=True)
        d.give("room", [], b"room\r\n")
        for again in range(100):
            if "room" in d.accepted:
                break
            d.later.clear()
            d.give("room", [], b"room\r\n")
        assert "room" in d.accepted, d.log()
        d.check(index=True)
        d.kill()
        d.start()
        d.check(index=True)
        d.kill()
        d.archive("verify", "--all")


@cases.add
def killed_on_a_full_disk():
    noise = random.Random(13)
    with SmallDisk(12) as d:
        d.start()
        n = 0
        while len(d.later) < 4 and n < 100:
            d.give(f"k{n}", BINARY, noise.randbytes(400000))
            n += 1
        assert d.accepted and len(d.later) == 4, (n, len(d.accepted))
        for _ in range(2):
            d.kill()
            d.start()
            d.check()
            d.give("again", [], noise.randbytes(300000))


if __name__ == "__main__":
    tap.run(cases)
