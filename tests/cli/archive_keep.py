#!/usr/bin/env python3
"""hanaper archive erase, expire, hold, audit, without a daemon. Prints TAP."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests"))
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
cases = tap.Cases()
MONTHS = ("Jan", "Feb", "Mar", "Apr")


def mail(n, words="", year=2020, month=0):
    return (f"From: a{n}@sender.example\r\nTo: b{n}@rcpt.example\r\n"
            f"Subject: number{n}\r\nMessage-ID: <{n}@sender.example>\r\n"
            f"Date: {n % 28 + 1:02} {MONTHS[month]} {year} 12:00:00 +0000\r\n"
            f"\r\nsecret{n} {words}\r\n").encode()


class Store:
    """Imported mail of the months of 2020, n-th message in month n % 4."""

    def __init__(self, count=12, keep="365d", words=""):
        self.top = tempfile.mkdtemp(prefix="hnk")
        self.dir = os.path.join(self.top, "store")
        os.mkdir(self.dir)
        self.conf = self.path("conf")
        with open(self.conf, "w") as file:
            file.write(f"archive = on\narchive_dir = {self.dir}\n"
                       f"state_dir = {self.top}\n")
            if keep:
                file.write(f"[retention import]\nkeep = {keep}\n")
        for n in range(count):
            path = self.path(f"m{n}.eml")
            with open(path, "wb") as file:
                file.write(mail(n, words, month=n % 4))
        self.run("import", *[self.path(f"m{n}.eml") for n in range(count)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.top, name)

    def run(self, command, *args, status=0, data=None, more=()):
        p = subprocess.run([HANAPER, "archive", command, *more, "-c",
                            self.conf, *args], input=data,
                           capture_output=True, timeout=120)
        assert p.returncode == status, (command, args, p)
        return p.stdout.decode(), p.stderr.decode()

    def hold(self, what, *args, **kwargs):
        return self.run("hold", *args, more=(what,), **kwargs)

    def ids(self, query, status=0):
        out, err = self.run("search", "--json", query, status=status)
        assert " 0 un-indexed" in err, err
        return [json.loads(line)["id"] for line in out.splitlines()]

    def raw(self, i, **kwargs):
        return self.run("show", "--raw", i, **kwargs)[0].encode()

    def audit(self, *args):
        out, _ = self.run("audit", "--json", *args)
        return [json.loads(line) for line in out.splitlines()]

    def expire(self, *args, status=0):
        out, _ = self.run("expire", "--json", *args, status=status)
        return [json.loads(line) for line in out.splitlines()]

    def everything(self):
        """All bytes of the files of mail families."""
        found = []
        for d, _, names in os.walk(os.path.join(self.dir, "families")):
            for name in names:
                with open(os.path.join(d, name), "rb") as file:
                    found.append(file.read())
        return b"".join(found)

    def shards(self, family="import"):
        path = os.path.join(self.dir, "families", family)
        return sorted(os.listdir(path)) if os.path.exists(path) else []


@cases.add
def what_is_erased_is_gone():
    with Store() as s:
        one, = s.ids("secret3")
        other, = s.ids("secret7")  # of the same month
        raw = s.raw(other)
        s.run("erase", one, status=64)  # no reason
        out, _ = s.run("erase", "--reason", "they asked", one)
        tap.check(out, "1 frame erased\n")
        tap.check(s.ids("secret3", status=1), [])
        _, err = s.run("show", one, status=66)
        tap.check_in("erased", err)
        assert b"number3" not in s.everything()
        tap.check(s.raw(other), raw)
        out, _ = s.run("erase", "--reason", "again", one)
        tap.check_in("had been before", out)
        # the same bytes are new mail
        s.run("import", "--again", s.path("m3.eml"))
        again, = s.ids("secret3")
        assert again != one
        tap.check(s.raw(again), mail(3, month=3))
        # and a new index does not bring it back
        s.run("reindex")
        tap.check(s.ids("secret3"), [again])
        event, = s.audit("--action", "erase")
        tap.check(event["ids"], [one])
        tap.check(event["reason"], "they asked")
        tap.check(len(s.audit("--action", "erased")), 1)


@cases.add
def all_deliveries_and_large_bodies_go():
    with Store(count=1) as s:
        large = mail(50, os.urandom(6 << 20).hex())
        for rcpt in ("x", "y", "z"):
            s.run("add", "--rcpt", f"{rcpt}@rcpt.example", data=large)
        ids = []
        for rcpt in ("x", "y", "z"):
            ids += s.ids(f"rcpt:{rcpt}@rcpt.example")
        tap.check(len(ids), 3)
        bodies = [os.path.join(d, n) for d, _, names in os.walk(s.dir)
                  for n in names if d.endswith("/bodies")]
        tap.check(len(bodies), 1)
        out, _ = s.run("erase", "--reason", "x", ids[1])
        tap.check(out, "3 frames erased\n")
        assert not os.path.exists(bodies[0])
        for rcpt in ("x", "y", "z"):
            tap.check(s.ids(f"rcpt:{rcpt}@rcpt.example", status=1), [])


@cases.add
def nothing_or_all():
    with Store() as s:
        one, = s.ids("secret3")
        for wrong, status in (("99.1", 66), ("1.4000", 66), ("x", 64)):
            s.run("erase", "--reason", "x", one, wrong, status=status)
            tap.check(s.ids("secret3"), [one])
        event = s.audit("--limit", "1")[0]["event"]
        s.run("erase", "--reason", "x", one, event, status=77)
        tap.check(s.ids("secret3"), [one])


@cases.add
def a_hold_keeps_what_matches():
    with Store() as s:
        one, = s.ids("secret3")
        s.hold("add", "case-1", "from:a3@sender.example")
        s.hold("add", "case-1", "other", status=73)
        s.hold("add", "-bad", "other", status=64)
        s.hold("add", "x/y", "other", status=64)
        s.hold("add", "x", "a (b", status=64)
        _, err = s.run("erase", "--reason", "x", one, status=77)
        tap.check_in("is under hold case-1", err)
        hold, = [json.loads(x) for x in
                 s.hold("list", "--json")[0].splitlines()]
        tap.check(hold["query"], "from:a3@sender.example")
        # mail that comes later is caught
        s.run("add", data=mail(3, "later"))
        later, = s.ids("later")
        _, err = s.run("erase", "--reason", "x", later, status=77)
        s.hold("release", "case-1")
        s.hold("release", "case-1", status=66)
        s.run("erase", "--reason", "x", one, later)
        tap.check([e["action"] for e in s.audit()
                   if e["action"] in ("hold", "release")],
                  ["hold", "release"])


@cases.add
def a_plan_is_what_is_done():
    with Store() as s:
        plan = s.expire("--plan")
        tap.check(len(s.shards()), 4)
        tap.check([(p["family"], p["fate"]) for p in plan],
                  [("import", "gone")] * 4)
        assert all(p["bytes"] > 0 and p["frames"] == 3 for p in plan), plan
        done = s.expire()
        tap.check(done, plan)
        tap.check(s.shards(), [])
        assert not [n for n in os.listdir(os.path.join(s.dir, "tmp"))]
        event, = s.audit("--action", "expire")
        tap.check([(x["family"], x["period"]) for x in event["shards"]],
                  [("import", f"2020-0{n}") for n in (1, 2, 3, 4)])
        tap.check(s.ids("secret3", status=1), [])
        tap.check(s.expire(), [])
        # there is room for the same mail again
        s.run("import", "--again", s.path("m3.eml"))
        tap.check(len(s.ids("secret3")), 1)


@cases.add
def without_a_rule_nothing_goes():
    for keep in (None, "forever", "20y"):
        with Store(count=4, keep=keep) as s:
            plan = s.expire("--plan")
            tap.check([p["fate"] for p in plan],
                      ["later"] * 4 if keep == "20y" else [])
            tap.check(s.expire(), [])
            tap.check(len(s.shards()), 4)


@cases.add
def held_mail_outlives_its_month():
    with Store() as s:
        raw = {}
        meta = {}
        for n in (2, 5):
            i, = s.ids(f"secret{n}")
            raw[i] = s.raw(i)
            meta[i] = s.run("show", "--meta", i)[0]
        s.hold("add", "case", "secret2 OR secret5")
        plan = s.expire("--plan")
        tap.check(sum(p["held"] for p in plan), 2)
        done = s.expire()
        tap.check(len(s.shards()), 0)
        tap.check(sum(p["held"] for p in done), 2)
        tap.check(s.ids("secret3", status=1), [])
        found = s.ids("secret2") + s.ids("secret5")
        tap.check(len(found), 2)
        for i, now in zip(raw, found):
            assert i != now
            tap.check(s.raw(now), raw[i])
            tap.check(s.raw(i), raw[i])  # by its old id
            tap.check(s.ids(f"origin:{i}"), [now])
            strip = json.loads if meta[i].startswith("{") else str
            tap.check(str(strip(meta[i])).split("bytes", 1)[1],
                      str(strip(s.run("show", "--meta", now)[0])).split(
                          "bytes", 1)[1])
        # held copies are not erased, and go once nothing holds them
        s.run("erase", "--reason", "x", found[0], status=77)
        stays = s.expire(status=1)
        tap.check([p["fate"] for p in stays], ["stays"] * len(stays))
        tap.check(s.ids("secret2") + s.ids("secret5"), found)
        os.makedirs(s.path("out"))
        s.run("export", "--to", s.path("out"), "secret2")
        s.hold("release", "case")
        gone = s.expire()
        assert {p["family"] for p in gone} == {"hold"}, gone
        tap.check(s.ids("secret2", status=1), [])


@cases.add
def doubt_is_for_the_hold():
    with Store() as s:
        s.hold("add", "case", "nothing-matches-this")
        # a damaged message might have: its shard stays
        shard = os.path.join(s.dir, "families", "import", s.shards()[0])
        with open(os.path.join(shard, "segment"), "r+b") as file:
            data = file.read()
            # the last byte of the first message that is not padding
            at = data.index(b"\xf5HNF", 4097)
            while data[at - 1] == 0:
                at -= 1
            file.seek(at - 1)
            file.write(bytes([data[at - 1] ^ 1]))
        # what was indexed while it was whole is known not to match
        tap.check([p["held"] for p in s.expire("--plan")], [0] * 4)
        for name in os.listdir(shard):
            if name.startswith("index."):
                os.unlink(os.path.join(shard, name))
        done = s.expire(status=1)
        tap.check(sorted(p["fate"] for p in done),
                  ["gone", "gone", "gone", "stays"])
        tap.check(s.shards(), [os.path.basename(shard)])
        s.hold("release", "case")
        tap.check([p["fate"] for p in s.expire()], ["gone"])


@cases.add
def holds_that_cannot_be_read_keep_everything():
    with Store() as s:
        one, = s.ids("secret3")
        with open(os.path.join(s.dir, "holds"), "w") as file:
            file.write("holds#1\ncount#5\n\n")
        s.run("erase", "--reason", "x", one, status=65)
        s.run("expire", status=65)
        s.hold("list", status=65)
        tap.check(len(s.shards()), 4)


@cases.add
def the_trail_tells_who_read_what():
    with Store(count=2) as s:
        one, = s.ids("secret1")
        s.run("show", one)
        s.run("list")
        os.makedirs(s.path("out"))
        s.run("export", "--to", s.path("out"), "secret1")
        s.run("search", "--count", "number1")
        trail = s.audit()
        tap.check([(e["action"], e.get("query"), e.get("ids"))
                   for e in trail],
                  [("search", "secret1", None), ("show", None, [one]),
                   ("list", None, None), ("export", "secret1", None),
                   ("export", None, [one]), ("search", "number1", None)])
        assert all(e["uid"] == os.getuid() for e in trail), trail
        tap.check([e["action"] for e in s.audit("--id", one)],
                  ["show", "export"])
        tap.check(len(s.audit("--limit", "2")), 2)
        tap.check(s.audit("--limit", "2")[1], trail[-1])
        tap.check(s.audit("--user", "nobody-like-this"), [])
        tap.check(len(s.audit("--since", "1d")), 6)
        text, _ = s.run("audit")
        tap.check(len(text.splitlines()), 6)
        # events are no mail
        tap.check(s.ids("export", status=1), [])


@cases.add
def no_record_no_reading():
    if os.geteuid() == 0:
        raise tap.Skip("root may write everywhere")
    with Store(count=1) as s:
        s.ids("secret0")
        for d, _, names in os.walk(s.dir):
            os.chmod(d, 0o550)
            for n in names:
                os.chmod(os.path.join(d, n), 0o440)
        try:
            out, err = s.run("search", "secret0", status=75)
            tap.check(out, "")
            tap.check_in("nothing is shown", err)
            out, _ = s.run("search", "--unrecorded", "secret0")
            tap.check_in("number0", out)
        finally:
            for d, _, _ in os.walk(s.dir):
                os.chmod(d, 0o750)


@cases.add
def several_at_a_time_all_leave_a_record():
    with Store(count=1) as s:
        many = [subprocess.Popen([HANAPER, "archive", "search", "-c", s.conf,
                                  f"secret0 OR x{n}"],
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE) for n in range(8)]
        good = sum(p.communicate()[1] is not None and p.returncode == 0
                   for p in many)
        assert good >= 1
        tap.check(len(s.audit("--action", "search")), good)


if __name__ == "__main__":
    tap.run(cases)
