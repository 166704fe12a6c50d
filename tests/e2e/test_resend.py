#!/usr/bin/env python3
"""Out of the archive and in again through Postfix: `resend` by its sendmail
command, `add` by the transport that hanaper(1) recommends; addresses and
bodies that are odd, each to whom it belongs and nobody twice."""
import os
import re
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import rig as stage  # noqa: E402
import tap  # noqa: E402

LONG = "l" * 64
ODD = [
    "plain@example.org", "plus+tag@example.org", '"a b"@example.org',
    '"a\\"b"@example.org', '"@"@example.org', '"a,b"@example.org',
    '"a;b"@example.org', '"(c)"@example.org', '"back\\\\slash"@example.org',
    "o'neil@example.org", "$HOME@example.org", "%p@example.org",
    "${sender}@example.org", "`ls`@example.org", "!bang@example.org",
    "{a}|b@example.org", LONG + "@example.org", "UPPER@Example.ORG",
    "user@xn--bcher-kva.example",
]
BODIES = {
    "plain": b"Hello\r\n",
    "dots": b".\r\n..\r\n.x\r\n",
    "from": b"From me\r\n>From you\r\n>>From them\r\n",
    "eight": b"gr\xfc\xdfe \xe2\x82\xac \xff\xfe\r\n",
    "long": b"x" * 900 + b"\r\n" + b"y" * 998 + b"\r\n",
    "blank": b"\r\n\r\n \t\r\n\r\n",
    "nul": b"a\0b\r\n\0\r\n",
    "tabs": b"trailing \t\r\n\x01\x7f\x1b[0m\r\n",
}
rigs = []


def manual():
    """The line for master.cf as the man page has it, for our programs."""
    page = os.path.join(os.environ.get("SRCDIR", "."), "man", "hanaper.1")
    with open(page) as text:
        line = re.search(r"^\.Dl (archive unix .*pipe.*)$", text.read(),
                         re.M)[1]
    return line.replace("\\-", "-")


def rig():
    if not rigs:
        r = stage.Rig(postfix_settings={
            "transport_maps": "inline:{{archive.example=archive:}}",
            # nothing is refused or rewritten for how it looks
            "smtpd_relay_restrictions": "check_client_access static:OK, reject",
            "allow_min_user": "yes",
            "swap_bangpath": "no",
            "allow_percent_hack": "no"})
        line = manual().replace("user=hanaper", "user=" + stage.USER)
        program = os.path.join(r.top, "add")
        assert "argv=/usr/bin/hanaper archive add " in line, line
        r.mta.services = (line.replace(
            "argv=/usr/bin/hanaper archive add", "argv=" + program),)
        with open(program, "w") as out:
            out.write(f'#!/bin/sh\nexec {os.environ["HANAPER"]} archive add '
                      f'-c {r.path["hanaper.conf"]} "$@"\n')
        os.chmod(program, 0o755)
        rigs.append(r)
        r.sendmail = os.path.join(r.top, "sendmail")
        r.start()
        r.mta.sendmail(r.sendmail)
    return rigs[0]


def cleanup():
    for r in rigs:
        r.stop()


def delivered(r, subject):
    """[(to whom, from whom, bytes with LF)] of all copies, as virtual(8)
    wrote them: its own three fields come first."""
    new = os.path.join(r.mta.mail, "inbox", "new")
    found = []
    for name in (os.listdir(new) if os.path.isdir(new) else []):
        with open(os.path.join(new, name), "rb") as mail:
            raw = mail.read()
        if f"\nSubject: {subject}\n".encode() not in raw:
            continue
        head = re.match(rb"Return-Path: <(.*)>\nX-Original-To: (.*)\n"
                        rb"Delivered-To: (.*)\n", raw)
        found.append((head[2].decode(), head[1].decode(), raw[head.end():]))
    return found


def archived(r, subject, count=1):
    """Its ids, oldest first."""
    end = time.monotonic() + 30
    while True:
        hits = r.search(f"subject:{subject}")
        if len(hits) >= count:
            break
        assert time.monotonic() < end, (subject, hits, r.mta.tail(40))
        time.sleep(0.1)
    tap.check(len(hits), count, subject)
    return hits[::-1]


def resent_to_everybody():
    """Whoever had it gets it again, byte for byte behind the new fields."""
    r = rig()
    for n, (name, body) in enumerate(BODIES.items()):
        subject = f"again{name}"
        raw = r.mail("news@sender.example", subject, body=body)
        to = ODD[n::len(BODIES)]
        r.mta.send(raw, "news@sender.example", to, client=stage.SENDER)
        r.mta.wait_empty()
        before = delivered(r, subject)
        tap.check(sorted(x[0] for x in before), sorted(to), "first time")
        hit = archived(r, subject)[0]
        tap.check(r.raw(hit["id"]), raw, "archived")
        r.hanaper("archive", "resend", "--sendmail", r.sendmail,
                  "--from", "postmaster@example.org", hit["id"])
        r.mta.wait_empty()
        after = [x for x in delivered(r, subject) if b"\nResent-From:" in x[2]]
        tap.check(sorted(x[0] for x in after), sorted(to), "second time")
        for _, sender, copy in after:
            tap.check(sender, "postmaster@example.org", "who gets it back")
            assert copy.endswith(raw.replace(b"\r\n", b"\n")), copy


