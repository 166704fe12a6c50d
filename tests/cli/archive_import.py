#!/usr/bin/env python3
"""hanaper archive import, add: from every kind of source, twice, after a
kill, beside other writers. Prints TAP."""
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("SRCDIR", ".")
sys.path.insert(0, os.path.join(SOURCE, "tests"))
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
SHARED = os.environ.get("HANAPER_SHARED") or os.path.join(SOURCE, "..",
                                                          "shared")
cases = tap.Cases()

MAIL = [
    b"Date: Fri, 21 Nov 1997 09:55:06 -0600\r\nSubject: horse\r\n"
    b"From: a@example.org\r\n\r\nFrom here on\r\n>From there\r\n\r\n",
    b"Date: 1 Feb 2024 10:00:00 +0000\nSubject: sparrow\n\nlf\n",
    b"\0\xff bare\rCR and\nLF, no header, elephant \xe9\0\n",
]


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Store:
    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hni")
        self.dir = self.path("store")
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def run(self, command, *args, status=0, data=b""):
        p = subprocess.run([HANAPER, "archive", command, "--dir", self.dir,
                            *args], capture_output=True, input=data)
        assert p.returncode == status, (command, args, p)
        return p.stdout, p.stderr.decode()

    def bring(self, *sources, counts, status=0, data=b""):
        _, err = self.run("import", *sources, status=status, data=data)
        want = "hanaper: %d imported, %d there already, %d set aside" % counts
        tap.check(err.splitlines()[-1], want, "the last line of " + err)
        return err

    def hits(self, *query):
        p = subprocess.run([HANAPER, "archive", "search", "--dir", self.dir,
                            "--json", *query], capture_output=True)
        assert p.returncode in (0, 1), p
        return [json.loads(line) for line in p.stdout.splitlines()]

    def raw(self, name):
        return self.run("show", "--raw", name)[0]

    def all(self):
        """Hashes of all that a search sees."""
        self.run("export", "--to", self.path("all"), "dir:import")
        with open(self.path("all/MANIFEST"), encoding="utf-8") as f:
            return sorted(line.split("\t")[1] for line in f)


def files(s):
    return [s.write(f"{i}.eml", mail) for i, mail in enumerate(MAIL)]


def box(count, size=0):
    return b"".join(
        b"From x@example.org Thu May 28 12:00:00 2026\n"
        b"Date: 1 %s 2024 10:00:00 +0000\nSubject: number%d\n\n%s\n\n"
        % ([b"Jan", b"Feb", b"Mar"][i % 3], i, b"x" * (size + i % 7))
        for i in range(count))


@cases.add
def files_come_in_byteexact_and_are_filed_by_their_dates():
    with Store() as s:
        s.bring(*files(s), counts=(3, 0, 0))
        for word, mail in zip(["horse", "sparrow", "elephant"], MAIL):
            hits = s.hits(word)
            tap.check(len(hits), 1, word)
            tap.check(s.raw(hits[0]["id"]), mail, word)
        folders = os.listdir(os.path.join(s.dir, "families/import"))
        assert "1997-11.1" in folders and "2024-02.1" in folders, folders
        meta = s.run("show", "--meta", s.hits("horse")[0]["id"])[0].decode()
        assert "direction: import" in meta and "/0.eml:0" in meta, meta


@cases.add
def files_named_one_by_one_are_stored_by_date():
    with Store() as s:
        days = [1 + (i * 11) % 28 for i in range(28)]
        names = [s.write(f"{day}-{month}.eml",
                         b"Date: %d %s 2024 10:00:00 +0000\n"
                         b"Subject: %d\n\nx\n" % (day, month.encode(), day))
                 for day in days for month in ("Mar", "Jan", "Feb")]
        # one that is missing keeps none of the others out
        s.bring(*names[:10], s.path("none"), *names[10:],
                counts=(len(names), 0, 0), status=66)
        hits = [int(hit["subject"]) for hit in s.hits("--limit", "100", "x")]
        tap.check(len(hits), 3 * 28, "messages")
        # eight are submitted at a time, in any order
        for at, day in enumerate(hits):
            assert abs(28 - at % 28 - day) < 8, hits


