#!/usr/bin/env python3
"""Every man page passes mandoc's lint, and hanaper(1) has every command and
every option that the program names in its usage texts."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

MAN = os.path.join(os.environ.get("SRCDIR", "."), "man")
HANAPER = os.environ.get("HANAPER", "./hanaper")


def lint(page):
    # STYLE and above; that a page is not installed or in the index of pages
    # here is no error.
    done = subprocess.run(["mandoc", "-Tlint", "-Wstyle", page],
                          capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines()
             if "referenced manual not found" not in line
             and "outdated mandoc.db" not in line]
    tap.check(lines, [], "complaints")


def commands(*words):
    """The commands that `hanaper [WORD] help` lists."""
    out = subprocess.run([HANAPER, *words, "help"], capture_output=True,
                         text=True).stdout
    return re.findall(r"(?m)^  ([a-z]+) ", out)


def usage(*words):
    done = subprocess.run([HANAPER, *words, "--no-such-option"],
                          capture_output=True, text=True)
    return done.stderr


def complete():
    with open(os.path.join(MAN, "hanaper.1")) as text:
        page = text.read()
    lacking = []
    names = [(c,) for c in commands() if c != "archive"]
    names += [("archive", c) for c in commands("archive")]
    tap.check(len(names) > 5, True, f"commands {names}")
    for words in names:
        if f".Cm {' '.join(words)}" not in page:
            lacking.append(" ".join(words))
        for option in set(re.findall(r"--([a-z][a-z-]*)", usage(*words))):
            if option != "no-such-option" and \
                    not re.search(rf"(?:Fl |\| )-{option}\b", page):
                lacking.append(f"{' '.join(words)} --{option}")
    tap.check(lacking, [], "not in hanaper(1)")


pages = sorted(glob.glob(os.path.join(MAN, "*.[1-9]")))
cases = [(f"lint {os.path.basename(page)}", lambda page=page: lint(page))
         for page in pages]
cases.append(("hanaper(1) is complete", complete))
tap.run(cases, None if shutil.which("mandoc") else "mandoc is not installed")
