#!/usr/bin/env python3
"""Mail through Postfix found again: by every recipient, blind copies included,
byte exact, once per content."""
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
        rigs.append(stage.Rig({"dmarc": "reject"}))
        rigs[0].start()
    return rigs[0]


def cleanup():
    for r in rigs:
        r.stop()


def recipients():
    r = rig()
    raw = r.mail("news@sender.example", "severalrcpt",
                 to="open@example.org")
    to = ["open@example.org", "second@example.org", "blind@example.org"]
    qid = r.mta.send(r.signed(raw), "news@sender.example", to,
                     client=stage.SENDER)
    tap.check(len(r.mta.copies(qid, 3)), 3, "copies")
    for address in to:
        tap.check(len(r.search(f"rcpt:{address}")), 1, f"rcpt:{address}")
    tap.check(len(r.search("to:blind@example.org")), 0, "to: of a Bcc")
    tap.check(len(r.search(f"qid:{qid}")), 1, "qid:")


def byte_exact():
    r = rig()
    raw = r.signed(r.mail("news@sender.example", "byteexact", extra=(
        b"X-Fold:  two\r\n \t spaces  \r\nX-Empty:\r\nX-Colon:: x\r\n"),
        body=b".dot\r\n..dots\r\n trailing \t\r\n\r\n\r\n"))
    r.receive(raw)
    hits = r.search("subject:byteexact")
    tap.check(len(hits), 1, "hits")
    tap.check(r.raw(hits[0]["id"]), raw, "archived bytes")


def verdicts_found():
    r = rig()
    r.receive(r.signed(r.mail("news@sender.example", "verdictword")))
    for query in ("dkim:pass", "dkim.d:sender.example", "dmarc:pass",
                  "dir:in", "ip:192.0.2.25", "from:news@sender.example"):
        tap.check(len(r.search(f"subject:verdictword {query}")), 1, query)
    tap.check(len(r.search("subject:verdictword dkim:fail")), 0, "dkim:fail")


def body_words():
    r = rig()
    r.sent(r.mail("jo@example.org", "bodywords",
                  body=b"The zymurgist met the quokka.\r\n"))
    tap.check(len(r.search("zymurgist quokka dir:out")), 1, "hits")
    tap.check(len(r.search('"quokka zymurgist"')), 0, "phrase reversed")


def refused_not_archived():
    """dmarc = reject here: what we refuse was never accepted. (A list or a
    trusted sealer may exempt; this message has neither.)"""
    r = rig()
    try:
        r.receive(r.mail("news@sender.example", "refusedmail"),
                  client=stage.STRANGER)
    except postfix.Refused as e:
        tap.check(e.code // 100, 5, f"reply {e.text}")
    else:
        raise AssertionError("accepted")
    tap.check(len(r.search("subject:refusedmail")), 0, "hits")


def aborted_not_archived():
    r = rig()
    with r.mta.session(stage.SENDER) as smtp:
        smtp.mail("news@sender.example")
        smtp.rcpt("user@example.org")
        smtp.rset()
    with r.mta.session(stage.SENDER) as smtp:
        smtp.mail("news@sender.example")
        smtp.rcpt("user@example.org")
        smtp.putcmd("data")
        smtp.getreply()
        smtp.sock.sendall(b"Subject: abortedmail\r\n\r\nhalf a mess")
        smtp.sock.close()
        smtp.file = smtp.sock = None
    r.receive(r.mail("news@sender.example", "afterabort"))
    tap.check(len(r.search("subject:abortedmail")), 0, "hits")
    tap.check(len(r.search("subject:afterabort")), 1, "hits")


def same_content_twice():
    """One content, two deliveries: shown once, both deliveries known."""
    r = rig()
    raw = r.mail("news@sender.example", "twicesent")
    first = r.mta.send(raw, "news@sender.example", ["a@example.org"],
                       client=stage.SENDER)
    second = r.mta.send(raw, "news@sender.example", ["b@example.org"],
                        client=stage.SENDER)
    for query in (f"qid:{first}", f"qid:{second}", "rcpt:a@example.org",
                  "rcpt:b@example.org"):
        tap.check(len(r.search(query)) >= 1, True, query)


def export():
    r = rig()
    raw = r.mail("news@sender.example", "exportme")
    r.receive(raw)
    tap.check(r.contents("subject:exportme"), [raw], "exported")


tap.run([
    ("several recipients, Bcc by rcpt:", recipients),
    ("archive show --raw is byte exact", byte_exact),
    ("found by verdict, client, domain", verdicts_found),
    ("found by words of the body", body_words),
    ("refused mail is not archived", refused_not_archived),
    ("aborted mail is not archived", aborted_not_archived),
    ("the same content twice", same_content_twice),
    ("export", export),
], stage.why_not(), cleanup)
