#!/usr/bin/env python3
"""hanaper archive verify --as-received: DKIM and ARC of stored messages are
judged again from what was kept with them. Prints TAP."""
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
BUILD = os.environ.get("BUILDDIR", ".")
NOW = 1780056000
cases = tap.Cases()


class Store:
    """One message for each of `mail`, a function of the signed one."""

    def __init__(self, *mail, conf=""):
        self.mail, self.conf = mail, conf

    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnr")
        self.dir = self.path("store")
        done = subprocess.run(
            [HANAPER, "key", "generate", "a.example", "--selector", "k",
             "--type", "ed25519", "--key-dir", self.path("keys")],
            capture_output=True, text=True, check=True)
        self.write("zone", done.stdout + "a.example TXT \"v=spf1 -all\"\n")
        conf = self.write(
            "conf", "archive = on\nauthserv_id = mx.example\n" + self.conf)
        plain = self.write("plain", "From: x@a.example\r\nTo: b@e.x\r\n"
                           "Subject: hello\r\n\r\nYes, agreed.\r\n")
        sign = self.write("signing", f"key_dir = {self.path('keys')}\n")
        with open(plain, "rb") as file:
            signed = subprocess.run(
                [HANAPER, "sign", "-c", sign, "--clock", str(NOW - 60)],
                stdin=file, capture_output=True, check=True).stdout
        args = []
        for i, change in enumerate(self.mail):
            name = self.path(f"{i}.eml")
            with open(name, "wb") as file:
                file.write(change(signed))
            args += ["192.0.2.1", "h.example", "x@a.example", "b@e.x", name]
        done = subprocess.run(
            [os.path.join(BUILD, "tests/cli/judge_fill"), self.dir, conf,
             self.path("zone"), str(NOW), *args], capture_output=True,
            text=True)
        assert done.returncode == 0, done
        self.ids = [line.split()[0] for line in done.stdout.splitlines()]
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", newline="") as file:
            file.write(text)
        return self.path(name)

    def verify(self, *args, status=0, directory=None):
        done = subprocess.run([HANAPER, "archive", "verify", "--dir",
                               directory or self.dir, "--as-received", *args],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == status, (args, done)
        return done


def same(mail):
    return mail


def other_body(mail):
    return mail.replace(b"agreed", b"refused")


def unsigned(mail):
    return mail[mail.index(b"From:"):]


@cases.add
def comes_out_as_then():
    with Store(same, other_body, unsigned) as s:
        os.unlink(s.path("zone"))  # nothing is asked
        lines = s.verify(*s.ids).stdout.splitlines()
        found = [line for line in lines if "as it was received" in line]
        tap.check_in("dkim=pass d=a.example s=k", found[0])
        tap.check_in("dkim=fail d=a.example s=k", found[1])
        tap.check_in("dkim=none", found[2])
        tap.check(len(found), 3, "lines")
        done = s.verify("--all")
        tap.check(done.stdout, "", "faults")
        tap.check_in("3 messages checked as they were received", done.stderr)
        one = [json.loads(line) for line in s.verify(
            "--json", s.ids[1]).stdout.splitlines() if line[0] == "{"][0]
        tap.check((one["then"], one["now"], one["same"]),
                  ("fail", "fail", True), "result")


@cases.add
def with_the_limits_of_then():
    def one_more_field(mail):
        return b"X-Extra: 1\r\n" + mail
    # by today's defaults it would pass
    with Store(one_more_field,
               conf="required_signed_headers = from,x-extra\n") as s:
        tap.check_in("dkim=policy d=a.example s=k, as it was received",
                     s.verify(*s.ids).stdout)
    with Store(one_more_field) as s:
        tap.check_in("dkim=pass", s.verify(*s.ids).stdout)


@cases.add
def tells_what_differs():
    with Store(same) as s:
        # a store that claims a pass without any signature
        other = s.path("other")
        done = subprocess.run(
            [os.path.join(BUILD, "tests/cli/fill_store"), other,
             s.path("plain")], capture_output=True, text=True, check=True)
        id_ = done.stdout.split()[0]
        out = s.verify(id_, status=1, directory=other).stdout
        tap.check_in("dkim=none, but it was pass when it was received", out)
        out = s.verify("--all", status=1, directory=other).stdout
        tap.check_in("but it was pass", out)


if __name__ == "__main__":
    tap.run(cases)
