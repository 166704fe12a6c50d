#!/usr/bin/env python3
"""Policy through Postfix: what is refused, held, marked or let in, for whom,
with which reply, and that `hanaper explain` knows why."""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

RELAY = ("203.0.113.10", "relay.example.org", "relay.example.org")
ZONE = """\
listed.example TXT "v=spf1 -all"
_dmarc.listed.example TXT "v=DMARC1; p=reject"
broken.example TXT "v=spf1 ip4:300.1.1.1 -all"
test.example TXT "v=spf1 -all"
_dmarc.test.example TXT "v=DMARC1; p=reject; t=y"
"""
SECTIONS = """
[override author]
from_domain = listed.example
dmarc = note

[override client]
client = 198.51.100.77
dmarc = note

[override name]
ptr = .partner.example
dmarc = note

[override list]
list_id = announce.lists.example
dmarc = note
reason = our own list

[override ann]
recipient = ann@example.org
dmarc = note
spf_reject = none

[override shadow]
recipient = shadow@example.org
dmarc = shadow reject

[override marked]
recipient = marked@example.org
dmarc = quarantine

[override held]
recipient = held@example.org
dmarc = quarantine
quarantine = hold

[override many]
recipient = many@example.org
multi_from = quarantine
dmarc = quarantine
"""
rigs = []


def rig():
    if rigs:
        return rigs[0]
    r = stage.Rig({"dmarc": "reject", "spf_reject": "fail permerror",
                   "received_spf": "yes", "trusted_relays": RELAY[0],
                   "arc": "seal", "arc_domain": "example.org",
                   "arc_seal": "forward@example.org",
                   "trusted_sealers": "example.org",
                   "on_dns_error": "tempfail" + "\n" + SECTIONS})
    rigs.append(r)
    r.zone += ZONE
    r.write_zone()
    r.start()
    return r


def cleanup():
    for r in rigs:
        r.stop()


def forged(subject="forged", author="news@sender.example", extra=b"",
           to=("user@example.org",), client=stage.STRANGER,
           sender="x@nospf.example"):
    r = rig()
    return r.receive(r.mail(author, subject, extra=extra), sender=sender,
                     to=to, client=client)


def refused(code, words, **how):
    try:
        forged(**how)
    except postfix.Refused as e:
        tap.check(e.code, code, e.text)
        tap.check_in(words, e.text, "reply")
        return e.text
    raise AssertionError("accepted")


def explained(ident, words):
    tap.check_in(words, rig().explain(ident), "explanation")


def dmarc_of(copy):
    return stage.results(copy)["dmarc"]


def queue_id(copy):
    return re.search(rb"with E?SMTPS?A? id (\S+)", copy)[1].decode().strip(
        ";")


