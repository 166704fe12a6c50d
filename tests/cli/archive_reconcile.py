#!/usr/bin/env python3
"""hanaper archive reconcile: lines of Postfix against stores. Prints TAP."""
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
            subprocess.run([FILL, self.dir, *self.kept], check=True,
                           stdout=subprocess.DEVNULL)
        p = subprocess.run([HANAPER, "archive", "reconcile", "--json",
                            "--dir", self.dir, *args], capture_output=True,
                           text=True, input=stdin)
        assert p.returncode == status, p
        self.err = p.stderr
        rows = [json.loads(line) for line in p.stdout.splitlines()]
        self.sums = rows.pop() if rows else None
        return [(r["what"], r["queue_id"]) for r in rows], rows


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
                          "undelivered": 0, "pending": 0, "not_in_log": 0}


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
        assert "no line of Postfix's in 4 lines" in s.err, s.err
        s.run(s.path("nowhere"), status=66)
        s.run("--slack", "x", path, status=64)


tap.run(cases)
