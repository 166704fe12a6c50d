#!/usr/bin/env python3
"""hanaper archive search, list, show, export, stats, reindex, over stores
filled by fill_store. Prints TAP."""
import hashlib
import json
import mailbox
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/fill_store")
cases = tap.Cases()

MAIL = [
    b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nFrom: Alice <a@example.org>\r\n"
    b"To: bob@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n"
    b"\r\n--b\r\n\r\nA quick fox\x1b[31m\xc2\x9b31m.\r\n--b\r\n"
    b"Content-Type: application/pdf\r\n"
    b"Content-Disposition: attachment; filename=\"r.pdf\"\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\nJVBERgA=\r\n--b--\r\n",
    b"Subject: lunch\r\nFrom: dave@example.org\r\n\r\n"
    b"From here on\r\n>From there\r\nA lazy cow.\r\n",
    b"\0\xff bare\rCR and\nLF, no header, no end",
]


class Store:
    def __init__(self, *flags):
        self.flags = flags

    def __enter__(self):
        self.top = tempfile.TemporaryDirectory(prefix="hna")
        self.dir = self.path("store")
        files = []
        for i, mail in enumerate(MAIL):
            files.append(self.path(f"{i}.eml"))
            with open(files[-1], "wb") as f:
                f.write(mail)
        p = subprocess.run([FILL, *self.flags, self.dir, *files], check=True,
                           capture_output=True, text=True)
        self.ids = p.stdout.split()
        return self

    def __exit__(self, *_):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def run(self, command, *args, status=0):
        p = subprocess.run([HANAPER, "archive", command, "--dir", self.dir,
                            *args], capture_output=True)
        assert p.returncode == status, (command, args, p)
        for line in p.stderr.decode().splitlines():
            assert line.startswith(("hanaper: ", "usage: ", "   ",
                                    self.dir)), line
        return p.stdout, p.stderr.decode()

    def search(self, *args, status=0):
        out, _ = self.run("search", "--json", *args, status=status)
        return [json.loads(line) for line in out.splitlines()]


@cases.add
def search_finds_by_text_field_and_fact_newest_first():
    with Store() as s:
        assert [h["id"] for h in s.search("from:@example.org")] == \
            s.ids[::-1]
        assert [h["id"] for h in s.search("from:alice")] == [s.ids[0]]
        hit = s.search("quick")[0]
        assert hit["subject"] == "Grüße", hit
        assert hit["rcpts"] == ["bcc@example.com"], hit
        assert hit["highlights"] == ["quick"], hit
        assert [h["id"] for h in s.search("rcpt:bcc")] == s.ids[::-1]
        assert [h["id"] for h in s.search("has:attachment")] == [s.ids[0]]
        assert [h["id"] for h in s.search("--", "-lunch", "-quick")] == [s.ids[2]]
        assert [h["id"] for h in s.search("a", "-cow")] == [s.ids[0]]
        s.run("search", "cow", "--json", status=64)
        out, _ = s.run("search", "--count", "dkim:pass")
        assert out == b"3\n", out


@cases.add
def exit_status_and_coverage_tell_nothing_found_from_not_searched():
    with Store() as s:
        out, err = s.run("search", "elephant", status=1)
        assert out == b"" and "searched 1 shard, 3 messages, 0 un-indexed" \
            in err, err
        segment = [os.path.join(d, "segment") for d, _, names in
                   os.walk(os.path.join(s.dir, "families", "mail"))
                   if "segment" in names][0]
        with open(segment, "r+b") as f:
            f.write(b"\0" * 64)
        _, err = s.run("search", "elephant", status=75)
        assert "1 shard NOT searched" in err, err


@cases.add
def errors_in_a_query_name_the_place():
    with Store() as s:
        _, err = s.run("search", "a (b", status=64)
        assert err == "hanaper: query: at 3: this parenthesis is never " \
            "closed\n", err
        out, _ = s.run("search", "--explain", "subject:x")
        assert out == b'subject: the word "x" in the subject\n', out


@cases.add
def pages_by_cursor():
    with Store() as s:
        seen, args = [], []
        while True:
            out, err = s.run("list", "--json", "--limit", "1", *args)
            seen += [json.loads(line)["id"] for line in out.splitlines()]
            if "--cursor" not in err:
                break
            args = ["--cursor", err.split("--cursor ")[1].strip()]
        assert seen == s.ids[::-1], seen
        s.run("search", *args, "other", status=64)


