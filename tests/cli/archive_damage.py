#!/usr/bin/env python3
"""What searching and adding do with a store that is damaged, or of another
version: the rest goes on, and a line says what is not there. Prints TAP."""
import glob
import hashlib
import json
import os
import re
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/fill_store")
HEADER = 4096
cases = tap.Cases()


class Store:
    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnd")
        self.dir = self.path("store")
        files = []
        for i in range(4):
            files.append(self.path(f"{i}.eml"))
            with open(files[-1], "w", encoding="ascii") as f:
                f.write(f"Subject: fox {i}\r\n\r\nThe text of {i}.\r\n")
        subprocess.run([FILL, self.dir, *files], check=True,
                       stdout=subprocess.DEVNULL)
        self.segment = glob.glob(self.dir + "/families/mail/*/segment")[0]
        self.index = glob.glob(self.dir + "/families/mail/*/index*.db")[0]
        with open(self.segment, "rb") as f:
            data = f.read()
        self.frames = [i for i in range(HEADER, len(data), 8)
                       if data[i:i + 4] == b"\xf5HNF"]
        self.nonce = data[84:100]
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def run(self, command, *args, status=0, data=b""):
        p = subprocess.run([HANAPER, "archive", command, "--dir", self.dir,
                            *args], capture_output=True, input=data)
        assert status is None or p.returncode == status, (command, args, p)
        self.err = p.stderr.decode()
        return p.stdout

    def found(self, *query, status=0):
        out = self.run("search", "--json", *query, status=status)
        return [json.loads(line)["id"] for line in out.splitlines()][::-1]

    def change(self, offset, bytes_):
        with open(self.segment, "r+b") as f:
            f.seek(offset)
            f.write(bytes_)

    def read(self, offset, length):
        with open(self.segment, "rb") as f:
            f.seek(offset)
            return f.read(length)

    def flip(self, offset):
        self.change(offset, bytes([self.read(offset, 1)[0] ^ 0x20]))


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


@cases.add
def a_segment_of_a_later_version():
    with Store() as s:
        head = bytearray(s.read(0, HEADER))
        head[8] = 2
        head[-4:] = struct.pack("<I", crc32c(bytes(head[:-4])))
        s.change(0, head)
        s.found("fox", status=75)
        assert "1 shard NOT searched" in s.err, s.err
        assert s.err.count("not searched: ") == 1, s.err
        # mail goes on, in another shard
        s.run("add", data=b"Subject: fox\r\n\r\n")
        assert len(s.found("fox")) == 1
        s.run("show", "1.0", status=66)


@cases.add
def a_store_of_a_later_version():
    with Store() as s:
        with open(s.dir + "/store", encoding="ascii") as f:
            text = f.read()
        with open(s.dir + "/store", "w", encoding="ascii") as f:
            f.write(text.replace("hanaper-store 1", "hanaper-store 2"))
        for command, status in (("search", 65), ("export", 65), ("stats", 65),
                                ("add", 75)):
            args = {"search": ["fox"], "export": ["--to", s.path("x"), "a"]}
            s.run(command, *args.get(command, []), status=status, data=b"x")
            assert s.err.startswith("hanaper: ") and s.err.count("\n") == 1, \
                (command, s.err)
            assert s.dir in s.err, s.err


@cases.add
def a_frame_of_a_later_version():
    with Store() as s:
        at = s.frames[1]
        head = bytearray(s.read(at, 120))
        head[4] = 2
        s.change(at, bytes(head) +
                 hashlib.sha256(s.nonce + head).digest()[:8])
        os.unlink(s.index)
        for _ in range(2):
            tap.check(s.found("fox"), ["1.0", "1.2", "1.3"], s.err)
            assert "1 damaged place passed over" in s.err, s.err
            assert f"damaged at {at} to {s.frames[2]}" in s.err, s.err
            s.run("reindex", status=65)


@cases.add
def an_index_of_another_version_or_none():
    for spoil in ("version", "bytes", "empty", "directory"):
        with Store() as s:
            if spoil == "version":
                db = sqlite3.connect(s.index)
                db.execute("UPDATE state SET schema = 99")
                db.commit()
                db.close()
            elif spoil == "bytes":
                with open(s.index, "wb") as f:
                    f.write(b"no database at all" * 1000)
            elif spoil == "empty":
                with open(s.index, "wb"):
                    pass
            else:  # cannot be opened, as when there is no room for a log
                os.unlink(s.index)
                os.mkdir(s.index)
            assert s.found("fox") == ["1.0", "1.1", "1.2", "1.3"], spoil
            assert "0 un-indexed" in s.err, s.err
            if spoil != "empty":
                assert "read without its index: " in s.err, (spoil, s.err)
                assert s.err.count("\n") == 2, s.err
            assert s.found("elephant", status=1) == []
            rows = [json.loads(line) for line in
                    s.run("stats", "--json").splitlines()]
            assert [r["messages"] for r in rows
                    if r["family"] == "mail"] == [4], rows
            assert s.run("show", "--raw", "1.2").startswith(b"Subject: fox 2")
            if spoil == "directory":
                os.rmdir(s.index)
            s.run("reindex")
            assert len(s.found("fox")) == 4
            assert s.err.count("\n") == 1, s.err


