#!/usr/bin/env python3
"""kill -9 of hanaperd at random moments under load, LONG_ROUNDS times (200):
the content of each acknowledged message is in the archive exactly once. Part
of `make check-long`."""
import collections
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "daemon")]
from daemon import HANAPER, INBOUND, Daemon, alive, message  # noqa: E402
from milter_client import wait_until  # noqa: E402
import tap  # noqa: E402

ROUNDS = int(os.environ.get("LONG_ROUNDS", "200"))
SENDERS = 6
# A process that dies again and again is started after longer and longer
# pauses, up to 30 s; then it recovers what it finds.
PATIENCE = 90
numbers = itertools.count()
TOKEN = re.compile(rb"token-([0-9]+)-end")


class Load:
    """Senders that go on until stopped; a message counts as acknowledged when
    the answer to its end says that it may pass."""

    def __init__(self, daemon):
        self.daemon, self.acked, self.sent = daemon, set(), set()
        self.over, self.lock = threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self._send, args=(i,))
                        for i in range(SENDERS)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()

    def _send(self, which):
        rng = random.Random(which)
        while not self.over.is_set():
            try:
                m = self.daemon.connect(timeout=20)
                if m.open(**INBOUND)[-1][0] != b"c":
                    raise OSError("refused")
                for _ in range(20):
                    if self.over.is_set():
                        break
                    self._one(m, rng)
                m.quit()
            except Exception:  # killed, or not there yet
                time.sleep(0.02)

    def _one(self, m, rng):
        number = next(numbers)
        size = rng.choice((100, 1500, 1500, 40000, 300000))
        body = b"token-%d-end\r\n" % number + rng.randbytes(size)
        with self.lock:
            self.sent.add(number)
        reply = m.message(body=body,
                          **message("a@sender.example", f"m {number}"))
        if reply[-1][0] in b"ca":
            with self.lock:
                self.acked.add(number)


def kill_something(d, rng):
    """The whole daemon, or its milter process alone."""
    roles = d.roles()
    if rng.random() < 0.5 and "milter" in roles:
        os.kill(roles["milter"], signal.SIGKILL)
        wait_until(lambda: not alive(roles["milter"]))
        wait_until(lambda: d.roles().get("milter") not in
                   (None, roles["milter"]), PATIENCE)
        return
    pids = list(roles.values())
    d.process.kill()
    d.process.wait()
    for pid in pids:
        wait_until(lambda p=pid: not alive(p))
    d.start()


def stored(d):
    """How often each token is in what export writes out."""
    out = d.path("export")
    subprocess.run([HANAPER, "archive", "export", "--dir", d.path("archive"),
                    "--to", out, "--unrecorded", "dir:in"], check=True)
    found = collections.Counter()
    for folder, _, names in os.walk(out):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                for hit in set(TOKEN.findall(file.read())):
                    found[int(hit)] += name.endswith(".eml")
    return found


def killed_under_load():
    rng = random.Random(1)
    with Daemon() as d:
        with Load(d) as load:
            for n in range(ROUNDS):
                time.sleep(rng.random() * 0.4)
                kill_something(d, rng)
                if n % 20 == 19:
                    tap.note(f"{n + 1} rounds, {len(load.acked)} messages")
            time.sleep(0.5)
        tap.check(d.term(), 0, "exit status")
        found = stored(d)
        lost = sorted(load.acked - set(found))
        twice = sorted(n for n, count in found.items() if count > 1)
        tap.check(lost, [], "acknowledged and lost")
        tap.check(twice, [], "there more than once")
        assert set(found) <= load.sent, "there is what nobody sent"
        assert len(load.acked) > ROUNDS, "hardly anything got through"


tap.run([(f"kill -9 under load, {ROUNDS} rounds", killed_under_load)])
