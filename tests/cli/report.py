#!/usr/bin/env python3
"""hanaper report, end to end: messages through the flow into the decision
store, XML by the schema, mails to a sendmail command that keeps them, refused
destinations, repeats, bounces."""
import email
import email.policy
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests"))
import tap  # noqa: E402
from tap import check, check_in  # noqa: E402

HANAPER = os.environ["HANAPER"]
FILL = os.path.join(os.environ["BUILDDIR"], "tests", "cli", "report_fill")
SHARED = os.environ.get("HANAPER_SHARED") or os.path.join(
    os.environ["SRCDIR"], "..", "shared")
SCHEMA = os.path.join(SHARED, "schema", "dmarc-2.0.xsd")
NS = "{urn:ietf:params:xml:ns:dmarc-2.0}"
DAY, DAY_S = "2023-11-14", 1699920000
NEXT = DAY_S + 86400
work = tempfile.TemporaryDirectory()
cases = tap.Cases()

ZONE = """\
_dmarc.strict.example TXT "v=DMARC1; p=reject; sp=quarantine; fo=1; \
rua=mailto:d@strict.example,mailto:yes@other.example,mailto:no@third.example"
strict.example TXT "v=spf1 ip4:192.0.2.1 -all"
strict.example._report._dmarc.other.example TXT "v=DMARC1"
_dmarc.plain.example TXT "v=DMARC1; p=none; rua=mailto:d@plain.example"
_dmarc.slow.example TXT "v=DMARC1; p=none; rua=mailto:d@slowly.example"
slow.example._report._dmarc.slowly.example TXT !SERVFAIL
_dmarc.hidden.example TXT "v=DMARC1; p=none; rua=mailto:d@hidden.example"
"""
SENDMAIL = """\
#!/bin/sh
[ -e {dir}/status ] && exit "$(cat {dir}/status)"
n=$(ls {dir} | wc -l)
echo "$*" >{dir}/$n.args
cat >{dir}/$n.eml
"""


def path(name):
    return os.path.join(work.name, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def setup():
    os.mkdir(path("state"))
    os.mkdir(path("mails"))
    write("zone", ZONE)
    write("conf", f"state_dir = {path('state')}\nreport = send\n"
          "report_from = dmarc@us.example\nreport_org = Us & Co\n"
          "report_exclude = hidden.example\nreport_hour = 2\n"
          "dmarc = quarantine\n")
    write("sendmail", SENDMAIL.format(dir=path("mails")))
    os.chmod(path("sendmail"), 0o755)


def fill(author, sender="<b@strict.example>", ip="192.0.2.1", count=1,
         when=DAY_S + 3600, rcpt="<r@us.example>", header=""):
    text = f"From: {author}\r\n{header}\r\nHi\r\n"
    with open(write("message", text), "rb") as f:
        subprocess.run([FILL, path("conf"), path("zone"), str(when), ip,
                        sender, rcpt, str(count)], stdin=f, check=True)


def report(*args, now=NEXT + 3 * 3600, status=0, setting=None):
    command = [HANAPER, "report", *args, "-c", path("conf"), "--clock",
               str(now)]
    if setting:
        command += ["-o", setting]
    if args[0] == "send":
        command += ["--zone", path("zone"), "--sendmail", path("sendmail")]
    done = subprocess.run(command, capture_output=True, timeout=60,
                          check=False)
    if done.returncode != status:
        raise AssertionError(f"{command}: {done.returncode} not {status}\n"
                             f"{done.stdout.decode()}{done.stderr.decode()}")
    return done


def mails():
    """[(arguments, message)] since the last call."""
    out = []
    for name in sorted(os.listdir(path("mails"))):
        if name.endswith(".eml"):
            base = os.path.join(path("mails"), name[:-4])
            with open(base + ".eml", "rb") as f:
                message = email.message_from_binary_file(
                    f, policy=email.policy.default)
            with open(base + ".args", encoding="utf-8") as f:
                out.append((f.read().split(), message))
    for name in os.listdir(path("mails")):
        os.unlink(os.path.join(path("mails"), name))
    return sorted(out, key=lambda m: m[1]["To"])


def sendmail_says(status):
    write("mails/status", str(status))


def xml_of(packed):
    return ET.fromstring(gzip.decompress(packed))


def text_of(root, where):
    return root.findtext("/".join(NS + part for part in where.split("/")))


@cases.add
def messages_are_counted():
    fill("a@strict.example", count=3)
    fill("a@strict.example", sender="<x@else.example>", ip="2001:db8::7",
         count=2)
    fill("a@strict.example", when=NEXT + 60)
    fill("a@plain.example")
    fill("a@hidden.example")
    fill("a@slow.example")
    fill("a@strict.example", header="Subject: Report Domain: us.example "
         "Submitter: strict.example Report-ID: <x>\r\n")
    root = xml_of(report("dmarc", "--domain", "strict.example", "--day", DAY,
                         "-O", "-").stdout)
    check(root.tag, NS + "feedback")
    check(text_of(root, "version"), "1.0")
    check(text_of(root, "report_metadata/org_name"), "Us & Co")
    check(text_of(root, "report_metadata/email"), "dmarc@us.example")
    check(text_of(root, "report_metadata/date_range/begin"), str(DAY_S))
    check(text_of(root, "report_metadata/date_range/end"), str(NEXT - 1))
    check(text_of(root, "policy_published/domain"), "strict.example")
    check(text_of(root, "policy_published/sp"), "quarantine")
    check(text_of(root, "policy_published/np"), "quarantine")
    check(text_of(root, "policy_published/discovery_method"), "treewalk")
    records = root.findall(NS + "record")
    check([text_of(r, "row/count") for r in records], ["3", "2"])
    check([text_of(r, "row/policy_evaluated/disposition") for r in records],
          ["pass", "quarantine"])
    check(text_of(records[1], "row/policy_evaluated/reason/type"),
          "local_policy")
    check(text_of(records[1], "row/source_ip"), "2001:db8::7")
    check(text_of(records[1], "identifiers/envelope_from"), "else.example")


@cases.add
def the_schema_agrees():
    if not os.path.exists(SCHEMA):
        raise tap.Skip("shared data absent")
    if shutil.which("xmllint") is None:
        raise tap.Skip("no xmllint (libxml2-utils)")
    hostile = "\"<&'\x7f" + "é" * 3 + "@x"
    fill("a@strict.example", sender=f"<{hostile}.example>", count=1,
         when=DAY_S + 7200)
    fill("a@strict.example", sender="<>", when=DAY_S + 7201)
    for domain in ("strict.example", "plain.example", "slow.example"):
        packed = report("dmarc", "--domain", domain, "--day", DAY, "-O",
                        "-").stdout
        with open(path("report.xml"), "wb") as f:
            f.write(gzip.decompress(packed))
        done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema",
                               SCHEMA, path("report.xml")],
                              capture_output=True, check=False)
        check((domain, done.returncode, done.stderr.decode()[-10:]),
              (domain, 0, "validates\n"))


