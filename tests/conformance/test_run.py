#!/usr/bin/env python3
"""The conformance runner itself: what it prints, that a wrong expectation
fails, that zone files carry every octet."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import tap  # noqa: E402
import tools  # noqa: E402

place = tempfile.TemporaryDirectory(prefix="hanaper-runner.")


def canon(ident, wanted):
    return {"id": ident, "kind": "dkim-canon-body", "input": ["a  b\r\n"],
            "canonicalization": "relaxed", "expect": {"canonical": wanted}}


GOOD, BAD = canon("f/good", "a b\r\n"), canon("f/bad", "a  b\r\n")
SILENT = dict(canon("f/silent", ""), expect={"allowed": []})
ONLY = {"id": "f/only", "kind": "message-only", "expect": {}}
NEW = {"id": "f/new", "kind": "no-such-kind", "expect": {"x": 1}}


def run(cases, exceptions="", *options):
    with tempfile.TemporaryDirectory(dir=place.name) as top:
        os.mkdir(os.path.join(top, "f"))
        with open(os.path.join(top, "f", "cases.json"), "w") as out:
            json.dump(cases, out)
        with open(os.path.join(top, "exceptions"), "w") as out:
            out.write(exceptions)
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "run"), *options, "-e",
             os.path.join(top, "exceptions"), os.path.join(top, "f")],
            capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


def passes():
    tap.check(run([GOOD]), (0, "f 1/1 (0 excepted, 0 not judged)\n"
                            "1 passed, 0 failed, 0 skipped\n", ""))


def fails():
    status, out, _ = run([GOOD, BAD], "", "-v")
    tap.check(status, 1, "exit status")
    tap.check_in("f/bad: FAILED: b'a b\\r\\n', not b'a  b\\r\\n'\n", out)
    tap.check_in("f 1/2 (0 excepted, 0 not judged)\n", out)
    tap.check(out.splitlines()[-1], "1 passed, 1 failed, 0 skipped")


def excepted():
    status, out, _ = run([GOOD, BAD], "# a comment\nf/bad RFC-0000 because\n")
    tap.check((status, out), (0, "f 1/2 (1 excepted, 0 not judged)\n"
                              "1 passed, 0 failed, 1 skipped\n"))


def exception_without_reason():
    status, _, complaint = run([GOOD], "f/bad RFC-0000\n")
    tap.check(status, 1, "exit status")
    tap.check_in("no reason", complaint)


def not_judged():
    status, out, _ = run([GOOD, SILENT, ONLY, NEW])
    tap.check(status, 0, "exit status")
    tap.check_in("f 1/1 (0 excepted, 3 not judged)\n", out)
    tap.check_in("unknown kind no-such-kind: 1 cases\n", out)
    tap.check_in("1 passed, 0 failed, 3 skipped\n", out)


def no_folder():
    status = subprocess.run(
        [sys.executable, os.path.join(HERE, "run"), place.name],
        capture_output=True).returncode
    tap.check(status, 1, "exit status")


def every_octet():
    """What is not plain ASCII is written as \\DDD, quotes are escaped."""
    with tools.workplace():
        path = tools.zone([
            {"name": "a.example", "type": "TXT",
             "value": ['q"uo\\te', "".join(map(chr, range(128))), "ü"]},
            {"name": "m.example", "type": "MX", "value": [10, "a.example"]},
            {"name": "t.example", "type": "*", "rcode": "TIMEOUT"}])
        with open(path) as text:
            lines = text.read().splitlines()
    tap.check(lines[0].startswith('a.example TXT "q\\"uo\\\\te" "\\000\\001'),
              True, lines[0])
    tap.check(lines[0].endswith('"\\195\\188"'), True, lines[0])
    tap.check(lines[1:], ["m.example MX 10 a.example",
                          "t.example * !TIMEOUT"], "records")


def zone_is_read():
    with tools.workplace():
        path = tools.zone([{"name": "a.example", "type": "TXT",
                            "value": ["v=spf1 ", "ip4:192.0.2.1 -all"]}])
        for ip, wanted in (("192.0.2.1", "pass"), ("192.0.2.2", "fail")):
            got = tools.helper("spf", zone=path, ip=ip, helo="h.example",
                               **{"from": "x@a.example"})
            tap.check(got["result"], wanted, ip)


tap.run([
    ("a right case", passes),
    ("a wrong case fails and is shown", fails),
    ("an excepted case", excepted),
    ("an exception needs its reason", exception_without_reason),
    ("what is not judged", not_judged),
    ("a folder without cases", no_folder),
    ("zone files hold every octet", every_octet),
    ("zone files are understood", zone_is_read),
], None, place.cleanup)
