#!/usr/bin/env python3
"""Mail of our own through Postfix: signed when it comes from a trusted network
or an authenticated user, and verifiable as it arrives."""
import os
import sys

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


def signatures(copy, kind="unix"):
    return [(s["a"], s["d"], s["s"], s["result"])
            for s in rig(kind).verify(copy)["dkim"]]


BOTH = [("rsa-sha256", "example.org", "s1", "pass"),
        ("ed25519-sha256", "example.org", "s2", "pass")]


def trusted_network():
    copy = rig().sent(rig().mail("jo@example.org", "from inside"))
    tap.check(sorted(signatures(copy)), sorted(BOTH), "signatures")


def over_inet():
    r = rig("inet")
    copy = r.sent(r.mail("jo@example.org", "over TCP"))
    tap.check(sorted(signatures(copy, "inet")), sorted(BOTH), "signatures")
    tap.check(len(r.search("subject:over dir:out")), 1, "archived")


def authenticated():
    r = rig()
    qid = r.mta.send(r.mail("jo@example.org", "from the road"),
                     "jo@example.org", ["you@remote.example"],
                     client=stage.STRANGER, login="jo@example.org")
    tap.check(sorted(signatures(r.mta.delivered(qid))), sorted(BOTH),
              "signatures")


def stranger_not_signed():
    r = rig()
    copy = r.receive(r.mail("jo@example.org", "not from us"),
                     sender="jo@example.org", client=stage.STRANGER)
    tap.check(postfix.values(copy, "DKIM-Signature"), [], "signatures")
    tap.check(stage.results(copy).get("dmarc"), ["fail"], "dmarc")


def no_results_on_outbound():
    copy = rig().sent(rig().mail("jo@example.org", "quiet"))
    tap.check(postfix.values(copy, "Authentication-Results"), [], "fields")


def no_key_folder():
    r = rig()
    copy = r.sent(r.mail("x@nokey.example", "unsigned"),
                  sender="x@nokey.example")
    tap.check(postfix.values(copy, "DKIM-Signature"), [], "signatures")
    tap.check_in("nokey.example", r.log(), "log")


def eight_bit_and_folds():
    r = rig()
    raw = r.mail("jo@example.org", "x", extra=(
        "X-Name: Jürgen Größe\r\n"
        "X-Fold: one\r\n\ttwo  \r\n   three\r\n").encode(),
        body="Grüße\r\n  blanks \t \r\n\r\n\r\n".encode())
    tap.check(sorted(signatures(r.sent(raw))), sorted(BOTH), "signatures")


def several_sessions_one_connection():
    r = rig()
    qids = []
    with r.mta.session() as smtp:
        for i in range(5):
            qids.append(r.mta.submit(
                smtp, r.mail("jo@example.org", f"mail {i}"),
                "jo@example.org", ["you@remote.example"]))
    for qid in qids:
        tap.check(sorted(signatures(r.mta.delivered(qid))), sorted(BOTH))


tap.run([
    ("signed from a trusted network", trusted_network),
    ("the same over an inet socket", over_inet),
    ("signed for an authenticated user", authenticated),
    ("a stranger's mail is not signed", stranger_not_signed),
    ("no results on outbound mail", no_results_on_outbound),
    ("no key folder: unsigned, and the log says so", no_key_folder),
    ("8-bit, folded fields, blanks at line ends", eight_bit_and_folds),
    ("several messages in one session", several_sessions_one_connection),
], stage.why_not(), cleanup)
