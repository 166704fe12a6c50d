#!/usr/bin/env python3
"""hanaper archive resend, through a command that writes down what it gets.
Prints TAP."""
import os
import re
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
TOP = os.environ.get("BUILDDIR", ".")
FILL = os.path.join(TOP, "tests/cli/fill_store")
JUDGE = os.path.join(TOP, "tests/cli/judge_fill")
cases = tap.Cases()

MAIL = [
    b"Subject: one\r\nTo: list\r\nFrom: x\r\n\r\nFrom here\r\n.\r\nend\r\n",
    b"\0\xff bare\rCR and\nLF\r\r\n, no header, no end\r",
    b"",
    b"Subject: only a header",
]
SENDMAIL = """#!/bin/sh
{ for a in "$@"; do printf '%s\\n' "$a"; done; } >>$OUT/args
cat >>$OUT/mail
exit $(cat $OUT/status)
"""


class Store:
    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hns")
        self.dir = self.path("store")
        self.sendmail = self.path("sendmail")
        with open(self.sendmail, "w", encoding="ascii") as f:
            f.write(SENDMAIL.replace("$OUT", self.top.name))
        os.chmod(self.sendmail, 0o755)
        self.answer(0)
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def answer(self, status):
        with open(self.path("status"), "w", encoding="ascii") as f:
            f.write(str(status))

    def fill(self, *mail):
        files = []
        for i, one in enumerate(mail):
            files.append(self.path(f"{i}.eml"))
            with open(files[-1], "wb") as f:
                f.write(one)
        p = subprocess.run([FILL, self.dir, *files], check=True,
                           capture_output=True, text=True)
        return p.stdout.split()

    def resend(self, *args, status=0):
        """Arguments and bytes that the command got."""
        for name in ("args", "mail"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        p = subprocess.run([HANAPER, "archive", "resend", "--dir", self.dir,
                            "--sendmail", self.sendmail, *args],
                           capture_output=True)
        assert p.returncode == status, p
        self.out, self.err = p.stdout, p.stderr.decode()
        if not os.path.exists(self.path("args")):
            return None, None
        with open(self.path("args"), encoding="utf-8") as f, \
                open(self.path("mail"), "rb") as g:
            return f.read().splitlines(), g.read()


RESENT = re.compile(
    rb"\AResent-Date: \w\w\w, \d\d \w\w\w \d{4} \d\d:\d\d:\d\d \+0000\n"
    rb"Resent-From: (?P<from>[^\n]+)\n(Resent-To: (?P<to>(?:[^\n]|\n )+)\n)?"
    rb"Resent-Message-ID: <[0-9a-f]{24}\.resent@[^>\n]+>\n")


def split(bytes_):
    m = RESENT.match(bytes_)
    assert m, bytes_
    return m, bytes_[m.end():]


@cases.add
def to_an_address():
    with Store() as s:
        ids = s.fill(*MAIL)
        args, bytes_ = s.resend("--from", "op@example.org", "--to", "-x@e.x",
                                "--to", "$touch`x`@e.x", ids[0])
        assert args == ["-i", "-f", "op@example.org", "--", "-x@e.x",
                        "$touch`x`@e.x"], args
        m, rest = split(bytes_)
        assert m["from"] == b"op@example.org"
        assert m["to"] == b"-x@e.x,\n $touch`x`@e.x", m["to"]
        assert rest == MAIL[0].replace(b"\r\n", b"\n"), rest
        assert "handed over for 2 recipients" in s.err, s.err


@cases.add
def odd_addresses_whole_or_not_at_all():
    odd = ['"a b"@e.x', '"a,b;<c>@d"@e.x', r'"a\"b"@e.x', "ä@ö.example",
           "a'b|c&d@e.x"]
    # an MTA would take a part of these for the address
    bad = ["a b@e.x", "a,b@e.x", "a(b)c@e.x", '"a@e.x', "<a@e.x>", "a\nb@e.x",
           '"a\nb"@e.x', "", "x" * 2000]
    with Store() as s:
        ids = s.fill(MAIL[0])
        for one in odd:
            args, bytes_ = s.resend("--to", one, ids[0])
            assert args[4:] == [one], (one, args)
            assert split(bytes_)[0]["to"] == one.encode(), bytes_
        for one in bad:
            assert s.resend("--to", one, ids[0], status=64)[0] is None
            assert "is no address" in s.err, s.err
    rcpts = [f"user{n}@example.net" for n in range(2000)]
    with Store() as s:
        p = subprocess.run([HANAPER, "archive", "add", "--dir", s.dir,
                            "--from", "s@e.x", "--rcpt", "-first@e.x", *odd,
                            "--dir=/x@e.x", "-c/x@e.x", "--", "a b@e.x",
                            *rcpts], input=MAIL[0], check=False,
                           capture_output=True)
        assert p.returncode == 0, p
        args, _ = s.resend("1.0", status=65)
        assert "1 of its recipients are no addresses" in s.err, s.err
        wanted = ["-first@e.x", *odd, "--dir=/x@e.x", "-c/x@e.x", *rcpts]
        got = [a for a in args if "@" in a and not a.startswith("postmaster@")]
        assert got == wanted, (len(got), len(wanted))


@cases.add
def every_byte_but_line_ends():
    with Store() as s:
        ids = s.fill(*MAIL)
        for i, mail in zip(ids, MAIL):
            for how in ([], ["--edited"]):
                _, bytes_ = s.resend("--to", "a@b", *how, i)
                assert split(bytes_)[1] == mail.replace(b"\r\n", b"\n"), i


@cases.add
def to_those_it_was_for():
    with Store() as s:
        ids = s.fill(MAIL[0])
        args, bytes_ = s.resend(ids[0])
        assert args[4:] == ["bcc@example.com"], args
        assert args[2].startswith("postmaster@"), args
        # who got it, blind copies too, is nobody's business
        assert split(bytes_)[0]["to"] is None and b"bcc" not in bytes_
        args, _ = s.resend("--sender", "", ids[0])
        assert args[:4] == ["-i", "-f", "<>", "--"], args
        args, _ = s.resend("--sender", "a@b", ids[0])
        assert args[2] == "a@b", args
        mbox = s.path("mbox")
        with open(mbox, "wb") as f:
            f.write(b"From a@b Thu Jan  1 00:00:00 2026\nSubject: old\n\nx\n")
        subprocess.run([HANAPER, "archive", "import", "--dir", s.dir, mbox],
                       check=True, capture_output=True)
        old = subprocess.run([HANAPER, "archive", "search", "--dir", s.dir,
                              "--format", "{id}", "subject:old"], check=True,
                             capture_output=True, text=True).stdout.strip()
        args, _ = s.resend(old, status=64)
        assert args is None and "give --to" in s.err, s.err


@cases.add
def as_the_recipient_got_it():
    with Store() as s:
        for name, text in (
                ("zone", 'e.org TXT "v=spf1 -all"\n'
                         '_dmarc.e.org TXT "v=DMARC1; p=reject"\n'),
                ("conf", "archive = on\nauthserv_id = mx.e.com\ndmarc = "
                         "quarantine\n"),
                ("in.eml", "Authentication-Results: mx.e.com; dkim=pass\r\n"
                         "X: 1\r\nAuthentication-Results:\r\n mx.e.com; "
                         "spf=pass\r\nFrom: a@e.org\r\nX: 2\r\n\r\nHi\r\n")):
            with open(s.path(name), "w", encoding="ascii", newline="") as f:
                f.write(text)
        subprocess.run([JUDGE, s.dir, s.path("conf"), s.path("zone"),
                        "1780056000", "192.0.2.1", "h", "a@e.org", "b@e.com",
                        s.path("in.eml")], check=True, capture_output=True)
        _, plain = s.resend("--to", "a@b", "1.0")
        with open(s.path("in.eml"), "rb") as f:
            tap.check(split(plain)[1], f.read().replace(b"\r\n", b"\n"))
        _, edited = s.resend("--to", "a@b", "--edited", "1.0")
        rest = split(edited)[1].decode()
        assert rest.startswith("Authentication-Results: mx.e.com;"), rest
        assert "dmarc=fail" in rest and "dkim=pass" not in rest and \
            "spf=pass" not in rest, rest
        assert rest.count("Authentication-Results") == 1, rest
        assert "X-Hanaper-Disposition: quarantine\n" in rest, rest
        assert rest.endswith("X: 1\nFrom: a@e.org\nX: 2\n\nHi\n"), rest


@cases.add
def what_the_command_says_is_told():
    with Store() as s:
        ids = s.fill(*MAIL[:2])
        s.answer(75)
        s.resend("--to", "a@b", *ids, status=75)
        assert s.err.count("ended with status 75") == 2, s.err
        s.sendmail = s.path("nowhere")
        s.resend("--to", "a@b", ids[0], status=69)
        s.sendmail = s.path("sendmail")
        s.answer(0)
        args, _ = s.resend("--to", "a@b", "9.9", ids[0], status=66)
        assert args is not None  # the other one was sent
        s.resend("--to", "a@b", "x", status=64)
        s.resend("--to", "a b", ids[0], status=64)
        s.resend("--to", "a@b\nc", ids[0], status=64)
        s.resend("--from", "a<b", ids[0], status=64)


@cases.add
def a_dry_run_prints_and_sends_nothing():
    with Store() as s:
        ids = s.fill(MAIL[0])
        args, _ = s.resend("--to", "a@b", "--dry-run", ids[0])
        assert args is None
        assert split(s.out)[1] == MAIL[0].replace(b"\r\n", b"\n")
        assert "for a@b" in s.err, s.err


tap.run(cases)
