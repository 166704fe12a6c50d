#!/usr/bin/env python3
"""hanaper key generate, dns, list. Prints TAP."""
import base64
import json
import os
import re
import stat
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
cases = tap.Cases()


def run(*args, status=0):
    p = subprocess.run([HANAPER, "key", *args], capture_output=True, text=True)
    assert p.returncode == status, (args, p.returncode, p.stderr)
    assert p.stderr == "" or p.stderr.startswith(("hanaper: ", "usage: ")), \
        p.stderr
    return p.stdout, p.stderr


class Folder:
    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="hnk")
        self.keys = os.path.join(self.dir.name, "keys")
        return self

    def __exit__(self, *_):
        self.dir.cleanup()

    def path(self, *names):
        return os.path.join(self.keys, *names)

    def mode(self, *names):
        return stat.S_IMODE(os.stat(self.path(*names)).st_mode)


def strings(line):
    return re.findall(r'"([^"]*)"', line)


@cases.add
def generates_rsa_by_default():
    with Folder() as f:
        os.umask(0)
        out, err = run("generate", "example.org", "--key-dir", f.keys)
        os.umask(0o022)
        names = os.listdir(f.path("example.org"))
        assert len(names) == 1 and re.fullmatch(r"r\d{8}\.pem", names[0])
        selector = names[0][:-4]
        assert f.path("example.org", names[0]) in err
        assert f.mode() == 0o750 and f.mode("example.org") == 0o750
        assert f.mode("example.org", names[0]) == 0o640
        assert out.count("\n") == 1
        assert out.startswith(f"{selector}._domainkey.example.org. IN TXT ")
        parts = strings(out)
        assert len(parts) == 2 and len(parts[0]) == 255, parts
        text = "".join(parts)
        assert text.startswith("v=DKIM1; k=rsa; p=MIIBIjAN"), text
        base64.b64decode(text.split("p=")[1], validate=True)


@cases.add
def generates_what_is_asked_for():
    with Folder() as f:
        out, _ = run("generate", "example.org", "--key-dir", f.keys,
                     "--type", "ed25519", "--selector", "e1")
        text = "".join(strings(out))
        assert text.startswith("v=DKIM1; k=ed25519; p="), text
        assert len(base64.b64decode(text.split("p=")[1])) == 32
        out, _ = run("generate", "example.org", "--key-dir", f.keys,
                     "--type", "rsa4096")
        assert len(strings(out)) == 3
        # one of each type needs no state file
        assert not os.path.exists(f.path("example.org", "state"))


@cases.add
def international_and_odd_names():
    with Folder() as f:
        run("generate", "B\u00dcCHER.example.", "--type", "ed25519",
            "--key-dir", f.keys)
        assert os.listdir(f.keys) == ["xn--bcher-kva.example"]
        out, _ = run("dns", "b\u00fccher.EXAMPLE", "--key-dir", f.keys)
        assert "._domainkey.xn--bcher-kva.example. IN TXT " in out
        for bad in ("", "a..b", "../x", "a b", "a/b", "x" * 300):
            run("generate", bad, "--key-dir", f.keys, status=64)
        for bad in ("", "A", "a..b", "../x", "a/b", ".hidden"):
            _, err = run("generate", "example.org", "--selector", bad,
                         "--key-dir", f.keys, status=64)
        assert os.listdir(f.keys).count("x") == 0


@cases.add
def never_overwrites():
    with Folder() as f:
        args = ("generate", "example.org", "--type", "ed25519", "--selector",
                "e1", "--key-dir", f.keys)
        run(*args)
        with open(f.path("example.org", "e1.pem")) as file:
            before = file.read()
        _, err = run(*args, status=73)
        assert "example.org/e1.pem: is there already" in err, err
        with open(f.path("example.org", "e1.pem")) as file:
            assert before == file.read()
        assert os.listdir(f.path("example.org")) == ["e1.pem"]


@cases.add
def a_second_key_of_a_type_is_next():
    with Folder() as f:
        common = ("--type", "ed25519", "--key-dir", f.keys)
        run("generate", "example.org", "--selector", "e1", *common)
        _, err = run("generate", "example.org", "--selector", "e2", *common)
        assert "e1 still signs" in err, err
        run("generate", "example.org", "--selector", "e3", *common)
        rows = [json.loads(line) for line in
                run("list", "--json", "--key-dir", f.keys)[0].splitlines()]
        assert [(r["selector"], r["state"]) for r in rows] == \
            [("e1", "active"), ("e2", "next"), ("e3", "next")], rows
        with open(f.path("example.org", "state")) as file:
            lines = [line.split() for line in file if line[0] != "#"]
        assert [line[:2] for line in lines] == \
            [["e1", "active"], ["e2", "next"], ["e3", "next"]], lines
        assert all(line[2].isdigit() for line in lines)