@cases.add
def files_are_named_by_the_rule():
    here = os.getcwd()
    os.mkdir(path("out"))
    os.chdir(path("out"))
    try:
        said = report("dmarc", "--domain", "PLAIN.example", "--day", DAY)
    finally:
        os.chdir(here)
    name = said.stdout.decode().strip()
    match = re.fullmatch(r"us\.example!plain\.example!(\d+)!(\d+)!"
                         r"([A-Za-z0-9]+)\.xml\.gz", name)
    check(match is not None, True, name)
    check((match[1], match[2]), (str(DAY_S), str(NEXT - 1)))
    with open(os.path.join(path("out"), name), "rb") as f:
        check(text_of(xml_of(f.read()), "report_metadata/report_id"),
              match[3])


@cases.add
def a_preview_is_for_people():
    said = report("dmarc", "--domain", "strict.example", "--day", DAY,
                  "--preview").stdout.decode()
    check_in("2001:db8::7  from strict.example, envelope else.example", said)
    check_in("because local_policy: dmarc = quarantine", said)


@cases.add
def nothing_counted_is_said():
    done = report("dmarc", "--domain", "nobody.example", "--day", DAY,
                  status=1)
    check_in(b"no mail of 2023-11-14 was counted", done.stderr)
    report("dmarc", status=64)
    report("dmarc", "--domain", "!bounce", status=64)
    for day in ("2023-02-29", "2023-1-01", "yesterday", "2023-11-14x"):
        report("list", "--day", day, status=64)


@cases.add
def what_is_due_is_listed():
    rows = [json.loads(line) for line in
            report("list", "--json").stdout.splitlines()]
    check([r["domain"] for r in rows], ["hidden.example", "plain.example",
                                        "slow.example", "strict.example"])
    check([r["excluded"] for r in rows], [True, False, False, False])
    check([d["state"] for d in rows[3]["destinations"]], ["due"] * 3)
    check_in(b"strict.example: ", report("list").stdout)
    check(report("dmarc", "--list").stdout, report("list").stdout)


@cases.add
def a_queue_id_used_again_explains_all():
    done = subprocess.run([HANAPER, "explain", "-c", path("conf"), "QUEUEID"],
                          capture_output=True, text=True, check=True)
    check(done.stdout.count("queue id QUEUEID") >= 10, True, done.stdout[:99])
    check_in("It was delivered: DMARC passes", done.stdout)


@cases.add
def sending_must_be_wanted():
    for setting in ("report=collect", "report_from=none"):
        done = report("send", status=78, setting=setting)
        check_in(b"report", done.stderr)
    report("send", "--day", "2023-11-15", status=64)
    check(mails(), [])


@cases.add
def reports_must_be_signed():
    def check_says(*settings):
        return subprocess.run([HANAPER, "check", "--no-dns", "-c",
                               path("conf"), "-o", f"key_dir={path('keys')}",
                               *settings], capture_output=True, text=True,
                              check=False).stdout

    def key(domain):
        subprocess.run([HANAPER, "key", "generate", domain, "--key-dir",
                        path("keys"), "--type", "ed25519"], check=True,
                       capture_output=True)
    key("other.example")
    check_in("there is no key of us.example", check_says())
    check("no key of" in check_says("-o", "report=collect"), False)
    key("us.example")
    check("no key of" in check_says(), False)
    sub = ("-o", "report_from=dmarc@sub.us.example")
    check_in("there is no key of sub.us.example", check_says(*sub))
    check("no key of" in check_says(*sub, "-o", "sign_subdomains=yes"), False)