HOSTILE = [
    b"Subject: x\r\n\r\nFrom a@b Thu May 28 12:00:00 2026\r\nFrom: x\r\n",
    b"Subject: x\n\nFrom a@b Thu May 28 12:00:00 2026\nFrom: x\n",
    b"Subject: x\r\n\r\n>>From a\r\n>From\r\n>\r\nFro",
    b"Subject: x\r\n\r\n\r\n\r\n\r\n",
    b"Subject: x\n\n\n\n",
    b"Subject: no end",
    b"Subject: CR at the end\r\n\r\nx\r",
    b"Subject: CRs at the end\r\n\r\nx\r\r\r",
    b"Subject: CR CR LF\r\n\r\nx\r\r\n",
    b"\r\n", b"\n", b"\r", b"\n\n\r\n", b"x", b">", b"F", b"From ", b"From x\n",
    b"From x@y Thu May 28 12:00:00 2026\nnot a header\n",
    b">From ", b">>>>From x\r\n\r\n", b"\nFrom ", b"a\n\nFrom x", b"\0",
    b"\0\n\0\r\0\r\n", b"Subject: \xff\xfe\r\n\r\n\x80\x1a\x04",
    b"Subject: x\r\n\r\n" + b">" * 2000 + b"From x\r\n",
    b"From " * 1000, b"Subject: x\n\n" + b"From x\n" * 500,
    b"unterminated", b"From x unterminated",
    b"Subject: long\r\n\r\n" + b"y" * 200000,
]


@cases.add
def hostile_bodies_come_out_and_in_with_the_same_hashes():
    with Store() as s:
        paths = [s.write(f"{i}.eml", m) for i, m in enumerate(HOSTILE)]
        s.bring("--form", "eml", *paths, counts=(len(HOSTILE), 0, 0))
        want = sorted(map(sha, HOSTILE))
        tap.check(s.all(), want)
        s.run("export", "--mbox", s.path("box"), "dir:import")
        s.run("export", "--maildir", s.path("md"), "dir:import")
        for source in ("box", "md", "all", "md/cur"):
            with Store() as other:
                args = [s.path(source)]
                if source == "md/cur":
                    args = ["--form", "eml"] + [
                        s.path(f"md/cur/{n}") for n in
                        os.listdir(s.path("md/cur"))]
                other.bring(*args, counts=(len(HOSTILE), 0, 0))
                tap.check(other.all(), want, source)


@cases.add
def an_export_comes_back_with_envelopes_and_times():
    with Store() as s:
        for i, mail in enumerate(MAIL):
            s.run("add", "--from", f"s{i}@example.org", "--rcpt",
                  "a@example.com", "b@example.com", data=mail)
        before = {h["id"]: h for h in s.hits("larger:0")}
        s.run("export", "--to", s.path("out"), "larger:0")
        with Store() as other:
            other.bring(s.path("out"), counts=(3, 0, 0))
            other.bring(s.path("out"), counts=(0, 3, 0))
            tap.check(len(other.hits("rcpt:b@example.com")), 3)
            tap.check(sorted(h["time"] for h in other.hits("larger:0")),
                      sorted(h["time"] for h in before.values()))
            assert len(other.hits("from:s1@example.org")) == 1
        # a file that was changed, a line that was, a name outside
        name = sorted(n for n in os.listdir(s.path("out"))
                      if n.endswith("0.eml"))[0]
        with open(s.path("out/" + name), "ab") as f:
            f.write(b"more")
        with open(s.path("out/MANIFEST"), "a", encoding="ascii") as f:
            f.write("nonsense\n" + "\t".join([
                "1.9", "0" * 64, "1", "../0.eml", "in", "", "",
                "2026-01-01T00:00:00Z", ""]) + "\n")
        with Store() as other:
            err = other.bring(s.path("out"), counts=(2, 0, 1), status=65)
            assert "not the bytes that its MANIFEST names" in err, err
            tap.check(err.count("a line that is none of ours"), 2, err)
            tap.check(len(os.listdir(other.path("store/aside"))), 1)


