#!/usr/bin/env python3
"""hanaper sign and verify as a postmaster uses them: exit statuses, line
ends, standard input, JSON, and two verifiers that are not ours."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests"))
import tap  # noqa: E402

HANAPER = os.environ["HANAPER"]
TEXT = (b"From: Ann <ann@example.org>\r\nTo: bob@example.net\r\n"
        b"Subject: hello\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
        b"Message-ID: <1@example.org>\r\n\r\nHi  there, \r\n\r\nbye\r\n")
work = tempfile.TemporaryDirectory()


def path(name):
    return os.path.join(work.name, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def hanaper(*args, stdin=b""):
    return subprocess.run([HANAPER, *args], input=stdin,
                          capture_output=True, timeout=60, check=False)


def setup():
    """Two keys, their zone, a signed message in both line end forms."""
    os.mkdir(path("keys"))
    os.chmod(path("keys"), 0o750)
    for selector, kind in (("rsa", "rsa2048"), ("ed", "ed25519")):
        made = hanaper("key", "generate", "example.org", "--selector",
                       selector, "--type", kind, "--key-dir", path("keys"))
        if made.returncode != 0:
            raise SystemExit(f"Bail out! {made.stderr.decode()}")
    dns = hanaper("key", "dns", "example.org", "--key-dir", path("keys"))
    write("zone", zone_of(dns.stdout) +
          b'example.org TXT "v=spf1 ip4:192.0.2.1 -all"\n'
          b'_dmarc.example.org TXT "v=DMARC1; p=reject"\n')
    write("conf", f"key_dir = {path('keys')}\n".encode())


def zone_of(records):
    """The records `key dns` prints, in the zone-file resolver's form."""
    text = records.decode().replace("(", " ").replace(")", " ")
    out, line = [], ""
    for raw in text.splitlines():
        if raw.startswith(";") or not raw.strip():
            continue
        if raw[0] in " \t":
            line += " " + raw.strip()
        else:
            out.append(line)
            line = raw
    out.append(line)
    records = []
    for line in out:
        if " TXT " in line.replace("\t", " "):
            words = line.split(None, 1)
            data = line[line.index('"'):]
            records.append(f"{words[0].rstrip('.')} TXT {data}\n")
    return "".join(records).encode()


def verify(file, *more, **kw):
    return hanaper("verify", "-c", path("conf"), "--zone", path("zone"),
                   *more, file, **kw)


def signed(text, *more):
    return hanaper("sign", "-c", path("conf"), *more, "-",
                   stdin=text)


def ok(good, what, more=b""):
    if not good:
        raise AssertionError(f"{what}: {more!r}")


def both_keys_sign():
    out = signed(TEXT)
    ok(out.returncode == 0 and out.stdout.endswith(TEXT) and
       out.stdout.count(b"DKIM-Signature:") == 2, "two fields", out)
    ok(out.stdout.count(b"\n") == out.stdout.count(b"\r\n"),
       "CRLF stays CRLF", out.stdout)
    write("signed.eml", out.stdout)
    lf = signed(TEXT.replace(b"\r\n", b"\n"))
    ok(lf.returncode == 0 and b"\r" not in lf.stdout, "LF stays LF", lf)
    write("lf.eml", lf.stdout)


def standard_input_verifies():
    for name in ("signed.eml", "lf.eml"):
        with open(path(name), "rb") as f:
            r = verify("-", "--ip", "192.0.2.1", "--from", "ann@example.org",
                       stdin=f.read())
        ok(r.returncode == 0 and r.stdout.count(b"dkim=pass") == 2, name, r)


def json_tells_all():
    file = path("signed.eml")
    r = verify(file, "--json", "--ip", "192.0.2.1", "--helo", "example.org",
               "--from", "ann@example.org")
    got = json.loads(r.stdout)
    ok([d["result"] for d in got["dkim"]] == ["pass", "pass"] and
       {d["a"] for d in got["dkim"]} == {"rsa-sha256", "ed25519-sha256"},
       "both signatures", r)
    ok(got["dmarc"]["result"] == "pass" and
       got["dmarc"]["policy"] == "reject" and
       got["dmarc"]["domain"] == "example.org", "DMARC", r)
    ok({(s["identity"], s["result"]) for s in got["spf"]} ==
       {("helo", "pass"), ("mailfrom", "pass")}, "SPF", r)
    ok(got["file"] == file and got["arc"]["result"] == "none" and
       "dkim=pass" in got["authentication_results"], "the rest", r)


