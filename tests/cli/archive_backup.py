#!/usr/bin/env python3
"""hanaper archive backup and restore. Prints TAP."""
import glob
import json
import os
import random
import resource
import shutil
import signal
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
cases = tap.Cases()

noise = random.Random(1)
LARGE = b"Subject: large\r\n\r\n" + noise.randbytes(5 << 20)


def mail(n):
    return b"Subject: number %d\r\n\r\nword%d\r\n" % (n, n) + \
        noise.randbytes(500)


class Store:
    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnb")
        self.dir = self.path("store")
        self.copy = self.path("copy")
        self.mail = []
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def add(self, *mail_):
        files = []
        for one in mail_:
            self.mail.append(one)
            files.append(self.path(f"{len(self.mail)}.eml"))
            with open(files[-1], "wb") as f:
                f.write(one)
        subprocess.run([FILL, self.dir, *files], check=True,
                       stdout=subprocess.DEVNULL)

    def run(self, command, *args, status=0, **more):
        p = subprocess.run([HANAPER, "archive", command, *args],
                           capture_output=True, text=True, **more)
        assert p.returncode == status, (command, args, p)
        self.err = p.stderr
        return p.stdout

    def backup(self, *args, status=0, **more):
        return json.loads(self.run(
            "backup", "--json", "--dir", self.dir, "--to", self.copy, *args,
            status=status, **more) or "null")

    def restore(self, to="back", *args, status=0):
        out = self.run("restore", "--json", "--dir", self.path(to), "--from",
                       self.copy, *args, status=status)
        return json.loads(out or "null")

    def messages(self, store):
        """The bytes of all messages that a search finds, by an export."""
        out = tempfile.mkdtemp(dir=self.top.name)
        self.run("export", "--dir", store, "--to", out, "larger:0")
        found = []
        for name in glob.glob(out + "/*.eml"):
            with open(name, "rb") as f:
                found.append(f.read())
        return sorted(found)

    def audit(self, store, action):
        return [json.loads(line) for line in self.run(
            "audit", "--json", "--dir", store, "--action", action)
            .splitlines()]

    def segment(self, store=None):
        return glob.glob((store or self.copy) + "/families/mail/*/segment")[0]


def flip(path, offset):
    with open(path, "r+b") as f:
        f.seek(offset)
        old = f.read(1)
        f.seek(offset)
        f.write(bytes([old[0] ^ 0x20]))


@cases.add
def a_second_run_copies_only_what_is_new():
    with Store() as s:
        s.add(*map(mail, range(20)), LARGE)
        first = s.backup("--unrecorded")
        size = os.path.getsize(s.segment())
        assert first["shards"] == first["changed"] == 1, first
        assert first["bytes"] == size and first["bodies"] == 1, first
        assert first["frames"] == 21, first
        again = s.backup("--unrecorded")
        assert again["bytes"] == again["changed"] == 0, again
        s.add(*map(mail, range(20, 25)))
        more = s.backup("--unrecorded")
        assert more["frames"] == 5 and more["bodies"] == 0, more
        assert more["bytes"] == os.path.getsize(s.segment()) - size, more
        assert not glob.glob(s.copy + "/**/index*", recursive=True)
        s.restore()
        assert s.messages(s.path("back")) == sorted(s.mail)


@cases.add
def restored_with_an_index_in_a_new_epoch():
    with Store() as s:
        s.add(*map(mail, range(5)))
        s.backup()
        s.restore()
        with open(s.path("back/store"), encoding="ascii") as f:
            lines = f.read().splitlines()
        with open(s.dir + "/store", encoding="ascii") as f:
            old = f.read().splitlines()
        assert lines[1] == old[1], (lines, old)  # uuid
        assert lines[2] == "epoch 2", lines
        assert int(lines[3].split()[1]) > 1000, lines
        assert glob.glob(s.path("back/families/mail/*/index.g1.db"))
        assert not glob.glob(s.path("back/**/backup"), recursive=True)
        out = s.run("search", "--json", "--dir", s.path("back"), "word3")
        assert json.loads(out)["id"] == "1.3", out
        assert "0 un-indexed" in s.err, s.err
        s.restore("plain", "--no-index")
        assert not glob.glob(s.path("plain/families/mail/*/index*"))
        assert s.messages(s.path("plain")) == sorted(s.mail)