def resent_to_one():
    r = rig()
    raw = r.mail("news@sender.example", "againone")
    r.mta.send(raw, "news@sender.example", ["first@example.org"],
               client=stage.SENDER)
    hit = archived(r, "againone")[0]
    for to, sender in (('"a b"@example.org', ""),
                       ("-dash@example.org", "owner@example.org"),
                       ("plain@example.org", '"o w"@example.org')):
        done = r.hanaper("archive", "resend", "--sendmail", r.sendmail,
                         "--sender", sender, "--to", to, hit["id"],
                         statuses=(0, 64, 65, 67, 75))
        r.mta.wait_empty()
        copies = [x for x in delivered(r, "againone")
                  if b"\nResent-" in x[2] and x[0] == to]
        if done.returncode == 0:
            tap.check([x[1] for x in copies], [sender], to)
        else:  # then it says so, and nobody got it
            tap.check(copies, [], to)
            assert to.encode() in done.stderr, done.stderr
    tap.check(len(delivered(r, "againone")) <= 4, True, "nobody else")


def resent_to_many():
    r = rig()
    to = [f"user{n}@example.org" for n in range(120)]
    raw = r.mail("news@sender.example", "againmany")
    r.mta.send(raw, "news@sender.example", to, client=stage.SENDER)
    hit = archived(r, "againmany")[0]
    r.mta.wait_empty()
    r.hanaper("archive", "resend", "--sendmail", r.sendmail, hit["id"])
    r.mta.wait_empty()
    after = [x[0] for x in delivered(r, "againmany") if b"\nResent-" in x[2]]
    tap.check(sorted(after), sorted(to), "second time")


def senders(r, ident):
    """The envelope sender that the archive has."""
    text = r.hanaper("archive", "show", "--meta", ident).stdout.decode()
    return re.findall(r"^mail from: (.*)$", text, re.M)


def added_by_a_transport():
    """What a pipe(8) transport hands over: the message with LF, and its
    envelope whatever the addresses look like."""
    r = rig()
    for n, sender in enumerate(
            ["news@sender.example", "", '"o w"@sender.example',
             '"a\\"b"@sender.example', "-dash@sender.example",
             "$HOME@sender.example"]):
        subject = f"pipe{n}"
        to = [x.replace("example.org", "archive.example").replace(
            "Example.ORG", "archive.example")
            for x in ODD[n::6] if not x.endswith("xn--bcher-kva.example")]
        raw = r.mail("news@sender.example", subject, body=BODIES["from"]
                     + BODIES["eight"] + BODIES["dots"])
        r.mta.send(raw, sender, to, client=stage.SENDER)
        r.mta.wait_empty()
        hits = [h for h in r.search(f"subject:{subject}")
                if h["direction"] == "import"]
        rcpts = sorted(x for h in hits for x in h["rcpts"])
        tap.check([x.lower() for x in rcpts], sorted(x.lower() for x in to),
                  f"recipients of {subject}: {r.mta.tail(6)}")
        for h in hits:
            tap.check(senders(r, h["id"]), [sender], "sender")


def kept_in_the_queue_while_it_cannot_be_added():
    r = rig()
    families = os.path.join(r.path["archive"], "families")
    closed = [os.path.join(families, name) for name in os.listdir(families)
              if name not in ("mail", "audit")]
    tap.check(len(closed), 1, families)
    os.chmod(closed[0], 0)
    try:
        r.mta.send(r.mail("news@sender.example", "pipelater"),
                   "news@sender.example", ["later@archive.example"],
                   client=stage.SENDER)
        end = time.monotonic() + 30
        while "status=deferred" not in r.mta.tail(10):
            assert time.monotonic() < end, r.mta.tail()
            time.sleep(0.05)
        tap.check(len(r.mta.queued()), 1, "queued")
    finally:
        os.chmod(closed[0], 0o750)
    r.mta.flush()
    r.mta.wait_empty()
    hits = [h for h in r.search("subject:pipelater")
            if h["direction"] == "import"]
    tap.check([h["rcpts"] for h in hits], [["later@archive.example"]], "once")


tap.run([(f.__name__.replace("_", " "), f) for f in (
    resent_to_everybody, resent_to_one, resent_to_many,
    added_by_a_transport,
    kept_in_the_queue_while_it_cannot_be_added)], stage.why_not(), cleanup)
