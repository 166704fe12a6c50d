#!/usr/bin/env python3
"""The line that long jobs show on a terminal, and nowhere else. Prints TAP."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
cases = tap.Cases()


def on_terminal(*args, columns=70):
    """What the terminal gets of standard error."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen([HANAPER, "archive", *args], stderr=slave,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    assert p.wait(60) == 0, parts
    return b"".join(parts).decode()


def lines_drawn(text, columns=70):
    """Each bar drawn; the last one was cleared."""
    drawn = [p for p in re.split("\r(?:\033\\[K)?|\n", text)
             if p.startswith("[")]
    assert drawn, text
    for line in drawn:
        assert re.match(r"\[[=> ]{20}\] +\d+%", line), line
        assert len(line) < columns, line
        assert "\033" not in line, line
    last = text.rindex(drawn[-1]) + len(drawn[-1])
    assert text[last:].startswith("\r\033[K"), text[last:]
    return drawn


@cases.add
def every_long_job_shows_how_far_it_is():
    with tempfile.TemporaryDirectory(prefix="hnp") as top:
        store = os.path.join(top, "store")
        mbox = os.path.join(top, "a\033[31mb")
        with open(mbox, "w", encoding="ascii") as f:
            for i in range(300):
                f.write("From a@x Mon Nov 30 12:00:00 2026\n"
                        f"Subject: {i}\nDate: Mon, 30 Nov 2026 12:00:00 +0000"
                        f"\n\nbody {i}\n\n")
        jobs = (("import", "--dir", store, mbox), ("reindex", "--dir", store),
                ("verify", "--dir", store, "--all"),
                ("backup", "--dir", store, "--to", os.path.join(top, "back")),
                ("restore", "--dir", os.path.join(top, "again"),
                 "--from", os.path.join(top, "back")))
        for job in jobs:
            drawn = lines_drawn(on_terminal(*job))
            if job[0] == "import":
                tap.check_in("300 imported", drawn[-1])
        narrow = on_terminal(*jobs[1], columns=30)
        lines_drawn(narrow, columns=30)
        for job in jobs[1:4]:
            p = subprocess.run([HANAPER, "archive", *job], check=True,
                               capture_output=True, text=True)
            assert "%" not in p.stderr and "\r" not in p.stderr, p
        p = subprocess.run([HANAPER, "archive", *jobs[1]], check=True,
                           capture_output=True, text=True)
        tap.check(p.stderr, "", "reindex without a terminal")


if __name__ == "__main__":
    tap.run(cases)
