#!/usr/bin/env python3
"""What is signed is what the MTA queues: signatures and seals are checked by
python3-dkim on the queue file itself, with all edits in it, and on what a next
hop gets over SMTP."""
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

try:
    import dkim
except ImportError:
    # Debian's module belongs to Debian's interpreter.
    if os.path.exists("/usr/bin/python3") and not os.environ.get("RETRIED"):
        os.execve("/usr/bin/python3", ["/usr/bin/python3", *sys.argv],
                  dict(os.environ, RETRIED="1"))
    dkim = None

SINK_SECONDS = 30
HEAD = ("From: Jo <jo@example.org>\r\nTo: you@remote.example\r\n"
        "Date: Mon, 30 Nov 2026 12:00:00 +0000\r\n"
        "Message-ID: <1@example.org>\r\n")
SHAPES = {
    "plain": HEAD + "Subject: plain\r\n\r\nHello\r\n",
    "no body": HEAD + "Subject: no body\r\n\r\n",
    "folds and blanks": HEAD + "Subject:  two  blanks \t\r\n\tand a fold  \r\n"
                        "To:also@remote.example\r\nX-Empty:\r\n\r\n"
                        " lead\r\ntrail \t \r\n.dot\r\n..\r\n\r\n\r\n",
    "8-bit": HEAD + "Subject: Größe\r\n\r\nGrüße\r\n",
    "no Date, no Message-ID": "From: jo@example.org\r\nSubject: bare\r\n\r\nx",
    "long fields": HEAD + "Subject: " + "w " * 400 + "\r\nX-Long: "
                   + "v" * 900 + "\r\n\r\n" + "0123456789 \r\n" * 3000,
    "many fields": HEAD + "Subject: many\r\n" + "".join(
        f"X-F{i}: {i}\r\n" for i in range(300)) + "\r\nHello\r\n",
    "forged results": HEAD + "Subject: forged\r\n"
                      f"Authentication-Results: {stage.AUTHSERV}; spf=pass\r\n"
                      "Authentication-Results: other.example; spf=pass\r\n"
                      "X-Hanaper-Disposition: quarantine\r\n\r\nHello\r\n",
}
rigs = {}


def rig():
    """Everything is held: the queue file stays as cleanup(8) wrote it."""
    if "hold" not in rigs:
        rigs["hold"] = stage.Rig(
            {"arc": "seal", "arc_domain": "example.org",
             "arc_seal": "list.example.org", "long_lines": "refold"},
            postfix_settings={"smtpd_end_of_data_restrictions":
                              "check_client_access static:hold"})
        rigs["hold"].start()
    return rigs["hold"]


def cleanup():
    for r in rigs.values():
        r.stop()


def keys(r):
    """A look-up of key records for python3-dkim, out of the zone file."""
    with open(r.path["zone"]) as text:
        lines = re.findall(r"^(\S+_domainkey\S*) TXT (.*)$", text.read(), re.M)
    found = {name: "".join(re.findall('"([^"]*)"', data)).encode()
             for name, data in lines}
    return lambda name, timeout=5: found.get(name.decode().rstrip("."))


def queued(r, qid):
    """Header and body as the queue file has them, lines ended by CRLF."""
    done = subprocess.run(["postcat", "-c", r.mta.etc, "-hbq", qid],
                          capture_output=True, check=True)
    return done.stdout.replace(b"\n", b"\r\n")


def verdicts(raw, dnsfunc):
    d = dkim.DKIM(raw)
    count = len(postfix.values(raw, "DKIM-Signature"))
    return [d.verify(idx=i, dnsfunc=dnsfunc) for i in range(count)]


def queue_file(shape):
    r = rig()
    qid = r.mta.send(SHAPES[shape].encode(), "jo@example.org",
                     ["you@remote.example"])
    raw = queued(r, qid)
    tap.check(verdicts(raw, keys(r)), [True, True], "signatures")
    tap.check([s["result"] for s in r.verify(raw)["dkim"]], ["pass", "pass"],
              "ours")
    changed = raw.replace(b"Subject:", b"Subject: [list]", 1)
    tap.check(verdicts(changed, keys(r)), [False, False], "changed")