@cases.add
def nothing_is_overwritten():
    with Store() as s:
        s.add(mail(1))
        s.backup()
        os.mkdir(s.path("empty"))
        s.restore("empty")
        s.restore("empty", status=73)
        assert "nothing is overwritten" in s.err, s.err
        assert s.messages(s.path("empty")) == s.mail
        with open(s.path("file"), "w", encoding="ascii"):
            pass
        s.restore("file", status=73)
        # the backup of another store
        other = s.path("other")
        s.dir, first = other, s.dir
        s.add(mail(2))
        s.backup(status=73)
        assert "another store" in s.err, s.err
        s.dir = first
        assert s.backup("--unrecorded")["bytes"] == 0


@cases.add
def while_mail_comes_in():
    with Store() as s:
        s.add(mail(0))
        files = []
        for i in range(1, 120):
            s.mail.append(mail(i))
            files.append(s.path(f"m{i}"))
            with open(files[-1], "wb") as f:
                f.write(s.mail[-1])
        with subprocess.Popen([FILL, s.dir, *files],
                              stdout=subprocess.DEVNULL) as writer:
            runs = 0
            while writer.poll() is None:
                s.backup("--unrecorded")
                runs += 1
            assert writer.returncode == 0 and runs > 0
        last = s.backup("--unrecorded")
        assert last["waiting"] == 0, last
        s.restore()
        assert s.messages(s.path("back")) == sorted(s.mail)


