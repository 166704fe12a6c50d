#!/usr/bin/env python3
"""Turning pages (--cursor) while mail comes in, is erased, expires and is
indexed anew: none twice, none skipped. Prints TAP."""
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND, message, nobody  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

cases = tap.Cases()
STOCK = 60  # messages that stay


def archive(d, *words, status=0, **more):
    run = subprocess.run([HANAPER, "archive", words[0], "-c", d.conf,
                          *words[1:]], capture_output=True, text=True,
                         timeout=120, **more)
    assert run.returncode in (status, 0), (words, run)
    return run


def owner(d):
    return {"user": nobody(), "group": os.stat(d.path("archive")).st_gid,
            "extra_groups": []} if os.geteuid() == 0 else {}


def page(d, query, after, limit):
    """Ids of a page, and the cursor of the next one."""
    words = ["--unrecorded", "--json", "--limit", str(limit)]
    run = archive(d, "search", *words, *(["--cursor", after] if after else []),
                  query, status=1)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    cursor = [line.rsplit(" ", 1)[1] for line in run.stderr.splitlines()
              if "--cursor" in line]
    return [r["id"] for r in rows], cursor[0] if cursor else None


def every_page(d, query, limit):
    found, after = [], None
    while True:
        ids, after = page(d, query, after, limit)
        found += ids
        if after is None:
            return found


class Meanwhile:
    """Calls `each` again and again."""

    def __init__(self, each):
        self.each, self.stop, self.count, self.wrong = each, False, 0, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.stop:
                self.each(self.count)
                self.count += 1
        except BaseException as e:  # told by __exit__
            self.wrong = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()
        if self.wrong:
            raise self.wrong


class Stock(Daemon):
    """With mail of two kinds, in turn: "stay" and "go"."""

    def __enter__(self):
        with open(self.path("old.mbox"), "w", encoding="ascii") as f:
            for n in range(40):
                f.write(f"From x@y Mon Jan  6 10:00:00 2020\nSubject: old{n}"
                        f"\nDate: Mon, 06 Jan 2020 10:00:{n:02} +0000\n\n"
                        "common\n\n")
        self.client = self.connect()
        self.client.open(**INBOUND)
        self.go = []
        for n in range(STOCK):
            self.mail("stay", n)
            if n % 4 == 0:
                self.mail("go", n)
        self.stay = every_page(self, "subject:stay", 1000)
        self.go = every_page(self, "subject:go", 1000)
        assert len(self.stay) == STOCK and len(self.go) == STOCK // 4
        return self

    def mail(self, word, n):
        m = message("a@sender.example", f"{word} {n}")
        reply = self.client.message(**m, body=f"common {word} {n}\r\n"
                                    .encode() * 20)
        assert reply[-1] == (b"c", b""), reply

    def check(self, found):
        """Of what was there all the while each once, in order; nothing
        twice."""
        assert len(set(found)) == len(found), found
        tap.check([i for i in found if i in set(self.stay)], self.stay)


@cases.add
def while_mail_comes_in():
    with Stock() as d:
        with Meanwhile(lambda n: d.mail("new", n)) as flow:
            wait_until(lambda: flow.count > 10)
            for limit in (1000, 9, 20):
                d.check(every_page(d, "common", limit))
        found = every_page(d, "common", 50)
        d.check(found)
        tap.check(len(found), STOCK + STOCK // 4 + flow.count)


@cases.add
def while_some_are_erased():
    with Stock() as d:
        victims = list(d.go)

        def erase(n):
            if victims:
                archive(d, "erase", "--reason", "x", victims[-1])
                victims.pop()
        with Meanwhile(erase):
            for limit in (9, 20):
                d.check(every_page(d, "common", limit))
            wait_until(lambda: not victims, 60)
        found = every_page(d, "common", 30)
        d.check(found)
        tap.check(len(found), STOCK)


@cases.add
def across_a_restart_and_a_new_index():
    with Stock() as d:
        found, after = page(d, "common", None, 20)
        d.mail("new", 1)
        d.term()
        archive(d, "reindex", **owner(d))
        more, after = page(d, "common", after, 15)
        found += more
        d.start()
        while after is not None:
            more, after = page(d, "common", after, 15)
            found += more
        d.check(found)
        tap.check(len(found), STOCK + STOCK // 4)


@cases.add
def while_a_shard_expires():
    with Stock() as d:
        os.chmod(d.path("old.mbox"), 0o644)
        archive(d, "import", d.path("old.mbox"), **owner(d))
        d.term()
        with open(d.conf, "a", encoding="ascii") as file:
            file.write("[retention import]\nkeep = 400d\n")
        with open(d.path("state", "expired"), "w", encoding="ascii"):
            pass  # today it did already
        d.start()
        found, after = page(d, "common", None, STOCK + STOCK // 4 + 10)
        tap.check(len(found), STOCK + STOCK // 4 + 10)
        d.check(found)
        archive(d, "expire")
        rest, after = page(d, "common", after, 10)
        tap.check((rest, after), ([], None))
        d.check(every_page(d, "common", 11))


if __name__ == "__main__":
    tap.run(cases)
