#!/usr/bin/env python3
"""Mail from outside through Postfix: the results field and what it says, over
a unix and an inet socket."""
import os
import re
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

rigs = {}


def rig(kind="unix"):
    if kind not in rigs:
        rigs[kind] = stage.Rig(socket_kind=kind)
        rigs[kind].start()
    return rigs[kind]


def cleanup():
    for r in rigs.values():
        r.stop()


def expect(copy, **wanted):
    got = stage.results(copy)
    for method, words in wanted.items():
        words = [words] if isinstance(words, str) else words
        tap.check(got.get(method), words, method)


def passes(kind):
    r = rig(kind)
    copy = r.receive(r.signed(r.mail("news@sender.example", "pass")))
    expect(copy, dkim="pass", dmarc="pass", iprev="pass")
    tap.check(set(stage.results(copy)["spf"]), {"pass"}, "spf")


def fails(kind):
    r = rig(kind)
    copy = r.receive(r.mail("news@sender.example", "forged"),
                     client=stage.STRANGER)
    expect(copy, dkim="none", dmarc="fail")
    tap.check_in("fail", stage.results(copy)["spf"], "spf")


def temperror():
    r = rig()
    raw = r.signed(r.mail("x@temp.example", "temp"), "temp.example", "temp",
                   key=r.key("sender.example"))
    copy = r.receive(raw, sender="x@temp.example", client=stage.STRANGER)
    expect(copy, dkim="temperror", dmarc="temperror")
    tap.check_in("temperror", stage.results(copy)["spf"], "spf")


def dns_timeout():
    """A resolver that does not answer: temperror at the deadline, well before
    Postfix gives up."""
    r = rig()
    raw = r.signed(r.mail("x@slow.example", "slow"), "slow.example", "slow",
                   key=r.key("sender.example"))
    began = time.monotonic()
    copy = r.receive(raw, sender="x@slow.example", client=stage.STRANGER)
    tap.check(time.monotonic() - began < 60, True, "in time")
    expect(copy, dkim="temperror", dmarc="temperror")
    tap.check_in("temperror", stage.results(copy)["spf"], "spf")


def no_signature():
    r = rig()
    copy = r.receive(r.mail("news@sender.example", "plain"))
    expect(copy, dkim="none", dmarc="pass")


def two_signatures():
    r = rig()
    raw = r.signed(r.mail("news@sender.example", "two"))
    copy = r.receive(r.signed(raw, "other.example"))
    expect(copy, dkim=["pass", "pass"], dmarc="pass")
    field = postfix.values(copy, "Authentication-Results")[0]
    for domain in ("sender.example", "other.example"):
        tap.check_in(f"header.d={domain}", field)


def broken_body():
    r = rig()
    raw = r.signed(r.mail("news@sender.example", "broken"))
    copy = r.receive(raw + b"one more line\r\n", client=stage.STRANGER,
                     sender="x@other.example")
    expect(copy, dkim="fail", dmarc="fail")


def null_sender():
    r = rig()
    copy = r.receive(r.signed(r.mail("daemon@sender.example", "bounce")),
                     sender="")
    expect(copy, dkim="pass", dmarc="pass")


def position_and_form():
    r = rig()
    copy = r.receive(r.signed(r.mail("news@sender.example", "form")))
    names = [n for n, _ in postfix.fields(copy)]
    ours = names.index("Authentication-Results")
    tap.check(names.index("Received") - ours, 1, "lines above Received")
    tap.check(names.count("Authentication-Results"), 1, "fields")
    raw = postfix.fields(copy)[ours][1].decode()
    lines = ("Authentication-Results:" + raw).split("\n")
    tap.check([line for line in lines if len(line) > 78], [], "long lines")
    tap.check([line for line in lines[1:] if line[0] != "\t"], [], "folds")
    order = [m for m in re.findall(r";\s*([a-z]+)=", raw)]
    legal = ["auth", "iprev", "spf", "dkim", "arc", "dmarc"]
    tap.check(order, sorted(order, key=legal.index), "order of methods")


FORGED = (
    "mx.example.org; dkim=pass header.d=bank.example",
    "MX.Example.ORG; spf=pass",
    "\"mx.example.org\"; dmarc=pass",
    "(nice) mx.example.org (really) 1; dkim=pass",
    "mx.example.org.; dkim=pass",
    "mx.example.org 2; dkim=pass",
    "example.org; dkim=pass",
    "a.mx.example.org; dkim=pass",
)


def forged_results_removed():
    r = rig()
    extra = "".join(f"Authentication-Results: {v}\r\n" for v in FORGED)
    foreign = "Authentication-Results: mx.elsewhere.example; dkim=pass\r\n"
    raw = r.mail("news@sender.example", "forged results",
                 extra=(extra + foreign + extra.lower()).encode())
    copy = r.receive(raw, client=stage.STRANGER)
    values = postfix.values(copy, "Authentication-Results")
    tap.check(len(values), 2, f"fields left of {values}")
    tap.check(values[0].split(";")[0], stage.AUTHSERV, "topmost id")
    tap.check_in("mx.elsewhere.example", values[1])
    expect(copy, dmarc="fail")


def quarantine_header_stripped():
    r = rig()
    raw = r.mail("news@sender.example", "mark",
                 extra=b"X-Hanaper-Disposition: quarantine\r\n")
    copy = r.receive(raw)
    tap.check(postfix.values(copy, "X-Hanaper-Disposition"), [], "fields")


tap.run([
    ("pass over a unix socket", lambda: passes("unix")),
    ("pass over an inet socket", lambda: passes("inet")),
    ("fail over a unix socket", lambda: fails("unix")),
    ("fail over an inet socket", lambda: fails("inet")),
    ("temperror: SERVFAIL", temperror),
    ("temperror: no answer", dns_timeout),
    ("no signature", no_signature),
    ("two signatures", two_signatures),
    ("broken body", broken_body),
    ("null sender", null_sender),
    ("one field, on top, in form", position_and_form),
    ("forged results are removed, foreign ones kept", forged_results_removed),
    ("a disposition of ours is stripped", quarantine_header_stripped),
], stage.why_not(), cleanup)
