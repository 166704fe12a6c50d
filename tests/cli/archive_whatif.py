#!/usr/bin/env python3
"""hanaper archive whatif, over messages that were judged and archived with
their DNS answers. Prints TAP."""
import base64
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/judge_fill")
NOW = 1780056000
cases = tap.Cases()

ZONE = """
strict.example TXT "v=spf1 ip4:192.0.2.1 include:_spf.mailer.example -all"
_spf.mailer.example TXT "v=spf1 ip4:192.0.2.2 -all"
_dmarc.strict.example TXT "v=DMARC1; p=reject"
none.example TXT "v=spf1 ip4:192.0.2.1 -all"
_dmarc.none.example TXT "v=DMARC1; p=none"
later.example TXT "v=spf1 include:_spf.mailer.example a:host.later.example -all"
host.later.example A 192.0.2.9
_dmarc.later.example TXT "v=DMARC1; p=reject"
forwarder.example TXT "v=spf1 ip4:192.0.2.7 -all"
"""


class Store:
    """Messages of (ip, domain); the keys of sealing come with `seal`."""

    def __init__(self, *mail, conf=""):
        self.mail, self.conf = mail, conf

    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnw")
        self.dir = self.path("store")
        self.write("zone", ZONE)
        self.write("conf", "archive = on\nauthserv_id = mx.example\n" +
                   self.conf)
        args = []
        for i, (ip, domain) in enumerate(self.mail):
            name = self.write(f"{i}.eml", f"From: a@{domain}\r\nTo: b@e.x"
                              f"\r\nSubject: {i} of {domain}\r\n\r\nHi\r\n")
            args += [ip, "host.example", f"a@{domain}", "b@e.x", name]
        p = subprocess.run([FILL, self.dir, self.path("conf"),
                            self.path("zone"), str(NOW), *args],
                           capture_output=True, text=True)
        assert p.returncode == 0, p
        self.then = [line.split() for line in p.stdout.splitlines()]
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def whatif(self, *args, status=0):
        p = subprocess.run([HANAPER, "archive", "whatif", "-c",
                            self.path("conf"), "--dir", self.dir, "--json",
                            *args], capture_output=True, text=True)
        assert p.returncode == status, p
        self.err = p.stderr
        rows = [json.loads(line) for line in p.stdout.splitlines()]
        self.sums = rows.pop() if rows else None
        return rows


def moves(rows):
    return {r["id"]: (r["before"]["disposition"], r["after"]["disposition"])
            for r in rows}


MAIL = (("192.0.2.1", "strict.example"), ("192.0.2.2", "strict.example"),
        ("192.0.2.3", "strict.example"), ("192.0.2.3", "none.example"))


@cases.add
def with_dmarc_reject():
    with Store(*MAIL) as s:
        assert [t[1] for t in s.then] == ["accept"] * 4, s.then
        rows = s.whatif("--dmarc=reject", status=1)
        assert moves(rows) == {"1.2": ("accept", "reject")}, rows
        assert rows[0]["after"]["cause"] == "dmarc", rows
        assert "dmarc=fail" in rows[0]["after"]["results"], rows
        assert rows[0]["then"] == "accept", rows
        assert "strict.example" in rows[0]["after"]["text"], rows
        assert s.sums == {"judged": 4, "differ": 1, "unclear": 0,
                          "skipped": 0}, s.sums
        assert ", 4 messages" in s.err, s.err
        assert s.whatif("--dmarc=reject", "subject:none") == []
        rows = s.whatif("--set", "spf_reject=fail", status=1)
        assert set(moves(rows)) == {"1.2", "1.3"}, rows
        # what stands on the command line now is no part of the change
        assert s.whatif("-o", "dmarc=reject", "--dmarc=reject") == []
        rows = s.whatif("-o", "dmarc=reject", "--dmarc=note", status=1)
        assert moves(rows) == {"1.2": ("reject", "accept")}, rows


@cases.add
def without_an_include():
    with Store(*MAIL, ("192.0.2.2", "later.example"),
               conf="dmarc = reject\n") as s:
        # a refused message is not archived
        assert [t[1] for t in s.then] == ["accept", "accept", "reject",
                                          "accept", "accept"], s.then
        kept = [t[0] for t in s.then]
        rows = s.whatif("--drop-include", "_spf.mailer.example", status=1)
        by_id = {r["id"]: r for r in rows}
        assert moves([by_id[kept[1]]]) == {kept[1]: ("accept", "reject")}
        # a mechanism behind it was never looked up
        assert by_id[kept[4]]["missing"] == "host.later.example A", rows
        assert len(rows) == 2 and s.sums["unclear"] == 1, s.sums
        assert s.whatif("--drop-include", "other.example") == []


