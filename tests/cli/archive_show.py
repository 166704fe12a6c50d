#!/usr/bin/env python3
"""hanaper archive show with mail that was made to hurt, on a terminal, and by
queue id. Prints TAP."""
import glob
import os
import pty
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/fill_store")
# Programs built with sanitizers take many times the memory.
MAX_KB = 0 if b"__asan_init" in open(HANAPER, "rb").read() or \
    b"__tsan_init" in open(HANAPER, "rb").read() else 96 * 1024
WAYS = ([], ["--raw"], ["--headers"], ["--structure"], ["--attachment", "1"],
        ["--meta"])
cases = tap.Cases()

MIXED = b"Content-Type: multipart/mixed; boundary=%s\r\n\r\n"
ESCAPES = b"\x1b]0;owned\x07\x1b[2J\xc2\x9b31m\x9b31m\b\x7f\0\r over"


def parts(count):
    return b"Subject: parts\r\n" + MIXED % b"b" + \
        b"--b\r\n\r\nx\r\n" * count + b"--b--\r\n"


def deep(depth):
    return b"Subject: deep\r\n" + b"".join(
        MIXED % (b"b%d" % i) + b"--b%d\r\n" % i for i in range(depth)) + \
        b"\r\nbottom\r\n"


def messages(depth):
    return b"Subject: nested\r\n" + \
        b"Content-Type: message/rfc822\r\n\r\n" * depth + b"bottom\r\n"


def fields(count):
    return b"".join(b"X-%d: y\r\n" % i for i in range(count)) + b"\r\nHi\r\n"


HOSTILE = {
    "parts": parts(100000),
    "depth": deep(20000),
    "messages": messages(20000),
    "fields": fields(200000),
    "one long field": b"Subject: " + b"x" * 3000000 + b"\r\n\r\n",
    "folds": b"Subject: " + b"x\r\n " * 300000 + b"\r\n\r\n",
    "charsets": b"Subject: " + b"=?utf-7?Q?+AGE-?= =?iso-2022-jp?B?GyRC?=\r\n "
                * 20000 + b"\r\nContent-Type: text/plain; charset=utf-7\r\n"
                b"\r\n" + b"+" * 1000000,
    "base64 bomb": b"Content-Transfer-Encoding: base64\r\nContent-Type: text/"
                   b"html\r\n\r\n" + b"PGI+" * 500000,
    "boundaries": b"Content-Type: multipart/mixed; boundary=" + b"-" * 70 +
                  b"\r\n\r\n" + b"-" * 2000000,
    "html": b"Content-Type: text/html\r\n\r\n" + b"<b " * 300000 +
            b"<!--" * 100000,
    "NUL": b"Subject: a\0b\r\n\r\n\0\0\r\0\n" * 3,
    "bare": b"Subject: a\rFrom: b\nTo: c\r\r\n\n\r\n\rbody\r",
    "nothing": b"",
    "no header": b"\n",
    "escapes": b"Subject: " + ESCAPES + b"\r\nFrom: " + ESCAPES + b"\r\n" +
               MIXED % b"b" + b"--b\r\nContent-Disposition: attachment; "
               b"filename=\"" + ESCAPES + b".pdf\"\r\n\r\n" + ESCAPES +
               b"\r\n--b--\r\n",
}


class Store:
    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnv")
        self.dir = self.path("store")
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def fill(self, *mail, prefix=()):
        files = []
        for i, one in enumerate(mail):
            name = self.path(f"{i}.eml")
            with open(name, "wb") as f:
                f.write(one)
            files.append((prefix[i] if prefix else "") + name)
        p = subprocess.run([FILL, self.dir, *files], check=True,
                           capture_output=True, text=True)
        return p.stdout.split()

    def show(self, *args, status=0):
        p = subprocess.run([HANAPER, "archive", "show", "--dir", self.dir,
                            *args], capture_output=True, timeout=60)
        assert p.returncode == status, (args, p.returncode, p.stderr)
        self.err = p.stderr.decode()
        return p.stdout

    def measure(self, *args):
        """Exit status, most memory in KB."""
        child = os.fork()
        if child == 0:
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.execv(HANAPER, [HANAPER, "archive", "show", "--dir", self.dir,
                               *args])
        _, status, usage = os.wait4(child, 0)
        return os.waitstatus_to_exitcode(status), usage.ru_maxrss

    def terminal(self, *args):
        """What is written when the output is a terminal."""
        ours, theirs = pty.openpty()
        p = subprocess.Popen([HANAPER, "archive", "show", "--dir", self.dir,
                              *args], stdout=theirs,
                             stderr=subprocess.PIPE)
        os.close(theirs)
        got = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            got += piece
        p.communicate()
        os.close(ours)
        return got