def wait_explained(ident, words):
    """The decision is written down a moment after the reply."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return explained(ident, words)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def refusal():
    text = refused(550, "5.7.26 Email rejected per DMARC policy for "
                   "sender.example; SPF: none nospf.example; DKIM: none")
    wait_explained(re.search(r"id (\S+)", text)[1],
                   "It was refused: DMARC fails, and _dmarc.sender.example "
                   "asks for reject (tag p)")


def codes():
    r = rig()
    raw = r.signed(r.mail("news@sender.example", "x"), "other.example")
    for data, sender, client, code in (
            (raw, "x@nospf.example", stage.STRANGER, "5.7.22"),
            (r.mail("news@listed2.example", "x"), "x@listed.example",
             stage.STRANGER, "5.7.23 SPF fail for listed.example"),
            (r.mail("news@free.example", "x"), "x@broken.example",
             stage.STRANGER, "5.7.24 SPF permerror for broken.example"),
            (r.mail("x@temp.example", "x"), "x@temp.example",
             stage.STRANGER, "4.4.3")):
        try:
            r.receive(data, sender=sender, client=client)
            raise AssertionError(f"{code}: accepted")
        except postfix.Refused as e:
            tap.check_in(code, e.text, "reply")


def overrides():
    for how in ({"author": "a@listed.example"},
                {"client": ("198.51.100.77", None, "h.example")},
                {"client": ("198.51.100.78", "mx.partner.example", "h.x")},
                {"extra": b"List-Id: Announce <announce.lists.example>\r\n"},
                {"to": ("ann@example.org",)}):
        tap.check(dmarc_of(forged(**how)), ["fail"], how)
    refused(550, "5.7.26", client=("198.51.100.79", "mx.other.example", "h"))
    refused(550, "5.7.26", to=("bob@example.org",))
    wait_explained(queue_id(forged(extra=b"List-Id: <announce.lists.example>"
                                   b"\r\n")),
                   "The reason: our own list, [override list] (in reports: "
                   "mailing_list)")


def mildest():
    copy = forged(to=("bob@example.org", "ann@example.org"))
    wait_explained(queue_id(copy), "the mildest was applied to all")
    tap.check_in("recipients=mildest", rig().log(), "log")


def other_lists_are_softened():
    copy = forged(extra=b"List-Id: <some.lists.example>\r\n")
    tap.check(postfix.values(copy, "X-Hanaper-Disposition"), ["quarantine"])


def shadow():
    copy = forged(to=("shadow@example.org",))
    tap.check(dmarc_of(copy), ["fail"])
    wait_explained(queue_id(copy), "Without shadow it would have been refused")
    tap.check_in("shadow=reject", rig().log(), "log")


def marked():
    copy = forged(to=("marked@example.org",),
                  extra=b"X-Hanaper-Disposition: trusted\r\n")
    tap.check(postfix.values(copy, "X-Hanaper-Disposition"), ["quarantine"])
    good = rig().receive(rig().signed(rig().mail(
        "news@sender.example", "x",
        extra=b"X-Hanaper-Disposition: trusted\r\n")))
    tap.check(postfix.values(good, "X-Hanaper-Disposition"), [])


def held():
    r = rig()
    qid = r.mta.send(r.mail("news@sender.example", "x"), "x@nospf.example",
                     ["held@example.org"], client=stage.STRANGER)
    hold = os.path.join(r.mta.queue, "hold", qid)
    deadline = time.monotonic() + 20
    while not os.path.exists(hold) and time.monotonic() < deadline:
        time.sleep(0.1)
    tap.check(os.path.exists(hold), True, "in the hold queue")
    wait_explained(qid, "Outcome: accepted into the MTA's hold queue")


def testing():
    copy = forged(author="a@test.example")
    tap.check(postfix.values(copy, "X-Hanaper-Disposition"), ["quarantine"])
    tap.check_in("policy.dmarc=quarantine",
                 postfix.values(copy, "Authentication-Results")[0])


def many_from():
    extra = b"From: second@listed.example\r\n"
    refused(550, "5.7.", extra=extra)
    copy = forged(extra=extra, to=("many@example.org",))
    tap.check(postfix.values(copy, "X-Hanaper-Disposition"), ["quarantine"])


def never_judged():
    """Who has logged in, and who is on our network."""
    r = rig()
    raw = r.mail("news@sender.example", "x")
    for login, client in (("jo", stage.STRANGER), (None, None)):
        copy = r.mta.delivered(r.mta.send(
            raw, "x@listed.example", ["user@example.org"], client=client,
            login=login))
        tap.check(postfix.values(copy, "Authentication-Results"), [])


def trusted_sealer():
    """Sealed here, it comes back from a forwarder that breaks SPF."""
    r = rig()
    copy = r.receive(r.mail("news@sender.example", "x"),
                     to=["forward@example.org"])
    tap.check(dmarc_of(copy), ["pass"])
    tap.check(len(postfix.values(copy, "ARC-Seal")), 1, "seals")
    raw = copy[copy.index(b"ARC-Seal:"):].replace(b"\n", b"\r\n")
    back = r.receive(raw, sender="x@nospf.example", client=stage.STRANGER)
    tap.check(dmarc_of(back), ["fail"])
    tap.check(stage.results(back)["arc"], ["pass"])
    wait_explained(queue_id(back), "The reason: sealed by a trusted sealer "
                   "(in reports: trusted_forwarder)")
    # a seal over something else is none
    refused_raw = raw.replace(b"Hello", b"Hallo")
    try:
        r.receive(refused_raw, sender="x@nospf.example",
                  client=stage.STRANGER)
        raise AssertionError("accepted")
    except postfix.Refused as e:
        tap.check_in("5.7.26", e.text, "reply")


def evidence():
    """The answers that a verdict rests on stand beside the message."""
    r = rig()
    qid = queue_id(forged(author="a@listed.example"))
    found = r.search(f"qid:{qid}")
    tap.check(len(found), 1, "hits")
    said = r.hanaper("archive", "show", "--evidence",
                     str(found[0]["id"])).stdout
    for words in (b"_dmarc.listed.example", b"v=DMARC1; p=reject",
                  b"nospf.example"):
        tap.check_in(words, said, "evidence")


def as_of_the_hop_before():
    """Judged as of the client that our other MX names, not as of that MX."""
    r = rig()
    received = (b"Received: from mail.sender.example (mail.sender.example "
                b"[192.0.2.25])\r\n\tby relay.example.org (Postfix) with "
                b"ESMTP id ABC;\r\n\tMon, 30 Nov 2026 12:00:00 +0000\r\n")
    raw = r.mail("news@sender.example", "x")
    copy = r.receive(received + raw, client=RELAY)
    tap.check(dmarc_of(copy), ["pass"])
    tap.check_in('client-ip="192.0.2.25"',
                 postfix.values(copy, "Received-SPF")[0])
    try:
        r.receive(received.replace(b"192.0.2.25", b"192.0.2.26") + raw,
                  client=RELAY)
        raise AssertionError("accepted")
    except postfix.Refused as e:
        tap.check_in("5.7.26", e.text, "reply")
    # a client that is no relay of ours is not asked about hops
    try:
        r.receive(received + raw, client=stage.STRANGER)
        raise AssertionError("accepted")
    except postfix.Refused as e:
        tap.check_in("5.7.26", e.text, "reply")


def by_queue_id():
    r = rig()
    with r.mta.session(stage.SENDER) as smtp:
        qid = r.mta.submit(smtp, r.mail("news@sender.example", "x"),
                           "news@sender.example", ["user@example.org"])
    wait_explained(qid, "It was delivered: DMARC passes")


tap.run([
    ("refusal, explained by its id", refusal),
    ("codes of RFC 7372", codes),
    ("overrides", overrides),
    ("the mildest of several recipients", mildest),
    ("other lists are softened", other_lists_are_softened),
    ("shadow", shadow),
    ("marked, and nobody else may say so", marked),
    ("held", held),
    ("a domain that is testing", testing),
    ("several From fields", many_from),
    ("authenticated and internal mail", never_judged),
    ("a trusted sealer", trusted_sealer),
    ("evidence in the archive", evidence),
    ("as of the hop before", as_of_the_hop_before),
    ("a queue id", by_queue_id),
], stage.why_not(), cleanup)