@cases.add
def with_a_trusted_sealer():
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    with Store() as s:
        # a forwarder breaks SPF and seals
        key = s.path("keys")
        os.mkdir(key, 0o750)
        subprocess.run([HANAPER, "key", "generate", "forwarder.example",
                        "--selector", "s1", "--type", "rsa2048", "--key-dir",
                        key], check=True, capture_output=True)
        dns = subprocess.run([HANAPER, "key", "dns", "forwarder.example",
                              "--key-dir", key], check=True,
                             capture_output=True, text=True).stdout
        dns = " ".join(line for line in dns.splitlines()
                       if not line.startswith(";"))
        text = "".join(part for i, part in enumerate(dns.split('"')) if i % 2)
        s.write("zone", ZONE + "s1._domainkey.forwarder.example TXT "
                f'"{text}"\n')
        sealed = seal(s, key + "/forwarder.example/s1.pem")
        p = subprocess.run([FILL, s.dir, s.path("conf"), s.path("zone"),
                            str(NOW), "192.0.2.7", "h", "x@forwarder.example",
                            "b@e.x", sealed], capture_output=True, text=True)
        assert p.returncode == 0 and "accept" in p.stdout, p
        rows = s.whatif("-o", "dmarc=reject", "--trust-sealer",
                        "forwarder.example", status=1)
        assert list(moves(rows).values()) == [("reject", "accept")], rows
        assert "arc=pass" in rows[0]["after"]["results"], rows
        assert s.whatif("-o", "dmarc=reject", "--trust-sealer",
                        "other.example") == []
        assert s.whatif("-o", "trusted_sealers=forwarder.example", "-o",
                        "dmarc=reject", "--trust-sealer",
                        "other.example") == []


def sign(key, lines):
    """An rsa-sha256 signature over canonical fields, by openssl."""
    p = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key],
                       input="\r\n".join(lines).encode(),
                       capture_output=True, check=True)
    return base64.b64encode(p.stdout).decode()


def seal(s, key):
    """A message of strict.example as forwarder.example passes it on (RFC
    8617), in fields that are canonical as they are."""
    head = ["from:a@strict.example", "to:l@forwarder.example", "subject:hi"]
    body = "Hi\r\n"
    tags = "i=1; a=rsa-sha256; d=forwarder.example; s=s1; t=%d" % (NOW - 5)
    bh = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    results = "arc-authentication-results:i=1; fwd.example; spf=pass " \
        "smtp.mailfrom=strict.example"
    message = "arc-message-signature:" + tags + "; c=relaxed/relaxed; h=" \
        f"from:to:subject; bh={bh}; b="
    message += sign(key, head + [message])
    chain = "arc-seal:" + tags + "; cv=none; b="
    chain += sign(key, [results, message, chain])
    with open(s.path("sealed.eml"), "w", encoding="ascii", newline="") as f:
        f.write("\r\n".join([chain, message, results, *head, "", body]))
    return s.path("sealed.eml")


@cases.add
def what_is_no_inbound_mail_is_told():
    with Store(MAIL[2]) as s:
        mbox = s.write("old", "From a@b Thu Jan  1 00:00:00 2026\n"
                       "From: a@strict.example\n\nHi\n")
        subprocess.run([HANAPER, "archive", "import", "--dir", s.dir, mbox],
                       check=True, capture_output=True)
        rows = s.whatif("--dmarc=reject", "larger:0", status=1)
        assert set(moves(rows)) == {"1.0"}, rows
        assert s.sums["skipped"] == 1, s.sums


@cases.add
def a_damaged_message_does_not_stop_the_others():
    with Store(*MAIL[2:3] * 3) as s:
        segment = glob.glob(s.dir + "/families/mail/*/segment")[0]
        with open(segment, "r+b") as f:
            data = f.read()
            at = data.index(b"\xf5HNF", 4096)
            f.seek(at + 128 + 30)
            f.write(b"damage")
        rows = s.whatif("--dmarc=reject", status=1)
        assert s.sums["differ"] + s.sums["unclear"] >= 1, (rows, s.sums)
        assert "damaged" in s.err, s.err


@cases.add
def wrong_calls():
    with Store() as s:
        s.whatif(status=64)
        s.whatif("--dmarc=perhaps", status=78)
        s.whatif("--set", "nonsense", status=64)
        s.whatif("--set", "nonsense=1", status=78)
        s.whatif("--dmarc=reject", "(", status=64)


tap.run(cases)