@cases.add
def an_exported_mbox_comes_back_with_the_same_hashes():
    with Store() as s:
        s.bring(*files(s), counts=(3, 0, 0))
        s.run("export", "--mbox", s.path("box"), "dir:import")
        before = s.all()
        s.bring(s.path("box"), counts=(0, 3, 0))
        with Store() as other:
            other.bring(s.path("box"), counts=(3, 0, 0))
            tap.check(other.all(), before)
            tap.check(before, sorted(map(sha, MAIL)))


@cases.add
def a_maildir_comes_back_with_the_same_hashes():
    with Store() as s:
        s.bring(*files(s), counts=(3, 0, 0))
        s.run("export", "--maildir", s.path("md"), "dir:import")
        s.write("md/.sub/cur/1", MAIL[0] + b"more\r\n")
        s.write("md/.sub/tmp/2", b"unfinished")
        with Store() as other:
            other.bring(s.path("md"), counts=(4, 0, 0))
            other.bring(s.path("md"), counts=(0, 4, 0))
            tap.check(other.all(), sorted(map(
                sha, MAIL + [MAIL[0] + b"more\r\n"])))


@cases.add
def standard_input_is_an_mbox_or_one_message():
    with Store() as s:
        s.bring("-", data=box(5), counts=(5, 0, 0))
        s.bring("-", data=MAIL[2], counts=(1, 0, 0))
        s.bring("-", data=MAIL[2], counts=(0, 1, 0))
        tap.check(s.raw(s.hits("elephant")[0]["id"]), MAIL[2])


@cases.add
def a_second_run_goes_on_where_the_first_ended():
    with Store() as s:
        path = s.write("box", box(10))
        s.bring(path, counts=(10, 0, 0))
        err = s.bring(path, counts=(0, 0, 0))
        assert "going on at %d" % len(box(10)) in err, err
        s.write("box", box(12))
        s.bring(path, counts=(2, 0, 0))
        s.bring("--again", path, counts=(0, 12, 0))
        # another file of the same name
        s.write("box", b"From x\nSubject: other\n\n" + box(14))
        s.bring(path, counts=(3, 12, 0))
        tap.check(len(s.hits("subject:number13")), 1)