@cases.add
def no_control_byte_of_a_message_reaches_a_terminal():
    with Store() as s:
        for out, _ in (s.run("search", "quick"), s.run("show", s.ids[0]),
                       s.run("list"), s.run("show", "--structure", s.ids[2]),
                       s.run("search", "--format", "{snippet}", "quick")):
            text = out.decode()
            assert all(c in "\n\t" or (" " <= c < "\x7f") or c > "\x9f"
                       for c in text), text


@cases.add
def show_raw_gives_the_very_bytes_headers_the_header():
    with Store() as s:
        for name, mail in zip(s.ids, MAIL):
            assert s.run("show", "--raw", name)[0] == mail, name
        head = MAIL[1].split(b"\r\n\r\n")[0] + b"\r\n\r\n"
        assert s.run("show", "--headers", s.ids[1])[0] == head
        out = s.run("show", "--meta", s.ids[0])[0].decode()
        assert "rcpt: bcc@example.com\n" in out and "fact: dkim=pass" in out


@cases.add
def show_structure_and_attachment():
    with Store() as s:
        out = s.run("show", "--structure", s.ids[0])[0].decode()
        assert "2  application/pdf base64 attachment \"r.pdf\"  5 bytes" \
            in out, out
        assert s.run("show", "--attachment", "2", s.ids[0])[0] == b"%PDF\0"
        s.run("show", "--attachment", "7", s.ids[0], status=66)
        s.run("show", "9.9", status=66)
        s.run("show", "non.sense", status=64)
        s.run("show", "nonsense", status=66)
        s.run("show", "", status=64)


@cases.add
def export_to_files_and_maildir_is_byteexact_with_a_manifest():
    with Store() as s:
        s.run("export", "--to", s.path("eml"), "dkim:pass")
        rows = [line.split("\t") for line in
                open(s.path("eml/MANIFEST"), encoding="utf-8")]
        assert [r[0] for r in rows] == s.ids[::-1], rows
        for row, mail in zip(rows, MAIL[::-1]):
            assert row[1] == hashlib.sha256(mail).hexdigest()
            with open(s.path("eml/" + row[3]), "rb") as f:
                assert f.read() == mail
        s.run("export", "--maildir", s.path("md"), "dkim:pass")
        box = mailbox.Maildir(s.path("md"), create=False)
        assert sorted(box.get_bytes(k) for k in box.keys()) == sorted(
            MAIL)
        s.run("export", "--to", s.path("none"), "elephant", status=1)


@cases.add
def export_to_mboxrd_quotes_from_lines():
    with Store() as s:
        s.run("export", "--mbox", s.path("m"), "cow")
        with open(s.path("m"), "rb") as f:
            got = f.read()
        assert got.startswith(b"From sender@example.org Thu May 28 "), got
        assert got.split(b"\r\n", 1)[1] == MAIL[1].replace(
            b"From here", b">From here").replace(
            b">From there", b">>From there") + b"\r\n", got
        s.run("export", "--mbox", s.path("m"), "cow", status=73)


@cases.add
def what_is_ignored_or_too_long_is_told():
    with Store() as s:
        _, err = s.run("search", "fox", "!?", "*")
        tap.check_in('hanaper: ignored, no letter or digit in it: "!?", ""',
                     err)
        for length in (4097, 100000):
            _, err = s.run("search", "x" * length, status=64)
            tap.check_in("the query is longer than 4096 bytes", err)


@cases.add
def stats_reindex_and_the_same_answers_afterwards():
    with Store() as s:
        out, _ = s.run("stats", "--json")
        assert json.loads(out)["messages"] == 3, out
        s.run("reindex")
        assert [h["id"] for h in s.search("cow")] == [s.ids[1]]
        out, _ = s.run("stats")
        assert b"3 messages, 0 un-indexed" in out, out


@cases.add
def a_store_left_by_a_crash_is_read_and_recovered():
    with Store("-k") as s:
        assert [h["id"] for h in s.search("dkim:pass")] == s.ids[::-1]
        assert s.run("show", "--raw", s.ids[2])[0] == MAIL[2]


@cases.add
def no_store_no_arguments_unknown_options():
    with Store() as s:
        s.dir = s.path("nothing")
        _, err = s.run("list", status=66)
        assert s.dir in err, err
        s.run("search", status=64)
        s.run("search", "--no-such-option", "x", status=64)
        p = subprocess.run([HANAPER, "archive"], capture_output=True)
        assert p.returncode == 64


if __name__ == "__main__":
    tap.run(cases)
