#!/usr/bin/env python3
"""hanaper archive reconcile: lines of the MTA against stores. Prints TAP."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/fill_store")
NOON = 1780056000  # 2026-05-29 12:00:00 UTC
cases = tap.Cases()


class Scene:
    """A store and a log, written side by side."""

    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnc")
        self.dir = self.path("store")
        self.kept, self.lines = [], []
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def keep(self, qid, at=0):
        name = self.path(f"{len(self.kept)}.eml")
        with open(name, "w", encoding="ascii") as f:
            f.write(f"Subject: {len(self.kept)}\r\n\r\n")
        self.kept.append(f"{qid}@{NOON + at}:{name}")

    def log(self, daemon, text, at=0, host="mx1", service="postfix"):
        self.lines.append((NOON + at, host, f"{service}/{daemon}[77]", text))

    def accept(self, qid, at=0, msgid="", **more):
        self.log("smtpd", f"{qid}: client=c.example[192.0.2.7]", at, **more)
        self.log("cleanup", f"{qid}: message-id=<{msgid or qid}@x>", at,
                 **more)
        self.log("qmgr", f"{qid}: from=<a@example.org>, size=1, nrcpt=1 "
                 "(queue active)", at, **more)

    def to(self, qid, status, at=1, daemon="smtp", relay="m.example[192.0.2."
           "9]:25", reply="250 2.0.0 Ok: queued as 1A2B3C4D", rcpt="b@e.x",
           **more):
        self.log(daemon, f"{qid}: to=<{rcpt}>, relay={relay}, delay=1, delays="
                 f"0.1/0/0/0.9, dsn=2.0.0, status={status} ({reply})", at,
                 **more)

    def removed(self, qid, at=1, **more):
        self.log("qmgr", f"{qid}: removed", at, **more)

    def deliver(self, qid, at=0, **more):
        self.accept(qid, at, **more)
        self.to(qid, "sent", at + 1)
        self.removed(qid, at + 1)

    def write(self, iso=True, name="mail.log", lines=None):
        path = self.path(name)
        text = ""
        for at, host, program, line in lines or self.lines:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.123456+00:00",
                                  time.gmtime(at)) if iso else \
                time.strftime("%b %e %H:%M:%S", time.localtime(at))
            text += f"{stamp} {host} {program}: {line}\n"
        with (gzip.open if name.endswith(".gz") else open)(path, "wt") as f:
            f.write(text)
        os.utime(path, (NOON + 90000, NOON + 90000))
        return path

    def run(self, *args, status=0, store=True, stdin=None):
        if store and not os.path.exists(self.dir):
            self.fill(self.kept)
        p = subprocess.run([HANAPER, "archive", "reconcile", "--json",
                            "--dir", self.dir, *args], capture_output=True,
                           text=True, input=stdin)
        assert p.returncode == status, p
        self.err = p.stderr
        rows = [json.loads(line) for line in p.stdout.splitlines()]
        self.sums = rows.pop() if rows else None
        return [(r["what"], r["queue_id"]) for r in rows], rows


    def fill(self, kept):
        subprocess.run([FILL, self.dir, *kept], check=True,
                       stdout=subprocess.DEVNULL)

    def audit(self, action, *args):
        p = subprocess.run([HANAPER, "archive", "audit", "--json", "--dir",
                            self.dir, "--action", action, *args], check=True,
                           stdout=subprocess.PIPE)
        return [json.loads(line) for line in p.stdout.splitlines()]


def frame(s):
    """So that the log covers the time of what is tested."""
    s.log("anvil", "statistics: max connection rate", -4000)
    s.log("anvil", "statistics: max connection rate", 4000)


@cases.add
def all_is_well():
    with Scene() as s:
        for i, qid in enumerate(("4F1A2B3C", "4cXYz112bzQ", "ABCDE")):
            s.keep(qid, i * 10)
            s.deliver(qid, i * 10)
        found, _ = s.run(s.write())
        assert found == [], found
        assert s.sums == {"delivered": 3, "both": 3, "not_archived": 0,
                          "undelivered": 0, "pending": 0, "not_in_log": 0,
                          "withdrawn": 0}
        event, = s.audit("reconcile")
        assert event["query"] == s.path("mail.log"), event


@cases.add
def delivered_but_never_archived():
    with Scene() as s:
        s.keep("AAAAA1")
        s.deliver("AAAAA1")
        s.deliver("AAAAA2", 10)
        # a message of Postfix's own, and one of a user of this host
        s.log("cleanup", "AAAAA3: message-id=<3@x>", 20)
        s.to("AAAAA3", "sent", 21)
        s.removed("AAAAA3", 21)
        s.log("pickup", "AAAAA4: uid=0 from=<root>", 30)
        s.log("cleanup", "AAAAA4: message-id=<AAAAA1@x>", 30)
        s.to("AAAAA4", "sent", 31, daemon="local", relay="local")
        s.removed("AAAAA4", 31)
        for iso in (True, False):
            found, rows = s.run(s.write(iso), status=1)
            assert found == [("not archived", f"AAAAA{i}") for i in
                             (2, 3, 4)], found
            assert [r["source"] for r in rows] == ["smtp", "internal",
                                                   "local"]
            assert rows[2]["note"] == "1.0 has the same Message-ID", rows
            assert rows[0]["time"].startswith("2026-05-29T12:00:11"), rows
            assert s.sums["delivered"] == 4 and s.sums["both"] == 1


@cases.add
def archived_but_never_delivered():
    with Scene() as s:
        fates = ["refused", "refused", "discarded", "deleted", "expired",
                 "bounced"]
        for i in range(8):
            s.keep(f"BBBBB{i}", i)
            if i != 7:
                s.accept(f"BBBBB{i}", i)
        s.log("cleanup", "BBBBB0: milter-reject: END-OF-MESSAGE from c[1.2.3"
              ".4]: 4.7.1 try again; from=<a> to=<b> proto=SMTP", 0)
        s.log("cleanup", "BBBBB1: reject: body viagra from c; from=<a>", 1)
        s.log("cleanup", "BBBBB2: milter-discard: END-OF-MESSAGE from c", 2)
        s.log("postsuper", "BBBBB3: removed", 3)
        s.to("BBBBB4", "deferred", 4)
        s.log("qmgr", "BBBBB4: from=<a@x>, status=expired, returned to "
              "sender", 4)
        s.removed("BBBBB4", 4)
        s.to("BBBBB5", "bounced", 5)
        s.removed("BBBBB5", 5)
        s.to("BBBBB6", "deferred", 6)  # still there
        frame(s)
        found, rows = s.run(s.write(), status=1)
        assert found == [("not in log", "BBBBB7")] + [
            ("undelivered", f"BBBBB{i}") for i in range(6)], found
        assert [r["fate"] for r in rows[1:]] == fates, rows
        assert s.sums["pending"] == 1 and s.sums["undelivered"] == 6
        # what was refused or discarded when it came is withdrawn, once
        assert s.sums["withdrawn"] == 3, s.sums
        ids = [r["id"] for r in rows[1:4]]
        event, = s.audit("withdrawn")
        assert event["ids"] == ids and "refused" in event["reason"], event
        assert s.audit("withdrawn", "--id", ids[0]) == [event]
        s.keep("BBBBB8", 8)
        s.accept("BBBBB8", 8)
        s.log("cleanup", "BBBBB8: milter-reject: END-OF-MESSAGE from c: 5.7.1"
              " no", 8)
        s.fill(s.kept[-1:])
        s.run("--unrecorded", s.write(), status=1)
        assert s.sums["withdrawn"] == 0 and len(s.audit("withdrawn")) == 1
        for count in (1, 0):
            s.run(s.write(), status=1)
            assert s.sums["withdrawn"] == count, s.sums
        first, second = s.audit("withdrawn")
        assert first == event and len(second["ids"]) == 1, second
        assert second["ids"][0] not in ids


@cases.add
def a_queue_id_is_used_again():
    with Scene() as s:
        s.keep("CCCCC", 0)
        s.deliver("CCCCC", 0)
        s.deliver("CCCCC", 3600)   # not archived
        s.keep("CCCCC", 7200)
        s.accept("CCCCC", 7200)    # its end is not in the log
        s.keep("CCCCC", 10800)
        s.deliver("CCCCC", 10800)
        # the same id on another host and in another instance
        s.accept("CCCCC", 0, host="mx2")
        s.accept("CCCCC", 0, service="postfix-out")
        found, rows = s.run(s.write(), status=1)
        assert found == [("not archived", "CCCCC")], found
        assert rows[0]["time"].startswith("2026-05-29T13:00:01"), rows
        assert s.sums["both"] == 2 and s.sums["pending"] == 1, s.sums


@cases.add
def through_a_filter_and_back():
    with Scene() as s:
        s.keep("DDDDD1")
        s.accept("DDDDD1")
        s.accept("DDDDD2", 1, msgid="DDDDD1")
        s.to("DDDDD1", "sent", 1, relay="127.0.0.1[127.0.0.1]:10024", reply=
             "250 2.0.0 from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: "
             "queued as DDDDD2")
        s.removed("DDDDD1", 1)
        s.to("DDDDD2", "sent", 2)
        s.removed("DDDDD2", 2)
        found, _ = s.run(s.write())
        assert found == [] and s.sums["delivered"] == s.sums["both"] == 1
        # the second one was deleted: the first was not delivered
        s.lines = [line for line in s.lines if "DDDDD2: to" not in line[3]]
        found, _ = s.run(s.write(), status=1)
        assert found == [("undelivered", "DDDDD1")], found
        # only the way back is archived
        s.lines.clear()
        s.keep("DDDDD4", 1)
        os.rename(s.dir, s.path("old"))
        s.accept("DDDDD3")
        s.accept("DDDDD4", 1)
        s.to("DDDDD3", "sent", 1, relay="127.0.0.1[127.0.0.1]:10024",
             reply="250 2.0.0 Ok: queued as DDDDD4")
        s.to("DDDDD4", "sent", 2)
        found, _ = s.run(s.write())
        assert found == [] and s.sums["both"] == 1, (found, s.sums)
        # queued again by the operator
        s.lines.clear()
        s.accept("DDDDD1")
        s.log("postsuper", "DDDDD1: requeued", 5)
        s.log("pickup", "DDDDD5: uid=107 from=<a@x> orig_id=DDDDD1", 6)
        s.log("cleanup", "DDDDD5: message-id=<DDDDD1@x>", 6)
        s.to("DDDDD5", "sent", 7)
        s.removed("DDDDD5", 7)
        found, _ = s.run(s.write())
        assert found == [], found


@cases.add
def what_strangers_say_is_not_what_happened():
    with Scene() as s:
        for i in range(4):
            s.keep(f"EEEEE{i}", i)
            s.accept(f"EEEEE{i}", i)
        s.to("EEEEE0", "bounced", reply="host said: 550 no, status=sent (250 "
             "ok)")
        s.to("EEEEE1", "bounced", rcpt='"x>, dsn=2.0.0, status=sent (ok)"@y')
        s.to("EEEEE2", "bounced", reply="550 EEEEE3: to=<q>, status=sent (x)")
        s.to("EEEEE3", "bounced", reply="550 queued as EEEEE0")
        for i in range(4):
            s.removed(f"EEEEE{i}", i + 1)
        # a server elsewhere whose ids look like ours
        s.accept("EEEEE4", 4)
        s.to("EEEEE4", "sent", 5, reply="250 ok: queued as EEEEE0")
        s.removed("EEEEE4", 5)
        s.log("smtpd", "warning: hostname x does not resolve", 5)
        s.log("smtpd", "NOQUEUE: reject: RCPT from x", 5)
        s.lines.append((NOON, "mx1", "postfix", "no colon"))
        s.lines.append((NOON, "mx1", "sshd[1]", "EEEEE0: removed"))
        found, _ = s.run(s.write(), status=1)
        assert sorted(found) == [("not archived", "EEEEE4")] + [
            ("undelivered", f"EEEEE{i}") for i in range(4)], found


@cases.add
def in_parts_packed_and_in_any_order():
    with Scene() as s:
        s.keep("FFFFF1")
        s.keep("FFFFF2", 100)
        s.deliver("FFFFF1")
        s.deliver("FFFFF2", 100)
        s.lines.sort(key=lambda line: line[0])
        for cut in range(1, len(s.lines)):
            old = s.write(cut % 2, "mail.log.1.gz", s.lines[:cut])
            new = s.write(True, "mail.log", s.lines[cut:])
            found, _ = s.run(new, old)
            assert found == [] and s.sums["both"] == 2, (cut, s.sums)
        with open(s.write(), encoding="ascii") as f:
            s.run("-", stdin=f.read())
        # the end of a life whose beginning is not in the log
        for cut in range(1, 6):
            found, _ = s.run(s.write(lines=s.lines[cut:]))
            assert found == [], (cut, found)
        with open(old, "r+b") as f:
            f.truncate(40)
        s.run(new, old, status=65)


class Sendmail(Scene):
    """The same in the words of Sendmail."""

    def say(self, text, at=0, program="sm-mta", host="mx1"):
        self.lines.append((NOON + at, host, f"{program}[99]", text))

    def accept(self, qid, at=0, msgid="", relay="c.example [192.0.2.7]",
               sender="<a@example.org>", **more):
        self.say(f"{qid}: from={sender}, size=1, class=0, nrcpts=1, msgid="
                 f"<{msgid or qid}@x>, proto=ESMTP, daemon=MTA-v4, relay="
                 f"{relay}", at, **more)

    def to(self, qid, stat, at=1, rcpt="<b@e.x>", dsn="2.0.0",
           relay="m.example. [192.0.2.9]", **more):
        self.say(f"{qid}: to={rcpt}, delay=00:00:01, xdelay=00:00:01, mailer="
                 f"esmtp, pri=30001, relay={relay}, dsn={dsn}, stat={stat}",
                 at, **more)


@cases.add
def lines_of_sendmail():
    with Sendmail() as s:
        qids = [f"4AUH35bK{n:06}" for n in range(12)]
        for i in range(12):
            if i != 1:
                s.keep(qids[i], i)
            s.accept(qids[i], i)
        s.to(qids[0], "Sent (ok 1780 queued)")
        s.to(qids[1], "Sent", rcpt="joe")
        # a milter behind ours
        s.say(f"{qids[2]}: Milter: data, reject=550 5.7.1 no", 2)
        s.to(qids[2], "no", dsn="5.7.1")
        s.say(f"{qids[3]}: Milter: data, discard", 3)
        s.say(f"{qids[3]}: discarded", 3)
        s.say(f"{qids[4]}: milter=other, reject=451 4.7.1 later", 4)
        # what does not end it
        s.say(f"{qids[5]}: Milter: to=<q@e.x>, reject=550 5.1.1 no", 5)
        s.say(f"{qids[5]}: Milter (hanaper) add: header: X: reject=", 5)
        s.say(f"{qids[5]}: milter=other, action=rcpt, reject=550 no", 5)
        s.to(qids[5], "Deferred: Connection refused by m.example.", 5,
             dsn="4.0.0")
        s.say(f"{qids[5]}: 4AUH35bL000099: sender notify: Warning: could not"
              " send message for past 4 hours", 6)
        # failures, at once, in part, after days
        s.to(qids[6], "User unknown", 6, dsn="5.1.1")
        s.say(f"{qids[6]}: 4AUH35bM000099: DSN: User unknown", 7)
        s.to(qids[7], "User unknown", 7, dsn="5.1.1")
        s.to(qids[7], "Sent (250 ok)", 7, rcpt="<c@e.x>,<d@e.x>")
        s.say(f"{qids[7]}: 4AUH35bN000099: DSN: User unknown", 8)
        s.to(qids[8], "Deferred", 8, dsn="4.4.2")
        s.say(f"{qids[8]}: 4AUH35bO000099: return to sender: Cannot send "
              "message for 5 days", 9)
        s.to(qids[9], "User unknown", 9, dsn="5.1.1")
        s.to(qids[9], "Deferred", 9, dsn="4.4.2", rcpt="<c@e.x>")
        s.say(f"{qids[9]}: 4AUH35bP000099: DSN: User unknown", 10)
        s.say(f"{qids[10]}: milter=other, quarantine=look at it", 10)
        # what strangers say
        s.to(qids[11], "User unknown", 11, dsn="5.1.1",
             rcpt='<"x>, dsn=2.0.0, stat=Sent (ok)"@y>')
        s.say(f"{qids[11]}: 4AUH35bQ000099: DSN: Service unavailable", 12)
        frame(s)
        found, rows = s.run(s.write(), status=1)
        wanted = {qids[2]: "refused", qids[3]: "discarded",
                  qids[4]: "refused", qids[6]: "bounced",
                  qids[8]: "expired", qids[11]: "bounced"}
        assert found == [("not archived", qids[1])] + [
            ("undelivered", qid) for qid in wanted], found
        assert {r["queue_id"]: r["fate"] for r in rows
                if r["what"] == "undelivered"} == wanted, rows
        assert s.sums["pending"] == 3 and s.sums["both"] == 2, s.sums
        assert s.sums["withdrawn"] == 3, s.sums
        assert rows[0]["message_id"] == f"{qids[1]}@x", rows[0]


@cases.add
def through_the_submission_of_sendmail():
    with Sendmail() as s:
        s.keep("4AUH35bK000002", 1)
        s.accept("4AUH35bJ000001", relay="root@localhost", program="sendmail")
        s.accept("4AUH35bK000002", 1, relay="localhost [127.0.0.1]")
        s.to("4AUH35bJ000001", "Sent (4AUH35bK000002 Message accepted for "
             "delivery)", 1, relay="[127.0.0.1] [127.0.0.1]",
             program="sendmail")
        s.to("4AUH35bK000002", "Sent (250 ok)", 2)
        found, _ = s.run(s.write())
        assert found == [] and s.sums["both"] == s.sums["delivered"] == 1, (
            found, s.sums)
        # the line of a milter before that of the beginning, and no end
        s.lines.clear()
        s.say("4AUH35bK000002: Milter: data, reject=550 5.7.1 no", 1)
        s.accept("4AUH35bK000002", 1)
        s.say("NOQUEUE: connect from c.example", 1)
        s.say("4AUH35bK000002", 1)
        s.say("4AUH35bKxx0002: from=<>, size=1", 1)
        found, rows = s.run(s.write(iso=False), status=1)
        assert found == [("undelivered", "4AUH35bK000002")], found
        assert rows[0]["source"] == "smtp", rows


@cases.add
def without_a_year():
    with Scene() as s:
        path = s.path("mail.log")
        s.keep("ABCDEF1")
        for stamp, written, year in (
                ("Dec 31 23:59:59", (2026, 1, 1), 2025),
                ("Jan  1 00:00:00", (2026, 1, 1), 2026),
                ("Feb 29 10:00:00", (2028, 3, 1), 2028),
                ("May  5 10:00:00", (2026, 5, 5), 2026)):
            with open(path, "w", encoding="ascii") as f:
                f.write(f"{stamp} mx1 postfix/cleanup[1]: ABCDEF2: message-id"
                        "=<x>\n")
                f.write(f"{stamp} mx1 postfix/local[1]: ABCDEF2: to=<a>, "
                        "relay=local, dsn=2.0.0, status=sent (delivered)\n")
            at = time.mktime((*written, 12, 0, 0, 0, 0, -1))
            os.utime(path, (at, at))
            _, rows = s.run(path, status=1)
            when = time.localtime(time.mktime(time.strptime(
                f"{year} {stamp}", "%Y %b %d %H:%M:%S")))
            got = rows[0]["time"]
            want = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(
                time.mktime(when)))
            assert got.startswith(want), (stamp, got, want)


@cases.add
def errors():
    with Scene() as s:
        s.keep("ABCDE1")
        path = s.path("mail.log")
        with open(path, "wb") as f:
            f.write(b"no log\n\0\xff" + b"x" * 100000 + b"\n2026-13\nMay 99 "
                    b"99:99:99 h postfix/x: A: b\n")
        s.run(path, status=65)
        assert "no line of Postfix's or Sendmail's in 4 lines" in s.err, s.err
        s.run(s.path("nowhere"), status=66)
        s.run("--slack", "x", path, status=64)


tap.run(cases)
