#!/usr/bin/env python3
"""hanaper archive rescue, on stores that were damaged in every way we could
think of. Prints TAP."""
import glob
import hashlib
import json
import os
import random
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

noise = random.Random(1)
MAIL = [
    b"Subject: one\r\n\r\nThe first fox.\r\n",
    b"Subject: two\r\n\r\n" + noise.randbytes(30000) + b"\r\n",
    b"\0\xff bare\rCR and\nLF, no header, no end",
    b"Subject: four\r\n\r\nThe last fox.\r\n",
]
LARGE = b"Subject: large\r\n\r\n" + noise.randbytes(5 << 20)


class Store:
    def __init__(self, *mail):
        self.mail = mail

    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hnr")
        self.dir = self.path("store")
        self.fill(self.dir, self.mail)
        self.segment = glob.glob(self.dir + "/families/mail/*/segment")[0]
        self.shard = os.path.dirname(self.segment)
        for index in glob.glob(self.shard + "/index*"):
            os.unlink(index)  # never needed
        self.frames = list(walk(self.segment))
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def fill(self, store, mail):
        files = []
        for i, bytes_ in enumerate(mail):
            files.append(self.path(f"{os.path.basename(store)}{i}.eml"))
            with open(files[-1], "wb") as f:
                f.write(bytes_)
        subprocess.run([FILL, store, *files], check=True,
                       stdout=subprocess.DEVNULL)

    def spoil(self, offset, bytes_):
        with open(self.segment, "r+b") as f:
            f.seek(offset)
            f.write(bytes_)

    def flip(self, offset):
        with open(self.segment, "rb") as f:
            f.seek(offset)
            old = f.read(1)
        self.spoil(offset, bytes([old[0] ^ 0x20]))

    def rescue(self, what=None, status=0, *args):
        """The messages that came of it, and the lines of the report."""
        out = self.path(f"out{len(os.listdir(self.top.name))}")
        p = subprocess.run([HANAPER, "archive", "rescue", "--json", "--to",
                            out, *args, what or self.dir],
                           capture_output=True, text=True)
        assert p.returncode == status, p
        self.out = out
        found = {}
        if os.path.exists(out + "/MANIFEST"):
            with open(out + "/MANIFEST", encoding="utf-8") as f:
                for line in f:
                    row = line.rstrip("\n").split("\t")
                    with open(f"{out}/{row[3]}", "rb") as eml:
                        found[row[0]] = eml.read()
                    assert row[1] == hashlib.sha256(
                        found[row[0]]).hexdigest(), row
            files = set(os.listdir(out)) - {"MANIFEST"}
            assert all(name.endswith(".eml") for name in files), files
        return found, [json.loads(line) for line in p.stdout.splitlines()]


def walk(segment):
    """(offset, total, META's stored length, body's offset) of each frame."""
    with open(segment, "rb") as f:
        data = f.read()
    at = HEADER
    while data[at:at + 4] == b"\xf5HNF":
        total, meta, evidence, edits = struct.unpack_from(
            "<QIII", data, at + 32)
        body = at + 128 + sum((n + 7) & ~7 for n in (meta, evidence, edits))
        yield at, total, meta, body
        at += total


def messages(found):
    return sorted(found.values())


@cases.add
def a_whole_store_gives_every_byte_and_no_complaint():
    with Store(*MAIL, MAIL[0]) as s:
        found, report = s.rescue()
        assert messages(found) == sorted([*MAIL, MAIL[0]])
        assert sorted(found) == ["1.0", "1.1", "1.2", "1.3", "1.4"], found
        assert report[-1]["messages"] == 5, report
        assert report[-1]["deliveries"] == 1 and len(report) == 1, report
        with open(s.out + "/MANIFEST", encoding="utf-8") as f:
            row = f.readline().rstrip("\n").split("\t")
        assert row[5] == "sender@example.org", row
        assert row[8] == "bcc@example.com", row
        _, again = s.rescue(s.shard)
        assert again == report
        # neither the store's identity nor the index is needed
        os.unlink(s.dir + "/store")
        assert s.rescue()[1] == report


