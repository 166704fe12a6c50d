#!/usr/bin/env python3
"""What strangers send: thousands of forged fields, tiny and huge bodies, bytes
that no mail should have, headers without end."""
import hashlib
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

rigs = []


def rig():
    if not rigs:
        rigs.append(stage.Rig())
        rigs[0].start()
    return rigs[0]


def cleanup():
    for r in rigs:
        r.stop()


def forged(count):
    return b"Authentication-Results: mx.example.org; dkim=pass\r\n" * count


def refused(raw, code, **more):
    try:
        rig().receive(raw, **more)
    except postfix.Refused as e:
        tap.check(e.code, code, f"reply {e.text}")
        return e.text
    raise AssertionError("accepted")


def still_alive():
    r = rig()
    copy = r.receive(r.signed(r.mail("news@sender.example", "alive")))
    tap.check(stage.results(copy)["dkim"], ["pass"], "dkim")


def forged_12000():
    text = refused(rig().mail("news@sender.example", "12,000",
                              extra=forged(12000)), 550)
    tap.check_in("5.7.1", text, "reply")
    still_alive()


def forged_90():
    r = rig()
    copy = r.receive(r.mail("news@sender.example", "90", extra=forged(90)))
    tap.check(len(postfix.values(copy, "Authentication-Results")), 1)


def body(data, label):
    r = rig()
    raw = r.mail("jo@example.org", label, body=data)
    copy = r.sent(raw)
    for signature in r.verify(copy)["dkim"]:
        tap.check(signature["result"], "pass", signature["a"])
    tap.check(len(postfix.values(copy, "DKIM-Signature")), 2, "signatures")
    return raw


def archived(raw, query):
    r = rig()
    hits = r.search(query)
    tap.check(len(hits), 1, f"hits of {query}")
    got = r.raw(hits[0]["id"])
    tap.check(hashlib.sha256(got).hexdigest(),
              hashlib.sha256(raw).hexdigest(), "archived bytes")


def empty_body():
    body(b"", "emptybody")


def one_byte():
    archived(body(b"x\r\n", "onebyte"), "subject:onebyte")


def thirty_megabytes():
    line = bytes(range(33, 126))[:76].ljust(76, b"x") + b"\r\n"
    data = line * (30 * 1024 * 1024 // len(line))
    archived(body(data, "thirtymegabytes"), "subject:thirtymegabytes")


def eight_bit():
    data = bytes(range(128, 256)) + b"\r\n"
    raw = rig().mail("jo@example.org", "eightbit", body=data,
                     extra=b"X-Raw: " + bytes(range(160, 250)) + b"\r\n")
    rig().sent(raw)
    archived(raw, "subject:eightbit")


def nul_and_bare_cr():
    """Postfix may change these before we see them; what it queues must be
    what we judged and kept, and nothing may crash."""
    r = rig()
    for label, data in (("nulbytes", b"a\0b\r\n"), ("barecr", b"a\rb\r\n")):
        raw = r.mail("jo@example.org", label, body=data,
                     extra=b"X-Odd: " + data)
        copy = r.sent(raw)
        for signature in r.verify(copy)["dkim"]:
            tap.check(signature["result"], "pass", label)
        tap.check(len(r.search("subject:" + label)), 1, label)
    still_alive()


def folded(lines):
    return b"X-Long:" + b"".join(b" " + b"y" * 70 + b"\r\n"
                                 for _ in range(lines))


def huge_field():
    """Up to 60,000 bytes Postfix hands a field over whole."""
    r = rig()
    raw = r.mail("jo@example.org", "hugefield", extra=folded(800) * 10)
    r.sent(raw)
    archived(raw, "subject:hugefield")


def field_cut_by_postfix():
    """Longer ones it cuts before a milter sees them: what is queued is what
    was signed and kept."""
    r = rig()
    copy = r.sent(r.mail("jo@example.org", "cutfield", extra=folded(4000)))
    for signature in r.verify(copy)["dkim"]:
        tap.check(signature["result"], "pass", signature["a"])
    kept = r.raw(r.search("subject:cutfield")[0]["id"])
    name = "X-Long"
    tap.check([v.replace(b"\r\n", b"\n") for n, v in postfix.fields(kept)
               if n == name],
              [v for n, v in postfix.fields(copy) if n == name], name)


def header_over_limit():
    field = b"X-Many: " + b"z" * 900 + b"\r\n"
    text = refused(rig().mail("news@sender.example", "over",
                              extra=field * 3000), 554)
    tap.check_in("5.6.0", text, "reply")
    still_alive()


def many_signatures():
    r = rig()
    one = b"DKIM-Signature: v=1; a=rsa-sha256; d=sender.example; s=s1;\r\n" \
        b"\th=from; bh=AAAA; b=BBBB\r\n"
    copy = r.receive(r.mail("news@sender.example", "many", extra=one * 1000))
    tap.check("pass" in stage.results(copy)["dkim"], False, "a pass")
    still_alive()


def limit_permanent():
    """A message over max_message_size is refused for good."""
    r = stage.Rig({"max_message_size": "1M"})
    try:
        r.start()
        try:
            r.receive(r.mail("news@sender.example", "big",
                             body=b"x" * 76 + b"\r\n" * 700000))
        except postfix.Refused as e:
            tap.check(e.code, 552, f"reply {e.text}")
        else:
            raise AssertionError("accepted")
    finally:
        r.stop()


tap.run([
    ("12,000 forged result fields: 550, nothing else", forged_12000),
    ("90 forged result fields are removed", forged_90),
    ("no body", empty_body),
    ("1 byte", one_byte),
    ("30 MB", thirty_megabytes),
    ("8-bit header and body, byte exact", eight_bit),
    ("NUL and bare CR", nul_and_bare_cr),
    ("folded fields of 58 kB", huge_field),
    ("a folded field of 280 kB", field_cut_by_postfix),
    ("header over the limit: 554", header_over_limit),
    ("1,000 broken signatures", many_signatures),
    ("message over the limit: 552", limit_permanent),
], stage.why_not(), cleanup)