@cases.add
def any_bytes_come_back_in_bounded_memory():
    with Store() as s:
        ids = s.fill(*HOSTILE.values())
        for (name, mail), i in zip(HOSTILE.items(), ids):
            for way in WAYS:
                status, kb = s.measure(*way, i)
                wanted = (0, 66) if way[:1] == ["--attachment"] else (0,)
                assert status in wanted, (name, way, status)
                assert MAX_KB == 0 or kb < MAX_KB, (name, way, kb)
            assert s.show("--raw", i) == mail, name
            got = s.show("--headers", i)
            assert mail.startswith(got), name
            cut = [p + n for p, n in (
                (mail.find(b"\n\r\n"), 3), (mail.find(b"\n\n"), 2)) if p >= 0]
            if mail and mail[:1] != b"\n" and mail[:2] != b"\r\n":
                assert len(got) == min(cut, default=len(mail)), (name, got)


@cases.add
def what_is_not_looked_into_is_told():
    with Store() as s:
        ids = s.fill(parts(2000), deep(50))
        for i in ids:
            out = s.show("--structure", i)
            assert "not all of it was looked into" in s.err, s.err
            assert 30 < out.count(b"\n") < 1100, out.count(b"\n")


@cases.add
def a_segment_in_a_message_is_a_message():
    with Store() as s:
        s.fill(b"Subject: inner\r\n\r\nx\r\n")
        with open(glob.glob(s.dir + "/families/mail/*/segment")[0],
                  "rb") as f:
            segment = f.read()
        mail = b"Subject: see this\r\n\r\n" + segment + b"\r\n" + segment
        name = s.fill(mail)[0]
        assert s.show("--raw", name) == mail
        subprocess.run([HANAPER, "archive", "reindex", "--dir", s.dir],
                       check=True, capture_output=True)
        out = subprocess.run([HANAPER, "archive", "search", "--count",
                              "--dir", s.dir, "subject:inner"],
                             capture_output=True, text=True)
        assert out.stdout == "1\n", out


@cases.add
def no_escape_sequence_reaches_a_terminal():
    with Store() as s:
        i = s.fill(HOSTILE["escapes"])[0]
        for way in WAYS:
            got = s.terminal(*way, i)
            text = got.decode()  # valid, too
            assert got, way
            assert all(c in "\r\n\t" or " " <= c < "\x7f" or c > "\x9f"
                       for c in text), (way, got)
            assert "\r over" not in text, text
        # nothing is changed on the way into a file
        assert s.show("--raw", i) == HOSTILE["escapes"]
        assert s.show("--attachment", "1", i) == ESCAPES


@cases.add
def terminal_text_stays_text():
    with Store() as s:
        mail = "Subject: Grüße €\r\n\r\nПривет, 世界 🎉 \tTab\r\n".encode()
        i = s.fill(mail)[0]
        got = s.terminal("--raw", i).replace(b"\r\n", b"\n")
        assert got == mail.replace(b"\r\n", b"\n"), got


@cases.add
def by_queue_id():
    with Store() as s:
        a, b, c = s.fill(b"Subject: a\r\n\r\n1\r\n",
                         b"Subject: b\r\n\r\n2\r\n",
                         b"Subject: c\r\n\r\n3\r\n", prefix=(
                             "4cXYz112bz@1780000001:", "ABCDEF@1780000002:",
                             "ABCDEF@1780000003:"))
        assert s.show("--raw", "4cXYz112bz").endswith(b"1\r\n")
        assert b"queue id: 4cXYz112bz\n" in s.show("--meta", "4cXYz112bz")
        rows = s.show("ABCDEF").decode().splitlines()
        assert [r.split()[0] for r in rows] == [c, b], rows
        assert rows[0].endswith("  c"), rows
        assert s.show("--raw", "ABCDEF", status=64) == b""
        assert "2 messages: name one by its id" in s.err and c in s.err
        s.show("ABCDE", status=66)
        s.show('ABCDEF" OR 1', status=64)
        assert a != b


tap.run(cases)