def json_of_a_refused_message_has_all_members():
    many = b"From: a@example.org\r\n" + b"X: y\r\n" * 200000 + b"\r\nb\r\n"
    long = TEXT + b"x\r\n" * 1000
    for text, *more in ((long, "-o", "max_message_size=1K"), (many,)):
        r = verify(write("large.eml", text), "--json", *more)
        ok(r.returncode == 1, "status", r)
        got = json.loads(r.stdout)
        ok("larger than this site" in got["refused"] and
           got["arc"]["result"] is None and got["dmarc"]["result"] is None and
           got["dkim"] == [] and got["spf"] == [], "members", r)


def a_changed_body_exits_1():
    with open(path("signed.eml"), "rb") as f:
        bad = write("bad.eml", f.read() + b"footer\r\n")
    r = verify(bad, "--json")
    got = json.loads(r.stdout)
    ok(r.returncode == 1 and got["dkim"][0]["result"] == "fail" and
       got["dkim"][0]["reason"] == "body hash did not verify" and
       got["dmarc"]["result"] == "fail", "JSON", r)


def no_signature_exits_1():
    r = verify(write("plain.eml", TEXT))
    ok(r.returncode == 1 and b"dkim=none" in r.stdout, "plain", r)


def several_files_in_one_call():
    r = verify(path("signed.eml"), path("bad.eml"))
    ok(r.returncode == 1 and
       r.stdout.count(b"Authentication-Results") == 2 and
       path("bad.eml").encode() in r.stdout, "two files", r)
    r = verify(path("signed.eml"), path("absent.eml"), path("bad.eml"))
    ok(r.returncode == 66 and
       r.stdout.count(b"Authentication-Results") == 2 and
       b"absent.eml" in r.stderr, "one of three cannot be read", r)


MIME = ("From: Ann <ann@example.org>\r\nTo: bob@example.net\r\n"
        "Subject: dinner at eight\r\nMessage-ID: <2@example.org>\r\n"
        "Date: Mon, 30 Nov 2026 12:00:00 +0000\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: 8bit\r\n\r\n"
        "Gr\u00fc\u00dfe an  alle\r\nAnn\r\n").encode()
# RFC 8463's public key
SHORT = ("MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3"
         "idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACD"
         "fzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLz"
         "BfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB")
CAUSES = [  # canonicalization, what was done, what is said of it
    ("relaxed", b"Ann\r\n", b"Ann\r\n--\r\nthe list\r\n",
     "body changed: 14 octets were added at the end"),
    ("relaxed", b"dinner", b"[list] dinner",
     'header changed: Subject got "[list]"'),
    ("simple", b"Ann\r\n", b"Ann \r\n",
     "body changed: trailing blanks were added"),
    ("simple", b"dinner at", b"dinner  at",
     "header changed: white space was changed"),
    ("simple", b"dinner at", b"dinner\r\n at",
     "header changed: folds were added"),
    ("relaxed", b": 8bit\r\n\r\nGr\xc3\xbc\xc3\x9fe",
     b": quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe",
     "body changed: it was encoded as quoted-printable; header changed: "
     "content-transfer-encoding: 8bit was changed"),
    ("relaxed", b"Content-Transfer-Encoding: 8bit\r\n", b"",
     "header changed: content-transfer-encoding: 8bit was removed"),
    ("relaxed", b"Date: Mon, 30 Nov 2026 12:00:00 +0000\r\n", b"",
     "header changed: date is not there"),
    ("relaxed", b"To: bob", b"Subject: cheap\r\nTo: bob",
     'header changed: a field was added: "Subject"'),
]


