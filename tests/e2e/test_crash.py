#!/usr/bin/env python3
"""HUP and kill -9 while mail flows: whatever Postfix got a 250 for is in the
archive exactly once, whatever happens to us meanwhile."""
import collections
import itertools
import os
import signal
import sys
import threading
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import postfix  # noqa: E402
import rig as stage  # noqa: E402
import tap  # noqa: E402

SENDERS = 4
FLOW_SECONDS = 4
rigs = []


def rig():
    if not rigs:
        rigs.append(stage.Rig())
        rigs[0].start()
    return rigs[0]


def cleanup():
    for r in rigs:
        r.stop()


class Flow:
    """Threads that send until stopped; keeps what was acknowledged."""

    def __init__(self, word):
        rig()  # started here, not by the threads
        self.word, self.acked, self.refused = word, [], []
        self.strange, self.over = [], threading.Event()
        self.count = itertools.count()
        self.threads = [threading.Thread(target=self._send)
                        for _ in range(SENDERS)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()

    def _send(self):
        r = rig()
        while not self.over.is_set():
            try:
                with r.mta.session() as smtp:
                    for _ in range(10):
                        if self.over.is_set():
                            break
                        self._one(r, smtp)
            except postfix.Refused as e:
                self.refused.append(e.code)
                if e.code != 451 and e.code != 421:
                    self.strange.append(str(e))
                time.sleep(0.02)
            except Exception as e:
                self.strange.append(repr(e))

    def _one(self, r, smtp):
        token = f"{self.word}n{next(self.count)}"
        raw = r.mail("jo@example.org", f"{self.word} {token}",
                     body=token.encode() + b"\r\n" + b"line\r\n" * 200)
        r.mta.submit(smtp, raw, "jo@example.org", ["you@remote.example"])
        self.acked.append((token, raw))

    def check(self, all_accepted=False):
        tap.note(f"{len(self.acked)} acknowledged, "
                 f"{len(self.refused)} put off")
        tap.check(self.strange, [], "unexpected replies")
        if all_accepted:
            tap.check(self.refused, [], "refusals")
        tap.check(len(self.acked) > 20, True, "enough mail")
        query = f"subject:{self.word}"
        found = collections.Counter(
            hit["subject"].split()[-1] for hit in rig().search(query))
        wrong = [(token, found[token]) for token, _ in self.acked
                 if found[token] != 1]
        tap.check(wrong, [], "not exactly once")
        kept = collections.Counter(rig().contents(query))
        wrong = [token for token, raw in self.acked if kept[raw] != 1]
        tap.check(wrong, [], "other bytes")


def reload_while_flowing():
    with Flow("reloadflow") as flow:
        end = time.monotonic() + FLOW_SECONDS
        while time.monotonic() < end:
            time.sleep(0.3)
            rig().signal(signal.SIGHUP)
    flow.check(all_accepted=True)


def bad_reload_keeps_old():
    r = rig()
    with open(r.path["hanaper.conf"], "a") as out:
        out.write("no_such_option = 1\n")
    r.signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while "no_such_option" not in r.log() and time.monotonic() < deadline:
        time.sleep(0.05)
    tap.check_in("no_such_option", r.log(), "log")
    r.sent(r.mail("jo@example.org", "old config still works"))
    r.configure()
    r.signal(signal.SIGHUP)


def kill_role(role):
    r = rig()
    before = r.role(role)
    with Flow(f"kill{role}flow") as flow:
        for _ in range(3):
            time.sleep(FLOW_SECONDS / 4)
            deadline = time.monotonic() + 20
            while True:
                try:
                    victim = r.role(role)
                    break
                except AssertionError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
            os.kill(victim, signal.SIGKILL)
        time.sleep(FLOW_SECONDS / 4)
    r.wait_ready()
    tap.check(r.role(role) != before, True, "a new process")
    flow.check()
    r.sent(r.mail("jo@example.org", "afterwards"))


def kill_supervisor():
    r = rig()
    with Flow("killsupervisorflow") as flow:
        for _ in range(2):
            time.sleep(FLOW_SECONDS / 3)
            r.daemon.kill()
            r.daemon.wait()
            r.start_daemon()
        time.sleep(FLOW_SECONDS / 3)
    flow.check()


def drain():
    """SIGTERM: what is under way gets an answer, then all ends."""
    r = rig()
    with Flow("drainflow") as flow:
        time.sleep(1)
        status = r.stop_daemon()
        r.start_daemon()
        time.sleep(1)
    tap.check(status, 0, "exit status")
    flow.check()


def archive_is_sound():
    rig().stop_daemon()
    rig().hanaper("archive", "stats")
    rig().start_daemon()


tap.run([
    ("HUP while mail flows", reload_while_flowing),
    ("a bad configuration at reload keeps the old one", bad_reload_keeps_old),
    ("kill -9 of the milter process while mail flows",
     lambda: kill_role("milter")),
    ("kill -9 of the signer while mail flows", lambda: kill_role("signer")),
    ("kill -9 of the supervisor while mail flows", kill_supervisor),
    ("TERM while mail flows", drain),
    ("the archive reads with no daemon", archive_is_sound),
], stage.why_not(), cleanup)