@cases.add
def a_damaged_body_is_named_and_the_rest_is_there():
    with Store(*MAIL) as s:
        at, total, _, body = s.frames[1]
        s.flip(body + 100)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL[:1] + MAIL[2:])
        assert report[0] == {"segment": s.segment, "from": body,
                             "to": at + total, "frame": 1,
                             "what": "BODY is damaged"}, report
        assert report[-1]["lost"] == 1 and report[-1]["missing"] == 0


@cases.add
def a_damaged_envelope_does_not_cost_the_message():
    with Store(*MAIL) as s:
        s.flip(s.frames[1][0] + 128 + 20)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL)
        assert report[0]["what"] == "META is damaged", report


@cases.add
def a_damaged_frame_header_costs_one_message():
    for offset in (0, 4, 7, 12, 33, 41, 60, 73, 105, 121):
        with Store(*MAIL) as s:
            at, total, _, _ = s.frames[1]
            s.flip(at + offset)
            found, report = s.rescue(None, 1)
            assert messages(found) == sorted(MAIL[:1] + MAIL[2:]), offset
            assert report[0]["from"] == at, report
            assert report[0]["to"] == at + total, report
            assert report[-1]["missing"] == 1, report


@cases.add
def a_hole_a_cut_and_rubbish_at_the_end():
    with Store(*MAIL) as s:
        at, total, _, _ = s.frames[1]
        end = s.frames[2][0] + 40
        s.spoil(at + 60, b"\0" * (end - at - 60))
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted([MAIL[0], MAIL[3]])
        assert report[-1]["missing"] == 2, report
        assert report[0]["to"] == s.frames[3][0], report
    with Store(*MAIL) as s:
        at, total, _, _ = s.frames[3]
        os.truncate(s.segment, at + 140)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL[:3])
        assert report[0]["from"] == at and report[0]["to"] == at + 140
    with Store(*MAIL) as s:
        end = os.path.getsize(s.segment)
        with open(s.segment, "ab") as f:
            f.write(b"\0" * 100 + b"rubbish" * 100)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL), report
        assert report[0]["to"] == end + 800, report


@cases.add
def a_damaged_shard_header_costs_nothing_while_its_nonce_is_there():
    with Store(*MAIL) as s:
        s.flip(20)    # uuid
        s.flip(12)    # number
        at, total, _, _ = s.frames[1]
        s.flip(at + 8)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL[:1] + MAIL[2:])
        assert "nonce is right" in report[0]["what"], report
        assert sorted(found) == ["mail-2026-05.1.0", "mail-2026-05.1.2",
                                 "mail-2026-05.1.3"], found.keys()


@cases.add
def a_lost_shard_header_costs_what_is_behind_the_first_gap():
    with Store(*MAIL) as s:
        s.spoil(0, b"\0" * HEADER)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted(MAIL)
        assert "header is lost" in report[0]["what"], report
        # a damaged block is no gap
        s.flip(s.frames[1][3] + 100)
        assert messages(s.rescue(None, 1)[0]) == sorted(MAIL[:1] + MAIL[2:])
        at = s.frames[2][0]
        s.flip(at)
        found, report = s.rescue(None, 1)
        assert messages(found) == MAIL[:1], report
        assert report[-2]["from"] == at, report


@cases.add
def a_lone_segment_is_read_where_it_lies():
    with Store(*MAIL) as s:
        lone = s.path("found.000")
        os.rename(s.segment, lone)
        found, _ = s.rescue(lone)
        assert messages(found) == sorted(MAIL)
        for size in (0, 100, HEADER - 1):
            os.truncate(lone, size)
            found, report = s.rescue(lone, 1)
            assert found == {} and report[-1]["messages"] == 0, report
        s.rescue(s.path("nowhere"), 66)