@cases.add
def an_index_that_the_power_took_at_its_birth():
    # its first page not written, or not the WAL that has all the rest
    for head, wal in ((b"", True), (b"", False), (b"\0" * 4096, True),
                      (b"\0" * 4096, False), (None, False)):
        with Store() as s:
            subprocess.run([FILL, "-k", s.path("other"), s.path("0.eml"),
                            s.path("1.eml")], check=False,
                           stdout=subprocess.DEVNULL)
            s.dir = s.path("other")
            index, = glob.glob(s.dir + "/families/mail/*/index.g1.db")
            assert os.path.exists(index + "-wal")
            with open(index, "rb") as f:
                was = f.read(4096)
            with open(index, "wb") as f:
                f.write(was if head is None else head)
            if not wal:
                os.unlink(index + "-wal")
            if os.path.exists(index + "-shm"):
                os.unlink(index + "-shm")
            # whoever opens it next, here to write an event, mends it
            s.run("search", "fox", status=None)
            assert s.found("subject:fox") == ["1.0", "1.1"], (head, wal)
            tap.check(int(s.run("search", "--count", "text")), 2)
            s.run("verify", "--all")


@cases.add
def an_export_in_many_pages_tells_all_it_could_not_search():
    with tempfile.TemporaryDirectory(prefix="hnd") as top:
        store, mbox = os.path.join(top, "store"), os.path.join(top, "mbox")
        with open(mbox, "w", encoding="ascii") as f:
            for month, count in (("Oct", 450), ("Nov", 4)):
                for i in range(count):
                    f.write(f"From a@x Mon {month} 12 12:00:00 2025\n"
                            f"Subject: {month} {i}\nDate: 12 {month} 2025 "
                            "12:00:00 +0000\n\nfox\n\n")
        subprocess.run([HANAPER, "archive", "import", "--dir", store, mbox],
                       check=True, capture_output=True)

        def export(name):
            return subprocess.run(
                [HANAPER, "archive", "export", "--dir", store, "--mbox",
                 os.path.join(top, name), "fox"],
                capture_output=True, text=True).stderr
        tap.check_in("searched 2 shards, 454 messages, 0 un-indexed\n",
                     export("whole"))
        folder, = glob.glob(store + "/families/import/2025-11.*")
        for name in glob.glob(folder + "/index*"):
            os.unlink(name)
        with open(folder + "/segment", "r+b") as f:
            data = f.read()
            at = data.index(b"\xf5HNF", data.index(b"\xf5HNF", HEADER) + 8)
            f.seek(at + 16)
            f.write(bytes([data[at + 16] ^ 1]))
        # whether they were written in one group, nobody says of the frames
        # behind that they were durable: then they are counted, not searched
        said = export("damaged")
        m = re.search(r"searched 2 shards, (\d+) messages?, (\d+) un-indexed",
                      said)
        tap.check(int(m[1]) + int(m[2]), 453, said)
        assert m[2] != "0" or "1 damaged place passed over" in said, said
        tap.check_in("/segment", said)


@cases.add
def damaged_frames_are_named_and_passed_over():
    for offset, ids in ((9, ["1.0", "1.2", "1.3"]),       # header
                        (150, ["1.0", "1.2", "1.3"]),     # META
                        (-20, ["1.0", "1.1", "1.2", "1.3"])):  # body
        with Store() as s:
            at = s.frames[1] + offset if offset > 0 else s.frames[2] + offset
            s.flip(at)
            os.unlink(s.index)
            for _ in range(2):
                # of a damaged body the envelope is found
                assert s.found("rcpt:bcc") == ids, offset
                assert "1 damaged place passed over" in s.err, s.err
                assert f"{s.segment} is damaged at {s.frames[1]} to " \
                    f"{s.frames[2]}" in s.err, s.err
                s.run("reindex", status=65 if offset != -20 else 0)
            s.run("export", "--to", s.path("out"), "rcpt:bcc",
                  status=65 if offset == -20 else 0)


@cases.add
def a_damaged_shard_does_not_keep_the_others():
    with Store() as s:
        s.run("add", data=b"Subject: fox\r\n\r\n")
        s.change(0, b"\0" * 100)
        assert s.found("fox") == ["2.0"]
        assert "1 shard NOT searched" in s.err, s.err


@cases.add
def reindex_ends_when_the_index_cannot_be_written():
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400000, 400000))
    with Store() as s:
        with open(s.path("m"), "wb") as f:
            for i in range(400):
                words = " ".join(hashlib.md5(b"%d %d" % (i, n)).hexdigest()[:9]
                                 for n in range(200))
                f.write(f"From a@b Mon Nov 30 12:00:00 2026\nSubject: {i}\n\n"
                        f"{words}\n\n".encode())
        s.run("import", s.path("m"))
        # signals that are ignored stay so: writes fail, and kill nobody
        p = subprocess.run([HANAPER, "archive", "reindex", "--dir", s.dir],
                           preexec_fn=small_files, restore_signals=False,
                           capture_output=True, timeout=60)
        assert p.returncode not in (0, 65, 70), p
        assert b": the index does not follow: " in p.stderr, p
        # the index of before serves on, and the next run completes the new
        assert len(s.found("subject:7", "OR", "subject:8")) == 2
        s.run("reindex")
        assert len(s.found("subject:7", "OR", "subject:8")) == 2


tap.run(cases)
