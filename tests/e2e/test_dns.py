#!/usr/bin/env python3
"""Judging mail by a name server that lies, is late or says nothing, through
Postfix: right words, within dns_budget, and nothing is hurt by it."""
import concurrent.futures
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import nameserver  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

BUDGET = 5  # seconds, and what the rest of a message may take
SLACK = 3
T, P, N = "temperror", "permerror", "none"
# kind: (SPF, DMARC) for a client that the honest record names, with p=reject
WANT = {
    "honest": ("pass", "pass"),
    "wrongid": (T, T), "wrongquestion": (T, T),
    "garbage": (T, T), "nothing": (T, T), "silent": (T, T), "late": (T, T),
    "servfail": (T, T), "refused": (T, T), "loop": (T, T), "circle": (T, T),
    "chain": (T, T), "fatchain": (T, T), "pointers": (T, T),
    "truncated": (T, T), "endless": (T, T),
    # nothing is left of it: that looks like a name without records
    "wrongowner": (N, N),
    # definite answers that are wrong
    "big": (P, "fail"), "many": (P, N), "mx1000": (P, "fail"),
    "bytes8": (P, "fail"), "longname": (P, "fail"), "recursion": (P, "fail"),
    "nulpolicy": ("pass", N),
    "macros": ("fail", "fail"),
    "includes": (T, T),
}
servers, rigs = [], []
fresh = 0
got = {}


def rig():
    if not rigs:
        servers.append(nameserver.Nameserver())
        r = stage.Rig({"nameservers": servers[0].address, "zone_file": None,
                       "dns_timeout": "2s", "dns_budget": f"{BUDGET}s",
                       "dnssec": "off", "archive": "off"})
        rigs.append(r)
        r.start()
    return rigs[0]


def cleanup():
    for thing in rigs + servers:
        thing.stop()


def judge(kind):
    r = rig()
    sender = f"a@{kind}.hostile.example"
    begun = time.monotonic()
    copy = r.receive(r.mail(sender, kind), sender=sender,
                     client=("192.0.2.25", None, "client.invalid"))
    seconds = time.monotonic() - begun
    got = stage.results(copy)
    tap.check(seconds < BUDGET + SLACK, True, f"{seconds:.1f} s for {kind}")
    return got["spf"][0], got["dmarc"][0]


def honest():
    """A name that nobody asked for yet."""
    global fresh
    fresh += 1
    tap.check(judge(f"honest{fresh}"), WANT["honest"], "an honest domain")


def ask_all():
    """Side by side, since most of them take as long as they may. What needs
    TCP comes after what blocks it."""
    rig()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = {kind: pool.submit(judge, kind) for kind in WANT}
        honest()
        for kind, answer in found.items():
            got[kind] = answer
    honest()


def each(kind):
    tap.check(got[kind].result(), WANT[kind], kind)


def explained():
    """What was used is told, whatever bytes it held."""
    r = rig()
    for kind in ("bytes8", "macros", "big"):
        sender = f"a@{kind}.hostile.example"
        copy = r.receive(r.mail(sender, kind), sender=sender,
                         client=("192.0.2.25", None, "client.invalid"))
        qid = copy.split(b" with ESMTP id ", 1)[1].split(b"\n")[0].strip(
            b";").decode()
        said = r.explain(qid).encode(errors="surrogateescape")
        tap.check_in(f"{kind}.hostile.example TXT OK".encode(), said)
        tap.check([c for c in said if c > 126 or (c < 32 and c != 10)], [],
                  "bytes that are no text")


def alive():
    honest()
    tap.check(rig().daemon.poll(), None, "hanaperd")


tap.run([("honest domains beside all the others", ask_all)] +
        [(kind, lambda kind=kind: each(kind)) for kind in WANT] +
        [("explained", explained), ("alive", alive)],
        stage.why_not(), cleanup)