@cases.add
def a_later_version_is_refused_with_one_line():
    with Store(*MAIL) as s:
        with open(s.segment, "r+b") as f:
            head = bytearray(f.read(HEADER))
            head[8] = 2
            head[-4:] = struct.pack("<I", crc32c(bytes(head[:-4])))
            f.seek(0)
            f.write(head)
        p = subprocess.run([HANAPER, "archive", "rescue", "--to",
                            s.path("out"), s.segment], capture_output=True,
                           text=True)
        assert p.returncode == 1, p
        assert p.stderr == f"hanaper: {s.segment}: a segment of a later " \
            "version\n", p.stderr


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
def a_segment_inside_a_message_is_never_taken_for_frames():
    with Store(b"Subject: forged\r\n\r\nevil\r\n") as a:
        with open(a.segment, "rb") as f:
            frames = f.read()[HEADER:a.frames[0][0] + a.frames[0][1]]
        # at every place modulo 8, among bytes that do not compress
        mailed = b"Subject: see this\r\n\r\n" + b"".join(
            noise.randbytes(1000 + i) + frames for i in range(8)) + \
            noise.randbytes(5000)
        with Store(MAIL[0], mailed, MAIL[3]) as s:
            with open(s.segment, "rb") as f:
                assert b"\xf5HNF" in f.read()[s.frames[1][3]:s.frames[2][0]]
            for where in (s.frames[1][0], 84, 0):
                s.flip(where)
                found, _ = s.rescue(None, 1)
                assert b"Subject: forged\r\n\r\nevil\r\n" not in \
                    found.values(), where
                assert MAIL[0] in found.values()
                assert mailed not in found.values()


@cases.add
def large_bodies_have_files_of_their_own():
    with Store(MAIL[0], LARGE, MAIL[3]) as s:
        assert messages(s.rescue()[0]) == sorted([MAIL[0], LARGE, MAIL[3]])
        # its frame is lost, the file is there
        at = s.frames[1][0]
        s.flip(at)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted([MAIL[0], LARGE, MAIL[3]])
        assert report[-1]["orphans"] == 1, report
        s.flip(at)
        body = glob.glob(s.shard + "/bodies/*")[0]
        with open(body, "r+b") as f:
            f.seek(1000000)
            f.write(b"damage")
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted([MAIL[0], MAIL[3]])
        assert body in report[0]["what"], report
        os.unlink(body)
        found, report = s.rescue(None, 1)
        assert messages(found) == sorted([MAIL[0], MAIL[3]])
        assert report[0]["frame"] == 1, report


@cases.add
def into_a_new_store_with_the_envelopes():
    with Store(*MAIL, MAIL[0]) as s:
        s.flip(s.frames[1][0])
        s.flip(s.frames[2][0] + 128 + 20)
        s.rescue(None, 1, "--store")

        def run(*args):
            p = subprocess.run([HANAPER, "archive", args[0], "--dir", s.out,
                                *args[1:]], capture_output=True)
            assert p.returncode == 0, p
            return p.stdout
        hits = [json.loads(line) for line in
                run("search", "--json", "rcpt:bcc").splitlines()]
        assert len(hits) == 2, hits  # two deliveries are one content
        raw = sorted(run("show", "--raw", h["id"]) for h in hits)
        assert raw == sorted([MAIL[0], MAIL[3]])
        lost = json.loads(run("search", "--json", "bare"))
        assert run("show", "--raw", lost["id"]) == MAIL[2]
        assert lost["time"].startswith("2026-05-28"), lost
        # the newest shard is that of the events
        stats = json.loads(run("stats", "--json").splitlines()[-1])
        assert stats["period"] == "2026-05" and stats["deliveries"] == 1
        assert stats["family"] == "mail", stats


@cases.add
def nothing_is_overwritten():
    with Store(*MAIL) as s:
        s.rescue()
        p = subprocess.run([HANAPER, "archive", "rescue", "--to", s.out,
                            s.dir], capture_output=True, text=True)
        assert p.returncode == 73 and "no empty directory" in p.stderr, p
        # two shards of one number
        os.makedirs(s.dir + "/families/other/2026-05.0")
        with open(s.segment, "rb") as f, open(
                s.dir + "/families/other/2026-05.0/segment", "wb") as g:
            g.write(f.read())
        found, _ = s.rescue()
        assert messages(found) == sorted(MAIL * 2)


tap.run(cases)
