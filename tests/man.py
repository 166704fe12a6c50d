#!/usr/bin/env python3
"""Every man page passes mandoc's lint."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

MAN = os.path.join(os.environ.get("SRCDIR", "."), "man")


def lint(page):
    # STYLE and above; that a page of ours is not installed yet is no error.
    done = subprocess.run(["mandoc", "-Tlint", "-Wstyle", page],
                          capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines()
             if "referenced manual not found" not in line]
    tap.check(lines, [], "complaints")


pages = sorted(glob.glob(os.path.join(MAN, "*.[1-9]")))
tap.run([(os.path.basename(page), lambda page=page: lint(page))
         for page in pages] or [("pages", lambda: tap.check(pages != [], True,
                                                            "any page"))],
        None if shutil.which("mandoc") else "mandoc is not installed")