@cases.add
def dns_prints_all_records():
    with Folder() as f:
        for kind in ("ed25519", "rsa2048"):
            run("generate", "example.org", "--type", kind, "--selector",
                "s-" + kind, "--key-dir", f.keys)
        run("generate", "other.example", "--type", "ed25519",
            "--key-dir", f.keys)
        zone, _ = run("dns", "example.org", "--key-dir", f.keys)
        lines = zone.splitlines()
        assert [line.split()[0] for line in lines] == \
            ["s-ed25519._domainkey.example.org.",
             "s-rsa2048._domainkey.example.org."], lines
        rows = [json.loads(line) for line in run(
            "dns", "example.org", "--json", "--key-dir",
            f.keys)[0].splitlines()]
        for row, line in zip(rows, lines):
            assert row["type"] == "TXT"
            assert row["name"] + "." == line.split()[0]
            assert row["value"] == "".join(strings(line))
        assert [r["bits"] for r in rows] == [256, 2048]
        _, err = run("dns", "none.example", "--key-dir", f.keys, status=66)
        assert "hanaper key generate none.example" in err, err


@cases.add
def the_public_half_is_openssl_s():
    with Folder() as f:
        run("generate", "example.org", "--selector", "s", "--key-dir", f.keys)
        row = json.loads(run("list", "--json", "--key-dir", f.keys)[0])
        try:
            der = subprocess.run(
                ["openssl", "pkey", "-pubout", "-outform", "DER", "-in",
                 f.path("example.org", "s.pem")], capture_output=True,
                check=True).stdout
        except FileNotFoundError:
            raise tap.Skip("openssl is not installed")
        assert row["value"].split("p=")[1] == base64.b64encode(der).decode()


@cases.add
def list_shows_a_row_per_key():
    with Folder() as f:
        os.mkdir(f.keys, 0o750)
        assert run("list", "--key-dir", f.keys)[0] == ""
        run("generate", "b.example", "--type", "ed25519", "--selector", "k",
            "--key-dir", f.keys)
        run("generate", "a.example", "--selector", "k", "--key-dir", f.keys)
        rows = [line.split() for line in
                run("list", "--key-dir", f.keys)[0].splitlines()]
        assert rows == [["a.example", "k", "active", "rsa", "2048"],
                        ["b.example", "k", "active", "ed25519", "256"]], rows


@cases.add
def the_folder_of_the_configuration():
    with Folder() as f:
        conf = os.path.join(f.dir.name, "c.conf")
        with open(conf, "w") as file:
            file.write(f"key_dir = {f.keys}\n")
        run("generate", "example.org", "--type", "ed25519", "-c", conf)
        assert len(run("list", "-c", conf)[0].splitlines()) == 1
        assert len(run("list", "-o", f"key_dir={f.keys}")[0]
                   .splitlines()) == 1
        with open(conf, "a") as file:
            file.write("key_dri = x\n")
        _, err = run("list", "-c", conf, status=78)
        assert f"{conf}:2: " in err and "key_dir" in err, err


@cases.add
def complaints_say_what_to_do():
    with Folder() as f:
        _, err = run("list", "--key-dir", f.keys, status=66)
        assert f"{f.keys}: cannot open: No such file" in err, err
        run("generate", "example.org", "--type", "ed25519", "--selector", "s",
            "--key-dir", f.keys)
        os.chmod(f.path("example.org", "s.pem"), 0o644)
        _, err = run("list", "--key-dir", f.keys, status=77)
        assert f"run: chmod 0640 {f.path('example.org', 's.pem')}" in err, err
        os.chmod(f.path("example.org", "s.pem"), 0o640)
        os.chmod(f.path("example.org"), 0o777)
        _, err = run("list", "--key-dir", f.keys, status=77)
        assert f"run: chmod 0755 {f.path('example.org')}" in err, err


@cases.add
def unwritable_folder():
    with Folder() as f:
        if os.geteuid() == 0:
            raise tap.Skip("root may write anywhere")
        os.mkdir(f.keys, 0o550)
        _, err = run("generate", "example.org", "--key-dir", f.keys,
                     status=73)
        assert "cannot make the folder: Permission denied" in err, err
        os.chmod(f.keys, 0o750)


@cases.add
def usage_errors():
    for args in ((), ("make",), ("generate",), ("list", "x"), ("dns",),
                 ("generate", "a", "b"), ("list", "--bad"),
                 ("generate", "a.example", "--type", "dsa")):
        out, err = run(*args, status=64)
        assert out == "" and err, args


if __name__ == "__main__":
    tap.run(cases)