@cases.add
def killed_at_any_moment_it_brings_each_message_in_once():
    with Store() as s:
        path = s.write("box", box(6000, 300))
        for delay in (0.05, 0.15, 0.4):
            p = subprocess.Popen(
                [HANAPER, "archive", "import", "--dir", s.dir, path],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            p.send_signal(signal.SIGKILL)
            p.wait()
        s.run("import", path)
        out, _ = s.run("search", "--count", "dir:import")
        tap.check(out, b"6000\n")
        out, _ = s.run("stats", "--json")
        rows = [json.loads(line) for line in out.splitlines()]
        tap.check(sum(r["messages"] for r in rows), 6000)
        tap.check(sum(r["deliveries"] for r in rows), 0)


@cases.add
def bad_messages_are_named_and_kept():
    with Store() as s:
        path = s.write("box", b"junk\n\n" + box(2) +
                       b"From x Thu May 28 12:00:00 2026\n\n"
                       b"From y Thu May 28 12:00:00 2026\nSubject: z\n\n")
        err = s.bring("--form", "mboxrd", path, counts=(3, 0, 2), status=65)
        assert f"{path}: at 0: no From line before it" in err, err
        kept = os.listdir(os.path.join(s.dir, "aside"))
        tap.check(len(kept), 2)
        with open(os.path.join(s.dir, "aside", min(kept)), "rb") as f:
            tap.check(f.read(), b"junk\n\n")
        empty = s.write("none.eml", b"")
        s.bring("--aside", s.path("mine"), empty, counts=(0, 0, 1),
                status=65)
        tap.check(len(os.listdir(s.path("mine"))), 1)


@cases.add
def a_source_that_is_not_there_does_not_keep_the_others_out():
    with Store() as s:
        s.bring(s.path("no"), *files(s), counts=(3, 0, 0), status=66)
        s.write("plain/x", b"y")
        s.bring(s.path("plain"), counts=(0, 0, 0), status=66)
        s.run("import", status=64)
        s.run("import", "--form", "pst", "x", status=64)


@cases.add
def add_takes_envelope_and_bytes_and_files_them_today():
    with Store() as s:
        s.run("add", "--from", "<s@example.org>", "--rcpt", "b@example.com",
              "c@example.com", data=MAIL[0])
        hit = s.hits("rcpt:c@example.com")[0]
        tap.check(s.raw(hit["id"]), MAIL[0])
        tap.check(hit["rcpts"], ["b@example.com", "c@example.com"])
        # the same once more is a delivery of its own
        s.run("add", "--rcpt", "d@example.com", data=MAIL[0])
        hit = s.hits("rcpt:d@example.com")[0]
        tap.check(s.raw(hit["id"]), MAIL[0])
        out, _ = s.run("stats", "--json")
        stats = [json.loads(line) for line in out.splitlines()]
        tap.check([s["deliveries"] for s in stats
                   if s["family"] == "import"], [1])


@cases.add
def add_asks_the_mta_to_try_again_whatever_is_wrong():
    with Store() as s:
        s.run("add", status=75)
        s.run("add", "--no-such-option", status=75, data=MAIL[0])
        s.dir = s.write("file", b"")
        s.run("add", status=75, data=MAIL[0])


@cases.add
def one_import_at_a_time_and_many_adds():
    with Store() as s:
        s.run("add", data=MAIL[0])
        with open(os.path.join(s.dir, "import/ONLY"), "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            _, err = s.run("import", *files(s), status=75)
            assert "another import is running" in err, err
        adds = []
        for i in range(6):
            p = subprocess.Popen(
                [HANAPER, "archive", "add", "--dir", s.dir],
                stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            p.stdin.write(b"Subject: many%d\n\nx\n" % i)
            p.stdin.close()
            adds.append(p)
        s.run("import", s.write("box", box(50)))
        tap.check([p.wait() for p in adds], [0] * 6)
        out, _ = s.run("search", "--count", "dir:import")
        tap.check(out, b"57\n")


@cases.add
def shards_of_a_running_daemon_are_left_alone():
    with Store() as s:
        s.run("add", data=MAIL[0])
        mail = os.path.join(s.dir, "families/mail/2026-01.1")
        os.makedirs(mail)
        with open(os.path.join(mail, "LOCK"), "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            err = s.bring(*files(s), counts=(2, 1, 0))
        tap.check(len(err.splitlines()), 1, err)


def corpus(name):
    top = os.path.join(SHARED, "conformance", name)
    if not os.path.isdir(top):
        raise tap.Skip("shared data absent")
    paths = [os.path.join(d, n) for d, _, names in
             os.walk(os.path.join(top, "messages")) for n in sorted(names)]
    want = set()
    for path in paths:
        with open(path, "rb") as f:
            want.add(sha(f.read()))
    with Store() as s:
        s.run("import", "--form", "eml", *paths)
        got = s.all()
        tap.check(got, sorted(want), "the hashes of " + name)
        out, _ = s.run("search", "--count", "dir:import")
        tap.check(int(out), len(want))


@cases.add
def corpus_small_comes_in_and_out_byteexact():
    corpus("corpus-small")


@cases.add
def corpus_notmuch_comes_in_and_out_byteexact():
    corpus("corpus-notmuch")


if __name__ == "__main__":
    tap.run(cases)