@cases.add
def a_killed_run_goes_on():
    with Store() as s:
        s.add(*map(mail, range(300)), LARGE, LARGE + b"2")
        for wait in (0.002, 0.005, 0.01, 0.02, 0.03, 0.05):
            with subprocess.Popen([HANAPER, "archive", "backup", "--dir",
                                   s.dir, "--to", s.copy],
                                  stdout=subprocess.DEVNULL) as p:
                time.sleep(wait)
                p.send_signal(signal.SIGKILL)
        s.backup()
        # what an interrupted run left behind what it had verified
        with open(s.segment(), "ab") as f:
            f.write(b"left over" * 1000)
        s.add(mail(1000))
        s.backup()
        for wait in (0.002, 0.005, 0.01, 0.02, 0.03, 0.05):
            with subprocess.Popen([HANAPER, "archive", "restore", "--dir",
                                   s.path("back"), "--from", s.copy],
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as p:
                time.sleep(wait)
                p.send_signal(signal.SIGKILL)
        if not os.path.exists(s.path("back")):
            s.restore()
        s.run("reindex", "--dir", s.path("back"))
        assert s.messages(s.path("back")) == sorted(s.mail)


@cases.add
def a_full_disk_leaves_what_was_copied():
    with Store() as s:
        s.add(*map(mail, range(100)))
        s.backup(status=74, restore_signals=False, preexec_fn=lambda:
                 resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        assert s.backup()["frames"] == 100
        s.restore()
        assert s.messages(s.path("back")) == sorted(s.mail)


@cases.add
def damage_of_the_source_is_named_and_the_rest_is_copied():
    with Store() as s:
        s.add(*map(mail, range(5)))
        source = s.segment(s.dir)
        with open(source, "rb") as f:
            at = [i for i in range(4096, len(data), 8) if data[i:i + 4] ==
                  b"\xf5HNF"] if (data := f.read()) else []
        flip(source, at[1] + 600)   # a body
        flip(source, at[3] + 9)     # a header
        counts = s.backup(status=1)
        assert counts["damaged"] == 2 and counts["frames"] == 4, counts
        assert f"damaged at {at[1]} to {at[2]}" in s.err, s.err
        assert f"damaged at {at[3]} to {at[4]}" in s.err, s.err
        assert s.backup("--unrecorded")["bytes"] == 0
        s.restore(status=1)
        good = [s.mail[0], s.mail[2], s.mail[4]]
        for i in (0, 2, 4):
            out = subprocess.run([HANAPER, "archive", "show", "--dir",
                                  s.path("back"), "--raw", f"1.{i}"],
                                 capture_output=True, check=True).stdout
            assert out == good[i // 2]
        # the end is cut off, below what the index had taken in
        size = os.path.getsize(source)
        os.truncate(source, at[4] + 8)
        shutil.rmtree(s.copy)
        s.backup(status=1)
        assert f"damaged at {at[3]} to {size}" in s.err, s.err


@cases.add
def damage_of_the_backup_is_found_at_the_latest_when_it_is_restored():
    for where in (4096 + 600, 4096 + 20, 20):
        with Store() as s:
            s.add(*map(mail, range(5)), LARGE)
            s.backup()
            flip(s.segment(), where)
            s.restore(status=1)
            assert s.copy in s.err, s.err
    with Store() as s:
        s.add(mail(1), LARGE)
        s.backup()
        os.unlink(glob.glob(s.copy + "/families/mail/*/bodies/*")[0])
        s.restore(status=1)
        assert "damaged or gone" in s.err, s.err
    with Store() as s:
        s.add(*map(mail, range(5)))
        s.backup()
        os.truncate(s.segment(), os.path.getsize(s.segment()) - 100)
        s.restore(status=1)
        os.unlink(glob.glob(s.copy + "/families/mail/*/backup")[0])
        s.restore("two", status=1)
        assert "never completed" in s.err, s.err


@cases.add
def another_past_is_not_mixed_in():
    with Store() as s:
        s.add(*map(mail, range(5)))
        s.backup("--unrecorded")
        # the store was lost and made again with the same names
        shutil.rmtree(s.dir + "/families")
        with open(s.dir + "/store", encoding="ascii") as f:
            text = f.read()
        with open(s.dir + "/store", "w", encoding="ascii") as f:
            f.write(text.replace("next-shard 2", "next-shard 1"))
        s.add(*map(mail, range(5, 20)))
        counts = s.backup("--unrecorded", status=1)
        assert counts["offline"] == 1, counts
        assert "begin a new backup elsewhere" in s.err, s.err
        s.restore()
        assert s.messages(s.path("back")) == sorted(s.mail[:5])


@cases.add
def expired_shards_stay_until_they_are_pruned():
    with Store() as s:
        s.add(mail(1), LARGE)
        os.makedirs(s.dir + "/families/other")
        shutil.copytree(os.path.dirname(s.segment(s.dir)),
                        s.dir + "/families/other/2026-05.1")
        assert s.backup("--unrecorded")["shards"] == 2
        shutil.rmtree(s.dir + "/families/other/2026-05.1")
        gone = s.backup()
        assert gone["gone"] == 1 and "not in the store any more" in s.err
        assert glob.glob(s.copy + "/families/other/*/segment")
        s.backup("--prune")
        assert not glob.glob(s.copy + "/families/other/*")
        assert s.backup()["gone"] == 0


@cases.add
def one_at_a_time():
    with Store() as s:
        s.add(mail(1))
        s.backup()
        import fcntl
        with open(s.copy + "/LOCK", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            s.backup(status=75)
            assert "another backup" in s.err, s.err
        s.run("backup", "--dir", s.path("nowhere"), "--to", s.copy,
              status=66)
        s.run("restore", "--dir", s.path("x"), "--from", s.path("nowhere"),
              status=66)
        s.run("backup", "--dir", s.dir, status=64)



@cases.add
def what_was_erased_behind_a_backup_is_there_again():
    with Store() as s:
        s.add(mail(1), mail(2))
        s.backup()
        s.run("erase", "--dir", s.dir, "--reason", "test", "1.0")
        s.add(mail(3))
        s.backup()
        s.restore()
        s.run("verify", "--dir", s.path("back"), "--all")
        tap.check("0 erased" in s.err, True, s.err)
        assert len(s.messages(s.path("back"))) == 3
        # the trail says so, and that of the backup, too
        assert len(s.audit(s.path("back"), "erase")) == 1
        assert len(s.audit(s.path("back"), "backup")) == 1  # of the second
        # in a backup made afterwards it is gone
        s.copy = s.path("copy2")
        s.backup()
        s.restore("back2")
        s.run("verify", "--dir", s.path("back2"), "--all")
        assert "1 erased" in s.err, s.err
        assert len(s.messages(s.path("back2"))) == 2


def all_bytes(path):
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                yield f.read()


@cases.add
def a_backup_gives_up_what_was_erased():
    with Store() as s:
        s.add(mail(1), LARGE, mail(2))
        s.backup()
        s.run("erase", "--dir", s.dir, "--reason", "test", "1.0", "1.1")
        counts = s.backup()
        tap.check(counts["erased"], 2)
        assert len(glob.glob(s.copy + "/families/*/*/bodies/*")) == 1
        counts = s.backup("--prune")
        tap.check(counts["erased"], 2)
        assert not glob.glob(s.copy + "/families/*/*/bodies/*")
        tap.check(s.backup("--prune")["erased"], 0)
        s.restore()
        s.run("verify", "--dir", s.path("back"), "--all")
        assert "2 erased" in s.err and "0 faults" in s.err, s.err
        tap.check(s.messages(s.path("back")), s.mail[2:])


tap.run(cases)