@cases.add
def a_dry_run_sends_nothing():
    said = report("send", "--dry-run", status=75).stdout.decode()
    check_in("2023-11-14 strict.example d@strict.example: would be sent", said)
    check_in("yes@other.example: would be sent", said)
    check_in("no@third.example: refused: it has not agreed", said)
    check_in("d@slowly.example: to be tried again", said)
    check("hidden" in said, False)
    check(mails(), [])
    check(os.path.exists(path("state/reports.db")), False)


@cases.add
def not_before_the_hour():
    report("send", now=NEXT + 2 * 3600 - 1)
    check(mails(), [])


@cases.add
def reports_are_mailed_once():
    done = report("send", status=75)  # slowly.example does not answer
    check(done.stdout, b"", "quiet without --verbose")
    sent = mails()
    check([m["To"] for _, m in sent],
          ["d@plain.example", "d@strict.example", "yes@other.example"])
    check(len({a[3] for a, _ in sent}), 3, "envelope senders")
    for arguments, message in sent:
        check(arguments[:3], ["-t", "-i", "-f"])
        check(re.fullmatch(r"dmarc\+[0-9a-f]{16}@us\.example",
                           arguments[3]) is not None, True, arguments[3])
        check(message["From"], "Us & Co <dmarc@us.example>")
        check(message["Auto-Submitted"], "auto-generated")
        text, attached = message.iter_parts()
        check_in("DMARC aggregate report", text.get_content())
        check(attached.get_content_type(), "application/gzip")
        root = xml_of(attached.get_content())
        report_id = text_of(root, "report_metadata/report_id")
        domain = text_of(root, "policy_published/domain")
        check(message["Subject"], f"Report Domain: {domain} Submitter: "
              f"us.example Report-ID: <{report_id}>")
        check(attached.get_filename(), f"us.example!{domain}!{DAY_S}!"
              f"{NEXT - 1}!{report_id}.xml.gz")
    report("send", status=75)
    check(mails(), [])
    states = {r["domain"]: [d["state"] for d in r["destinations"]] for r in
              map(json.loads, report("list", "--json").stdout.splitlines())}
    check(states["strict.example"], ["sent", "sent", "due"])


@cases.add
def a_destination_that_answers_later_gets_it():
    write("zone", ZONE.replace("TXT !SERVFAIL", 'TXT "v=DMARC1"'))
    report("send")
    check([m["To"] for _, m in mails()], ["d@slowly.example"])


@cases.add
def what_sendmail_refuses_is_tried_again():
    later = NEXT + 86400 + 4 * 3600
    sendmail_says(75)
    done = report("send", now=later, status=75)
    check_in(b"to d@strict.example: sendmail ended with status 75",
             done.stderr)
    mails()
    report("send", now=later + 60, status=75)
    check(mails(), [], "too early")
    report("send", now=later + 901)
    check([m["To"] for _, m in mails()],
          ["d@strict.example", "yes@other.example"])


@cases.add
def what_is_refused_for_good_is_given_up():
    when = NEXT + 86400
    fill("a@plain.example", when=when + 60)
    sendmail_says(67)
    report("send", now=when + 86400 + 4 * 3600, status=1)
    mails()
    report("send", now=when + 86400 + 8 * 3600)
    check(mails(), [])


@cases.add
def a_missing_command_is_no_loss():
    when = NEXT + 2 * 86400
    now = when + 86400 + 4 * 3600
    fill("a@plain.example", when=when + 60)
    os.rename(path("sendmail"), path("away"))
    report("send", now=now, status=75)
    os.rename(path("away"), path("sendmail"))
    report("send", now=now + 901)
    check(len(mails()), 1)


@cases.add
def addresses_that_bounce_are_left_alone():
    dsn = "Content-Type: multipart/report; report-type=delivery-status\r\n"
    expected = [True, True, False, True]  # the third falls into its rest
    for number, sent in enumerate(expected):
        when = NEXT + (3 + number) * 86400 + (86400 if number == 3 else 0)
        now = when + 86400 + 4 * 3600
        fill("a@plain.example", when=when + 60)
        said = report("send", "--verbose", "--day", day_of(when),
                      now=now).stdout.decode()
        got = mails()
        check(len(got), int(sent), f"mails of day {number}: {said}")
        if not sent:
            check_in("dead: mail to it came back", said)
        for arguments, _ in got:
            fill("MAILER-DAEMON@plain.example", sender="<>",
                 rcpt=f"<{arguments[3]}>", header=dsn, when=now + 5)


def day_of(seconds):
    import datetime
    return datetime.datetime.fromtimestamp(
        seconds, datetime.timezone.utc).strftime("%Y-%m-%d")


setup()
tap.run(cases, cleanup=work.cleanup)
