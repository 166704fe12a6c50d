#!/usr/bin/env python3
"""Aggregate reports through Postfix: from mail that arrived to a report that
its receiver believes, and what real bounces do to an address."""
import email
import email.policy
import gzip
import os
import re
import shutil
import socketserver
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/report_fill")
SCHEMA = os.path.join(os.environ.get("HANAPER_SHARED") or os.path.join(
    os.environ.get("SRCDIR", "."), "..", "shared"), "schema/dmarc-2.0.xsd")
NS = "{urn:ietf:params:xml:ns:dmarc-2.0}"
DAY_S = 86400
MIDNIGHT_S = 60
# One day for all mail of this test.
if -time.time() % DAY_S < MIDNIGHT_S:
    time.sleep(-time.time() % DAY_S + 1)
TODAY = int(time.time()) // DAY_S
TOMORROW_S = (TODAY + 1) * DAY_S
RUA = ("mailto:reports@sender.example, mailto:dead@dead.example,"
       "mailto:gone@gone.example, mailto:no@other.example")
ZONE = """\
sender.example._report._dmarc.dead.example TXT "v=DMARC1"
sender.example._report._dmarc.gone.example TXT "v=DMARC1"
"""
# The command of an MTA that takes mail by SMTP.
SENDMAIL = """\
#!/usr/bin/python3
import smtplib, sys
from email import message_from_bytes
raw = sys.stdin.buffer.read()
with smtplib.SMTP("127.0.0.1", {port}) as smtp:
    smtp.sendmail(sys.argv[sys.argv.index("-f") + 1],
                  [message_from_bytes(raw)["To"].strip("<>")], raw)
"""
rigs = []


class NobodyHere(socketserver.StreamRequestHandler):
    """The MTA of another host that knows nobody."""

    def handle(self):
        self.wfile.write(b"220 mx.dead.example\r\n")
        for line in self.rfile:
            word = line[:4].upper().strip()
            self.wfile.write(b"550 5.1.1 no such user\r\n"
                             if word == b"RCPT" else
                             b"554 5.5.1 no recipients\r\n"
                             if word == b"DATA" else b"250 2.0.0 so be it\r\n")
            if word == b"QUIT":
                break


def rig():
    if rigs:
        return rigs[0]
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), NobodyHere)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    r = stage.Rig({"report": "send", "report_from": "dmarc@example.org",
                   "report_org": "Example Org", "dmarc": "reject"},
                  postfix_settings={
                      "transport_maps":
                      "inline:{ {dead@dead.example = smtp:[127.0.0.1]:"
                      f"{server.server_address[1]}}} }}",
                      "internal_mail_filter_classes": "bounce",
                      "non_smtpd_milters": "unix:hanaper/milter.sock"})
    rigs.append(r)
    r.zone = r.zone.replace(
        '_dmarc.sender.example TXT "v=DMARC1; p=reject"',
        f'_dmarc.sender.example TXT "v=DMARC1; p=reject; rua={RUA}"').replace(
        '_dmarc.example.org TXT "v=DMARC1; p=none"',
        '_dmarc.example.org TXT "v=DMARC1; p=reject"') + ZONE
    r.write_zone()
    r.start()
    with open(os.path.join(r.top, "sendmail"), "w") as out:
        out.write(SENDMAIL.format(port=r.mta.port))
    os.chmod(out.name, 0o755)
    return r


def cleanup():
    for r in rigs:
        r.stop()


def day_text(day):
    return time.strftime("%Y-%m-%d", time.gmtime(day * DAY_S))


def send(day, status=0, later=0):
    """What `report send` says about that day, asked when it is over."""
    r = rig()
    done = r.hanaper(
        "report", "send", "-c", r.path["hanaper.conf"], "--verbose", "--day",
        day_text(day), "--clock", str(TOMORROW_S + later),
        "--sendmail", os.path.join(r.top, "sendmail"), statuses=(status,))
    return done.stdout.decode()


def inbox(word):
    """Delivered messages that hold `word`, of at least one; waits."""
    new = os.path.join(rig().mta.mail, "inbox", "new")
    deadline = time.monotonic() + postfix.DELIVERY_SECONDS
    while time.monotonic() < deadline:
        found = []
        for name in os.listdir(new) if os.path.isdir(new) else []:
            with open(os.path.join(new, name), "rb") as mail:
                raw = mail.read()
            if word in raw:
                found.append(raw)
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing with {word}: {rig().mta.tail()}")


def due():
    """What `report list` says about today."""
    r = rig()
    return r.hanaper("report", "list", "-c", r.path["hanaper.conf"],
                     "--day", day_text(TODAY)).stdout.decode()


def mail_arrives():
    r = rig()
    r.receive(r.signed(r.mail("news@sender.example", "good")))
    try:
        r.receive(r.mail("news@sender.example", "forged"),
                  client=stage.STRANGER)
        raise AssertionError("the forged one was accepted")
    except postfix.Refused as e:
        tap.check_in("5.7.26", e.text, "reply")
    # answered is earlier than kept
    deadline = time.monotonic() + postfix.DELIVERY_SECONDS
    while "sender.example: 2 messages" not in due():
        tap.check(time.monotonic() < deadline, True, f"in time: {due()}")
        time.sleep(0.05)


def reports_leave():
    said = send(TODAY)
    tap.check_in("reports@sender.example: sent", said)
    tap.check_in("dead@dead.example: sent", said)
    tap.check_in("no@other.example: refused", said)


