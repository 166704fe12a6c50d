#!/usr/bin/env python3
"""hanaper archive checkpoint, key, verify, prove without a daemon, and
contrib/hanaper-proof, which checks the same without our code. Prints TAP."""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

SRC = os.environ.get("SRCDIR", ".")
sys.path.insert(0, os.path.join(SRC, "tests"))
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
FILL = os.path.join(os.environ.get("BUILDDIR", "."), "tests/cli/fill_store")
PROOF = os.path.join(SRC, "contrib", "hanaper-proof")
cases = tap.Cases()

MAIL = [b"Subject: one\r\n\r\nYes, agreed.\r\n",
        b"Subject: two\r\n\r\n\0\xff\r no end",
        b"Subject: three\r\n\r\n" + b"x" * 3000]


class Store:
    """Three messages, signed; run as whoever we are."""

    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="hnp.")
        self.dir = self.path("store")
        self.files = []
        for i, mail in enumerate(MAIL):
            self.files.append(self.path(f"{i}.eml"))
            with open(self.files[-1], "wb") as file:
                file.write(mail)
        self.ids = self.fill(*self.files)
        with open(self.path("conf"), "w") as file:
            file.write(f"archive = on\narchive_dir = {self.dir}\n"
                       f"archive_keys = {self.path('keys')}\n"
                       f"state_dir = {self.path('state')}\n"
                       f"key_dir = {self.path('none')}\n")
        self.key = self.run("key", "--new").split()[-1]
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def fill(self, *files):
        done = subprocess.run([FILL, self.dir, *files], check=True,
                              capture_output=True, text=True)
        return done.stdout.split()

    def run(self, command, *args, status=0, err=False):
        done = subprocess.run([HANAPER, "archive", command, "-c",
                               self.path("conf"), *args],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == status, (command, args, done)
        return done.stderr if err else done.stdout

    def save(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def segment(self):
        path, = glob.glob(os.path.join(self.dir, "families/mail/*/segment"))
        return path


def foreign(*args, status=0):
    """contrib/hanaper-proof."""
    done = subprocess.run([sys.executable, PROOF, *args],
                          capture_output=True, timeout=60)
    assert done.returncode == status, (args, done)
    return done.stdout


def tools():
    return shutil.which("openssl") and shutil.which("zstd")


@cases.add
def a_proof_stands_alone():
    with Store() as s:
        tap.check_in("no checkpoint covers", s.run(
            "prove", s.ids[1], status=75, err=True))
        note = s.save("note", s.run("checkpoint"))
        file = s.save("proof", s.run("prove", s.ids[1]))
        said = s.run("prove", "--check", file, "--key", s.key, "--message",
                     s.files[1], "--note", note)
        tap.check_in("sender: sender@example.org", said)
        tap.check_in("recipient: bcc@example.com", said)
        tap.check_in("signed by: the key given", said)
        assert said.endswith("proved\n"), said
        # without a key it says what it does not know
        said = s.run("prove", "--check", file)
        tap.check_in("compare it with the key that was published", said)
        # not this message, not this key, not this note
        tap.check_in("is not the message", s.run(
            "prove", "--check", file, "--message", s.files[0], status=1))
        other = s.key[:8] + ("0" if s.key[8] != "0" else "1") + s.key[9:]
        s.run("prove", "--check", file, "--key", other, status=64)
        s.fill(s.save("more", "Subject: more\r\n\r\n"))
        later = s.save("later", s.run("checkpoint"))
        tap.check_in("another one", s.run(
            "prove", "--check", file, "--note", later, status=1))
        # but a proof of consistency joins them
        joined = s.save("joined", s.run("prove", "--consistency", later,
                                        note))
        said = s.run("prove", "--check", joined, "--key", s.key)
        tap.check_in("the new tree begins with the old one", said)
        s.run("prove", "--check", s.save("old", s.run(
            "prove", "--note", note, s.ids[1])), "--note", note)


@cases.add
def imported_mail_is_signed_too():
    with Store() as s:
        s.run("checkpoint")
        old = s.save("old.eml", "Date: Thu, 5 Mar 2020 10:00:00 +0000\r\n"
                     "Subject: old\r\n\r\n")
        s.run("import", old, s.save("now.eml", "Subject: new\r\n\r\n"))
        ids = [json.loads(line)["id"] for line in s.run(
            "search", "--json", "subject:old OR subject:new").splitlines()]
        tap.check(len(ids), 2, "imported")
        for ident in ids:
            tap.check_in("no checkpoint covers", s.run(
                "prove", ident, status=75, err=True))
        s.run("checkpoint")
        for ident in ids:
            file = s.save("proof", s.run("prove", ident))
            said = s.run("prove", "--check", file, "--key", s.key)
            assert said.endswith("proved\n"), said
        # nothing of it is new any more; mail and audit print again
        tap.check(s.run("checkpoint").count("/1/"), 2, "notes")


@cases.add
def the_envelope_can_be_left_out():
    with Store() as s:
        s.run("checkpoint")
        text = s.run("prove", "--without-envelope", s.ids[0])
        tap.check_in("META committed", text)
        file = s.save("proof", text)
        said = s.run("prove", "--check", file, "--key", s.key, "--message",
                     s.files[0])
        tap.check_in("META: not disclosed", said)
        assert "sender" not in said, said


@cases.add
def a_forged_proof_fails():
    with Store() as s:
        s.run("checkpoint")
        text = s.run("prove", s.ids[2])
        fake = hashlib.sha256(b"another message").hexdigest()
        real = hashlib.sha256(MAIL[2]).hexdigest()
        file = s.save("proof", text.replace(real, fake))
        tap.check_in("NOT proved", s.run("prove", "--check", file, status=1))
        s.run("prove", "--check", s.save("x", "nonsense\n"), status=65)
        s.run("prove", "--check", s.path("missing"), status=66)
        s.run("prove", "9.9", status=66)
        s.run("prove", "--key", s.key, "1.0", status=64)
        s.run("prove", status=64)


@cases.add
def exports_carry_proofs():
    with Store() as s:
        s.run("checkpoint")
        s.fill(s.save("late", "Subject: late\r\n\r\n"))
        for option, to, manifest in (
                ("--to", "eml", "eml/MANIFEST"),
                ("--maildir", "box", "box/MANIFEST"),
                ("--mbox", "mbox", "mbox.MANIFEST")):
            said = s.run("export", option, s.path(to), "dir:in",
                         err=True)
            tap.check_in("4 written, 0 failed, 3 with a proof, 1 not signed",
                         said)
            with open(s.path(manifest)) as file:
                rows = [line.rstrip("\n").split("\t") for line in file]
            tap.check([bool(row[9]) for row in rows],
                      [False, True, True, True], "proofs")
            base = os.path.dirname(s.path(manifest))
            for row in rows[1:]:
                args = ["prove", "--check", os.path.join(base, row[9]),
                        "--key", s.key]
                if option != "--mbox":
                    args += ["--message", os.path.join(base, row[3])]
                tap.check_in(f"sha256: {row[1]}", s.run(*args))


@cases.add
def verify_names_what_is_wrong():
    with Store() as s:
        s.run("checkpoint")
        tap.check(s.run("verify", "--all"), "", "faults")
        tap.check_in("whole, signed", s.run("verify", *s.ids))
        with open(s.segment(), "r+b") as file:
            data = file.read()
            at = data.index(b"\xf5HNF", data.index(b"\xf5HNF") + 1)
            file.seek(at + 140)
            file.write(b"!!")
        line, = s.run("verify", "--all", status=1).splitlines()
        tap.check_in(f"shard 1, frame 1 at {at}: META is damaged", line)
        fault, = [json.loads(one) for one in s.run(
            "verify", "--all", "--json", status=1).splitlines()]
        tap.check((fault["shard"], fault["frame"], fault["offset"]),
                  (1, 1, at), "the place")
        tap.check_in("META is damaged", s.run("verify", s.ids[1], status=1))
        tap.check_in("whole", s.run("verify", s.ids[0]))
        s.run("verify", status=64)
        s.run("verify", "--all", "1.1", status=64)
        s.run("verify", "--unrecorded", s.ids[0])
        events = [json.loads(one) for one in s.run(
            "audit", "--json", "--action", "verify").splitlines()]
        tap.check([(e["reason"], e.get("ids")) for e in events], [
            ("0 faults", None), ("0 faults", s.ids), ("1 fault", None),
            ("1 fault", None), ("1 fault", [s.ids[1]]),
            ("0 faults", [s.ids[0]])])


@cases.add
def without_our_code():
    if not tools():
        raise tap.Skip("no openssl or no zstd command")
    with Store() as s:
        note = s.save("note", s.run("checkpoint"))
        for i, id_ in enumerate(s.ids):
            number = id_.split(".")[1]
            out = s.path("body")
            said = foreign("frame", s.segment(), number, "--body", out)
            tap.check_in(b"META 3 b'sender@example.org'", said)
            with open(out, "rb") as file:
                tap.check(file.read(), MAIL[i], "the message")
            for option in ([], ["--without-envelope"]):
                proof = s.save("proof", s.run("prove", *option, id_))
                said = foreign("check", proof, "--key", s.key, "--message",
                               s.files[i])
                tap.check_in(b"proved: frame 1." + number.encode(), said)
        foreign("check", proof, "--message", s.files[0], status=1)
        # a second delivery, and a body in a file of its own
        large = s.path("large")
        with open(large, "wb") as file:
            file.write(b"Subject: large\r\n\r\n" + os.urandom(5 << 20))
        for name in (s.files[0], large):
            id_, = s.fill(name)
            foreign("frame", s.segment(), id_.split(".")[1], "--body", out)
            with open(out, "rb") as got, open(name, "rb") as want:
                assert got.read() == want.read(), name
        foreign("note", note, "--key", s.key)
        note = s.save("note", s.run("checkpoint"))
        with open(note) as file:
            size, root = file.read().split("\n")[1:3]
        tap.check(foreign("tree", s.segment(), size).decode().split(),
                  [size, root], "the tree")
        s.fill(s.save("more", "Subject: more\r\n\r\n"))
        later = s.save("later", s.run("checkpoint"))
        joined = s.save("joined", s.run("prove", "--consistency", later,
                                        note))
        tap.check_in(b"begin with those", foreign("check", joined, "--key",
                                                  s.key))
        # and it refuses what is wrong
        with open(proof, "rb") as file:
            data = bytearray(file.read())
        for at in (20, 200, data.index(b"leaf") + 8, len(data) - 20):
            data[at] ^= 1
            with open(proof, "wb") as file:
                file.write(data)
            foreign("check", proof, "--key", s.key, status=1)
            data[at] ^= 1
        with open(note, "r+b") as file:
            file.seek(40)
            file.write(b"9")
        foreign("note", note, "--key", s.key, status=1)
        with open(s.segment(), "r+b") as file:
            file.seek(4096 + 130)
            file.write(b"!!!")
        foreign("frame", s.segment(), "0", status=1)


if __name__ == "__main__":
    tap.run(cases)