def sealed():
    """Inbound, with forged results that are deleted: the seal covers what
    is left, our own field on top included in the set."""
    r = rig()
    raw = r.signed(r.mail(
        "news@sender.example", "for the list",
        extra=f"Authentication-Results: {stage.AUTHSERV}; dkim=pass\r\n"
        .encode()))
    qid = r.mta.send(raw, "news@sender.example", ["all@list.example.org"],
                     client=stage.SENDER)
    raw = queued(r, qid)
    got = stage.results(raw)
    tap.check((got.get("dkim"), got.get("spf")), (["pass"], ["pass"]))
    tap.check(len(postfix.values(raw, "Authentication-Results")), 1, "fields")
    tap.check(len(postfix.values(raw, "ARC-Seal")), 1, "seals")
    cv, _, reason = dkim.arc_verify(raw, dnsfunc=keys(r))
    tap.check((cv, reason), (b"pass", "success"), "python3-dkim")
    tap.check(verdicts(raw, keys(r)), [True], "the sender's signature")


def refolded():
    """Long fields are folded anew beside forged ones that go: each edit
    meets the field it is meant for."""
    r = rig()
    long = " (%s)" % ("x" * 60 + " ") * 20
    forged = f"Authentication-Results: {stage.AUTHSERV}; spf=pass"
    extra = "\r\n".join([
        forged, "Authentication-Results: a.example; none" + long,
        forged + long, "References:" + "".join(
            f" <{i}@{'r' * 40}.example>" for i in range(25)), ""])
    qid = r.mta.send(r.mail("jo@example.org", "long", extra=extra.encode()),
                     "jo@example.org", ["you@remote.example"])
    raw = queued(r, qid)
    tap.check(verdicts(raw, keys(r)), [True, True], "signatures")
    got = postfix.values(raw, "Authentication-Results")
    tap.check([v.split(";")[0].strip() for v in got], ["a.example"], "results")
    tap.check(len(postfix.values(raw, "References")), 1, "references")
    tap.check(max(len(line) for line in raw.split(b"\r\n")) < 100, True,
              "long lines")


def port_of_sink(folder):
    port = postfix.free_port()
    argv = ["smtp-sink", "-u", "nobody", "-R", folder, "-d", "%M.",
            f"127.0.0.1:{port}", "100"]
    return port, subprocess.Popen(argv, stdin=subprocess.DEVNULL)


def dumped(folder, count):
    deadline = time.monotonic() + SINK_SECONDS
    while True:
        mails = []
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as mail:
                mails.append(mail.read())
        # smtp-sink ends what it wrote with an empty line
        if len(mails) == count and all(m.endswith(b"\n\n") for m in mails):
            return mails
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(mails)} of {count} came to the sink")
        time.sleep(0.1)


def next_hop():
    r = rigs["sink"] = stage.Rig()
    folder = os.path.join(r.top, "sink")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    port, sink = port_of_sink(folder)
    try:
        r.mta.settings["virtual_mailbox_domains"] = ""
        r.mta.settings["relayhost"] = f"[127.0.0.1]:{port}"
        r.start()
        for raw in SHAPES.values():
            r.mta.send(raw.encode(), "jo@example.org", ["you@remote.example"])
        for mail in dumped(folder, len(SHAPES)):
            # an envelope of X- fields stands before, a line end behind
            raw = mail[:-1].replace(b"\n", b"\r\n")
            tap.check(verdicts(raw, keys(r)), [True, True],
                      postfix.values(raw, "Subject")[0][:40])
    finally:
        sink.terminate()
        sink.wait()


def why_not():
    if dkim is None:
        return "python3-dkim is not installed"
    return stage.why_not()


tap.run([(f"queue file: {shape}", lambda s=shape: queue_file(s))
         for shape in SHAPES]
        + [("queue file: results and a seal", sealed),
           ("queue file: long fields beside forged ones", refolded),
           ("over SMTP to a next hop", next_hop)],
        why_not(), cleanup)