def each_cause_is_named():
    def told(raw, *more, zone="zone"):
        return hanaper("verify", "--zone", path(zone), "--json", *more,
                       stdin=raw)

    def diagnosis(r):
        return json.loads(r.stdout)["dkim"][0]["diagnosis"]
    for canon, old, new, want in CAUSES:
        sig = signed(MIME, "--selector", "rsa", "--field",
                     "--canonicalization", f"{canon}/{canon}").stdout
        ok(told(sig + MIME).returncode == 0 and
           diagnosis(told(sig + MIME)) == "", "whole", told(sig + MIME))
        ok(MIME.count(old) == 1, "once", old)
        r = told(sig + MIME.replace(old, new))
        ok(diagnosis(r) == want, want, r)
    sig = signed(MIME, "--selector", "rsa", "--field", "--clock",
                 "1500000000").stdout
    r = told(sig + MIME, "--clock", "1600000000")
    ok(diagnosis(r).startswith("expired ") and
       b"signature expired" in r.stdout, "expired", r)
    made = hanaper("key", "generate", "example.org", "--selector", "rsa",
                   "--key-dir", path("other"))
    ok(made.returncode == 0, "another key", made)
    dns = hanaper("key", "dns", "example.org", "--key-dir", path("other"))
    write("zone2048", zone_of(dns.stdout))
    write("zone1024", f'rsa._domainkey.example.org TXT "p={SHORT}"\n'.encode())
    for zone, want in (
            ("zone2048", "not signed with this key, or b= was damaged"),
            ("zone1024", "not signed with this key: it has 1024 bits, "
                         "b= has 2048")):
        r = told(sig + MIME, "--clock", "none", zone=zone)
        ok(diagnosis(r) == want, want, r)


def several_files_signed():
    good = write("good.eml", TEXT)
    r = hanaper("sign", "-c", path("conf"), good,
                write("nofrom.eml", b"To: x\n\ny\n"), path("absent.eml"), good)
    ok(r.returncode == 66 and r.stdout.count(b"dinner") ==
       2 * TEXT.count(b"dinner") and r.stdout.count(b"DKIM-Signature:") == 4,
       "the others are signed", r)
    r = hanaper("sign", "-c", path("conf"), "--json", good,
                path("nofrom.eml"))
    got = [json.loads(line) for line in r.stdout.splitlines()]
    ok(r.returncode == 65 and [g["file"] for g in got] ==
       [good, path("nofrom.eml")] and [len(g["fields"]) for g in got] ==
       [2, 0] and got[0]["error"] is None and "From" in got[1]["error"],
       "one object a file", r)
    raw = "\r\n".join(got[0]["fields"]).encode() + b"\r\n" + TEXT
    r = hanaper("verify", "--zone", path("zone"), "-", stdin=raw)
    ok(r.stdout.count(b"dkim=pass") == 2, "the fields verify", r)


def age():
    old = write("old", signed(TEXT, "--clock", "1500000000").stdout)
    r = verify(old)
    ok(r.returncode == 1 and b"dkim=policy" in r.stdout and
       b"expired" in r.stdout, "expired", r)
    r = verify(old, "--clock", "1500000001")
    ok(b"dkim=pass" in r.stdout, "judged at its own time", r)
    r = verify(old, "--clock", "none")
    ok(b"dkim=pass" in r.stdout, "judged without age", r)


def one_field():
    r = signed(TEXT, "--field", "--selector", "ed", "--headers",
               "from:subject", "--canonicalization", "simple/simple")
    ok(r.stdout.startswith(b"DKIM-Signature: v=1; a=ed25519-sha256; "
                           b"c=simple/simple;") and
       b"h=from:subject;" in r.stdout, "field", r)


def errors_name_what_is_wrong():
    file = path("signed.eml")
    rows = [
        (66, ("verify", "--zone", path("zone"), path("absent.eml")),
         "absent.eml"),
        (64, ("verify", "--zone", path("zone"), "--ip", "1.2.3", file),
         "--ip"),
        (64, ("verify", "--frobnicate", file), "usage"),
        (78, ("verify", "-o", "dmark=note", file), "dmarc"),
        (65, ("verify", "--zone", write("badzone", b"x Y Z\n"), file),
         "badzone:1"),
        (64, ("sign", "--key", "x", file), "--domain"),
        (64, ("sign", "-c", path("conf"), "--canonicalization", "loose",
              file), "canonicalization"),
        (66, ("sign", "-c", path("conf"), "--domain", "example.net", file),
         "example.net"),
        (65, ("sign", "-c", path("conf"), write("nofrom", b"To: x\n\ny\n")),
         "From"),
    ]
    for want, args, word in rows:
        r = hanaper(*args)
        ok(r.returncode == want and word in r.stderr.decode(),
           f"exit {want} and a word about {word}", r)


