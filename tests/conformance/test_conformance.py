#!/usr/bin/env python3
"""The conformance runner over the data beside the checkout: one case a
folder, each with a number that must be passed (the file `minimum`), so that
counts cannot sink unseen. $HANAPER_SHARED names another place for ../shared."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import tap  # noqa: E402

SOURCE = os.environ.get("SRCDIR") or os.path.join(HERE, "..", "..")
SHARED = os.environ.get("HANAPER_SHARED") or os.path.join(SOURCE, "..",
                                                          "shared")
DATA = os.path.join(SHARED, "conformance")
SECONDS = 600


def minimum():
    with open(os.path.join(HERE, "minimum")) as text:
        return {words[0]: int(words[1]) for words in map(str.split, text)
                if words and not words[0].startswith("#")}


def judge(folder, wanted):
    path = os.path.join(DATA, folder)
    if not os.path.exists(path):
        raise tap.Skip(f"shared data absent: {folder}")
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "run"), "-v", path],
        capture_output=True, text=True, timeout=SECONDS)
    tap.note(done.stdout + done.stderr)
    line = re.search(rf"^{re.escape(folder)} (\d+)/(\d+) \(", done.stdout,
                     re.M)
    if not line:
        raise AssertionError("no count")
    tap.check(int(line[1]) >= wanted, True, f"{line[1]} >= {wanted}")
    tap.check(done.returncode, 0, "exit status")


tap.run([(f"{folder}: at least {count}",
          lambda folder=folder, count=count: judge(folder, count))
         for folder, count in minimum().items()])