def the_receiver_believes_it():
    r = rig()
    raw = inbox(b"To: <reports@sender.example>")[0]
    verdict = r.verify(raw, "--from", "dmarc+x@example.org", "--ip",
                       "203.0.113.9")
    tap.check(verdict["dmarc"]["result"], "pass", f"dmarc {verdict}")
    tap.check([s["result"] for s in verdict["dkim"]], ["pass", "pass"])
    message = email.message_from_bytes(raw, policy=email.policy.default)
    packed = list(message.iter_parts())[1].get_content()
    root = ET.fromstring(gzip.decompress(packed))
    tap.check({r.findtext(f"{NS}row/{NS}policy_evaluated/{NS}disposition")
               for r in root.findall(NS + "record")}, {"pass", "reject"})
    tap.check(root.findtext(f"{NS}policy_published/{NS}p"), "reject")
    if os.path.exists(SCHEMA) and shutil.which("xmllint"):
        path = os.path.join(r.top, "report.xml")
        with open(path, "wb") as out:
            out.write(gzip.decompress(packed))
        subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SCHEMA,
                        path], check=True, capture_output=True)


def queue_id(raw):
    """The queue id under which Postfix delivered this."""
    return re.search(rb"\(Postfix\)\s+(?:with \w+\s+)?id (\w+)",
                     raw)[1].decode()


def no_report_about_reports():
    """Neither what we sent nor one that comes to us is counted."""
    r = rig()
    before = due()
    raw = r.receive(r.signed(r.mail(
        "news@sender.example",
        "Report Domain: example.org Submitter: sender.example",
        to="dmarc@example.org")), to=["dmarc@example.org"])
    r.explain(queue_id(raw))
    tap.check(due(), before)


def is_written_down(raw):
    """Delivered is earlier than known to the decision store."""
    return rig().hanaper(
        "explain", "-c", rig().path["hanaper.conf"], queue_id(raw),
        statuses=(0, 66)).returncode == 0


def bounces(count):
    """Wait until so many bounces are known to the decision store."""
    deadline = time.monotonic() + postfix.DELIVERY_SECONDS
    new = os.path.join(rig().mta.mail, "inbox", "new")
    while time.monotonic() < deadline:
        found = [raw for raw in inbox(b"report-type=delivery-status")
                 if b"dead@dead.example" in raw]
        known = [raw for raw in found if is_written_down(raw)]
        if len(known) >= count:
            return known
        time.sleep(0.05)
    raise AssertionError(f"{count} bounces: {os.listdir(new)}")


def fill(day):
    """The same mail on an earlier day."""
    r = rig()
    raw = r.mail("news@sender.example", "earlier")
    path = os.path.join(r.top, "earlier.eml")
    with open(path, "wb") as out:
        out.write(raw)
    with open(path, "rb") as mail:
        subprocess.run([FILL, r.path["hanaper.conf"], r.path["zone"],
                        str(day * DAY_S + 3600), stage.SENDER[0],
                        "<news@sender.example>", "<user@example.org>", "1"],
                       stdin=mail, check=True)


def a_dead_address_gets_none():
    """Postfix's own bounces, one a day; the second in a row counts."""
    tap.check(len(bounces(1)), 1)
    fill(TODAY - 1)
    said = send(TODAY - 1, later=60)
    tap.check_in("a report came back", said)
    tap.check_in("dead@dead.example: sent", said)
    bounces(2)
    fill(TODAY - 2)
    said = send(TODAY - 2, later=120)
    tap.check_in("a report came back", said)
    tap.check_in("dead@dead.example: dead: mail to it came back", said)
    tap.check_in("reports@sender.example: sent", said)
    listed = rig().hanaper("report", "list", "-c",
                           rig().path["hanaper.conf"], "--day",
                           day_text(TODAY - 2), "--clock",
                           str(TOMORROW_S)).stdout.decode()
    tap.check_in("dead@dead.example: dead", listed)
    tap.check_in("reports@sender.example: sent already", send(TODAY))


def bounces_of_other_hosts():
    """They come by SMTP, and their text names us."""
    r = rig()
    sent = inbox(b"To: <gone@gone.example>")
    for raw in sent[:2]:
        dsn = r.mail("MAILER-DAEMON@gone.example", "Undelivered",
                     to="dmarc@example.org", extra=(
                         b"MIME-Version: 1.0\r\nContent-Type: multipart/"
                         b"report; report-type=delivery-status; boundary=b"
                         b"\r\n"))
        token = re.search(rb"Return-Path: <dmarc\+(\w+)@", raw)[1].decode()
        came = r.receive(dsn, sender="", client=stage.STRANGER,
                         to=[f"dmarc+{token}@example.org"])
        r.explain(queue_id(came))
    fill(TODAY - 3)
    said = send(TODAY - 3, later=180)
    tap.check(said.count("a report came back"), 2, said)
    tap.check_in("gone@gone.example: dead", said)


def nothing_became_roots():
    r = rig()
    for name in os.listdir(r.path["state"]):
        owner = os.stat(os.path.join(r.path["state"], name)).st_uid
        tap.check(owner != 0, True, f"{name} of its user")


tap.run([
    ("mail arrives", mail_arrives),
    ("reports leave", reports_leave),
    ("the receiver believes it", the_receiver_believes_it),
    ("no report about reports", no_report_about_reports),
    ("a dead address gets none", a_dead_address_gets_none),
    ("bounces of other hosts", bounces_of_other_hosts),
    ("nothing became root's", nothing_became_roots),
], stage.why_not(), cleanup)