def explained():
    r = hanaper("explain", "-c", path("conf"), "--zone", path("zone"),
                "--ip", "198.51.100.9", "--from", "ann@example.org",
                path("bad.eml"))
    text = r.stdout.decode()
    for words in ("inbound", "DKIM 1: fail, body hash did not verify",
                  "SPF of MAIL FROM: fail", "DMARC: fail",
                  "it asks for reject (p)", "dmarc = note",
                  "To pass: a valid signature with d= of example.org",
                  "rsa._domainkey.example.org TXT OK"):
        ok(words in text, f"the explanation says {words!r}", text)
    r = hanaper("explain", "-c", path("conf"), "--zone", path("zone"),
                "--auth", "ann", path("plain.eml"))
    ok(b"signed by example.org, selector rsa" in r.stdout, "outbound", r)
    r = hanaper("explain", "-c", path("conf"), "no-such-id")
    ok(r.returncode != 0 and b"state_dir" in r.stderr, "unknown id", r)


def published():
    zone = {}
    with open(path("zone"), encoding="ascii") as lines:
        for line in lines:
            name, _, text = line.split(None, 2)
            zone[name] = text.strip().replace('" "', "").strip('"')
    return zone


def dkimpy_agrees():
    zone = published()
    try:
        import dkim
    except ImportError:
        raise tap.Skip("python3-dkim is not installed") from None

    def lookup(name, timeout=5):
        return zone[name.decode().rstrip(".")].encode()
    with open(path("signed.eml"), "rb") as f:
        data = f.read()
    for index in (0, 1):
        ok(dkim.DKIM(data).verify(idx=index, dnsfunc=lookup),
           f"signature {index}")


PERL = r"""
use Mail::DKIM::Verifier; use Mail::DKIM::PublicKey;
my %zone = do { open my $z, '<', shift; map { /^(\S+) TXT (.*)$/;
    my ($n, $t) = ($1, $2); $t =~ s/" "//g; $t =~ s/^"|"$//g; ($n, $t) } <$z> };
no warnings 'redefine';
*Mail::DKIM::DNS::query = sub { my ($n) = @_; return () unless $zone{$n};
    require Net::DNS::RR;
    return Net::DNS::RR->new(name => $n, type => 'TXT', txtdata => $zone{$n}) };
*Mail::DKIM::DNS::query_async = sub { my ($n, $t, %c) = @_;
    my @r = Mail::DKIM::DNS::query($n, $t);
    return sub { $c{Callbacks}{Success} ? $c{Callbacks}{Success}->(@r) : @r } };
my $v = Mail::DKIM::Verifier->new; open my $m, '<', shift; binmode $m;
local $/; $v->PRINT(<$m>); $v->CLOSE;
print join(',', map { $_->result } $v->signatures), "\n";
"""


def mail_dkim_agrees():
    try:
        r = subprocess.run(["perl", "-e", PERL, path("zone"),
                            path("signed.eml")],
                           capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        raise tap.Skip("perl is not installed") from None
    if b"Can't locate Mail/DKIM" in r.stderr:
        raise tap.Skip("libmail-dkim-perl is not installed")
    ok(b"pass" in r.stdout and b"fail" not in r.stdout, "Mail::DKIM", r)


setup()
tap.run([(f.__name__.replace("_", " "), f) for f in (
    both_keys_sign, standard_input_verifies, json_tells_all,
    json_of_a_refused_message_has_all_members,
    a_changed_body_exits_1, no_signature_exits_1, several_files_in_one_call,
    several_files_signed, each_cause_is_named,
    age, one_field, explained, errors_name_what_is_wrong, dkimpy_agrees,
    mail_dkim_agrees)], cleanup=work.cleanup)
