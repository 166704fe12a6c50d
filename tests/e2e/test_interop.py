#!/usr/bin/env python3
"""Our signatures verify with python3-dkim and Mail::DKIM, and theirs with us,
in all four canonicalizations, rsa-sha256 and ed25519-sha256."""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import tap  # noqa: E402

try:
    import dkim
except ImportError:
    # Debian's module belongs to Debian's interpreter.
    if os.path.exists("/usr/bin/python3") and not os.environ.get("RETRIED"):
        os.execve("/usr/bin/python3", ["/usr/bin/python3", *sys.argv],
                  dict(os.environ, RETRIED="1"))
    dkim = None

HANAPER = os.environ.get("HANAPER", "")
DOMAIN = "example.org"
CANONS = [f"{h}/{b}" for h, b in itertools.product(("relaxed", "simple"),
                                                   repeat=2)]
MESSAGES = {
    "plain": b"From: Jo <jo@example.org>\r\nTo: you@remote.example\r\n"
             b"Subject: plain\r\nDate: Mon, 30 Nov 2026 12:00:00 +0000\r\n"
             b"Message-ID: <1@example.org>\r\n\r\nHello\r\n",
    "odd": "From: Jö <jo@example.org>\r\nSubject:  two  blanks \t\r\n"
           "\tand a fold\r\nTo:you@remote.example\r\nX-Empty:\r\n"
           "Received: from a\r\nReceived: from b\r\n"
           "Date: Mon, 30 Nov 2026 12:00:00 +0000\r\n\r\n"
           " lead\r\ntrail \t \r\n.dot\r\n\r\n\r\nGrüße\r\n\r\n\r\n".encode(),
    "empty": b"From: jo@example.org\r\nSubject: no body\r\n\r\n",
    "long": b"From: jo@example.org\r\nSubject: " + b"w" * 900 + b"\r\n\r\n"
            + b"x" * 900 + b"\r\n" + b"0123456789 \r\n" * 20000,
}
place = tempfile.TemporaryDirectory(prefix="hanaper-interop.")
keys, zone_file, zone = {}, os.path.join(place.name, "zone"), {}


def why_not():
    if not os.access(HANAPER, os.X_OK):
        return "hanaper is not built"
    if dkim is None:
        return "python3-dkim is not installed"
    done = subprocess.run(["perl", "-MMail::DKIM", "-e", "1"],
                          capture_output=True)
    return "Mail::DKIM is not installed" if done.returncode else None


def run(*argv, data=b"", statuses=(0,)):
    done = subprocess.run(argv, input=data, capture_output=True)
    if done.returncode not in statuses:
        raise AssertionError(f"{argv}: exit {done.returncode}: "
                             + done.stderr.decode(errors="replace"))
    return done.stdout


def make_keys():
    conf = os.path.join(place.name, "conf")
    top = os.path.join(place.name, "keys")
    os.mkdir(top, 0o700)
    with open(conf, "w") as out:
        out.write(f"key_dir = {top}\n")
    import rig
    with open(zone_file, "w") as out:
        for selector, kind in (("r", "rsa2048"), ("e", "ed25519")):
            run(HANAPER, "key", "generate", "-c", conf, DOMAIN, "--selector",
                selector, "--type", kind)
            text = run(HANAPER, "key", "dns", "-c", conf, DOMAIN).decode()
            name = f"{selector}._domainkey.{DOMAIN}"
            line = rig.published(text, name)
            out.write(line)
            zone[name] = "".join(re.findall('"([^"]*)"', line)).encode()
            keys[selector] = os.path.join(top, DOMAIN, selector + ".pem")


def ours(raw, selector, canon):
    return run(HANAPER, "sign", "--domain", DOMAIN, "--selector", selector,
               "--key", keys[selector], "--canonicalization", canon, "-",
               data=raw)


def judged(raw):
    out = json.loads(run(HANAPER, "verify", "--json", "--zone", zone_file,
                         "-", data=raw, statuses=(0, 1)))
    return [s["result"] for s in out["dkim"]]


def dns(name, timeout=5):
    return zone.get(name.decode().rstrip("."))


def by_dkimpy(selector, canon):
    for label, raw in MESSAGES.items():
        tap.check(dkim.verify(ours(raw, selector, canon), dnsfunc=dns), True,
                  label)
        broken = ours(raw, selector, canon) + b"more\r\n"
        tap.check(dkim.verify(broken, dnsfunc=dns), False, "broken " + label)


def by_perl(canon):
    for label, raw in MESSAGES.items():
        out = run("perl", os.path.join(HERE, "mail_dkim.pl"), "verify",
                  zone_file, data=ours(raw, "r", canon)).decode()
        tap.check(out, "pass\n", label)


def of_dkimpy(selector, canon):
    header, body = canon.encode().split(b"/")
    algorithm = b"rsa-sha256" if selector == "r" else b"ed25519-sha256"
    with open(keys[selector], "rb") as pem:
        key = pem.read()
    if selector == "e":
        # dkimpy wants the bare seed: the end of the PKCS#8 structure
        import base64
        der = base64.b64decode(b"".join(key.splitlines()[1:-1]))
        key = base64.b64encode(der[-32:])
    for label, raw in MESSAGES.items():
        field = dkim.sign(raw, selector.encode(), DOMAIN.encode(), key,
                          canonicalize=(header, body),
                          signature_algorithm=algorithm)
        tap.check(judged(field + raw), ["pass"], label)
        tap.check(judged(field + raw + b"more\r\n"), ["fail"],
                  "broken " + label)


def of_perl(canon):
    for label, raw in MESSAGES.items():
        signed = run("perl", os.path.join(HERE, "mail_dkim.pl"), "sign",
                     keys["r"], DOMAIN, "r", canon, data=raw)
        tap.check(judged(signed), ["pass"], label)


def both_at_once():
    raw = ours(ours(MESSAGES["odd"], "r", "relaxed/simple"), "e",
               "simple/relaxed")
    tap.check(judged(raw), ["pass", "pass"])
    tap.check([dkim.DKIM(raw).verify(idx=i, dnsfunc=dns) for i in (0, 1)],
              [True, True], "dkimpy")


def lf_input():
    """A file with LF is signed as it will be on the wire."""
    raw = MESSAGES["odd"].replace(b"\r\n", b"\n")
    signed = ours(raw, "r", "simple/simple")
    tap.check(judged(signed), ["pass"])
    wire = signed.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    tap.check(dkim.verify(wire, dnsfunc=dns), True, "dkimpy")


cases = []
reason = why_not()
if reason is None:
    make_keys()
for c in CANONS:
    for s in ("r", "e"):
        cases.append((f"ours {s} {c} by python3-dkim",
                      lambda s=s, c=c: by_dkimpy(s, c)))
        cases.append((f"python3-dkim's {s} {c} by us",
                      lambda s=s, c=c: of_dkimpy(s, c)))
    cases.append((f"ours {c} by Mail::DKIM", lambda c=c: by_perl(c)))
    cases.append((f"Mail::DKIM's {c} by us", lambda c=c: of_perl(c)))
cases += [("two signatures", both_at_once), ("LF input", lf_input)]
tap.run(cases, reason, place.cleanup)
