#!/usr/bin/env python3
"""Erasing, expiring, holding and reading beside the running daemon, while
mail comes in. Prints TAP."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND, message, nobody  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

cases = tap.Cases()


def archive(d, *words, status=0, **kwargs):
    """`words` up to the options, a None, the rest."""
    at = words.index(None) if None in words else len(words)
    run = subprocess.run([HANAPER, "archive", *words[:at], "-c", d.conf,
                          *words[at + 1:]], capture_output=True, text=True,
                         timeout=120, **kwargs)
    assert run.returncode == status, (words, run)
    return run.stdout


def bring_in(d, path):
    """As the owner of the store."""
    who = {"user": nobody(), "group": os.stat(d.path("archive")).st_gid,
           "extra_groups": []} if os.geteuid() == 0 else {}
    os.chmod(path, 0o644)
    archive(d, "import", None, path, **who)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def ids(d, query, status=0):
    return [r["id"] for r in rows(archive(
        d, "search", None, "--json", query, status=status))]


def trail(d, *args):
    return rows(archive(d, "audit", None, "--json", *args))


def with_retention(d, keep):
    with open(d.conf, "a") as file:
        file.write(f"[retention import]\nkeep = {keep}\n")


class Flow:
    """Mail that comes in all the while; every one must be accepted."""

    def __init__(self, d):
        self.d, self.sent, self.stop, self.wrong = d, 0, False, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            m = self.d.connect()
            m.open(**INBOUND)
            while not self.stop:
                reply = m.message(**message("a@sender.example",
                                            f"flow{self.sent}x"))
                assert reply[-1] == (b"c", b""), reply
                self.sent += 1
            m.quit()
        except BaseException as e:  # told by __exit__
            self.wrong = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()
        if self.wrong:
            raise self.wrong


@cases.add
def erase_while_mail_flows():
    with Daemon() as d:
        with Flow(d) as flow:
            wait_until(lambda: flow.sent > 20)
            for n in (3, 7, 11):
                one, = ids(d, f"subject:flow{n}x")
                archive(d, "erase", None, "--reason", "asked", one)
                tap.check(ids(d, f"subject:flow{n}x", status=1), [])
            seen = flow.sent
            wait_until(lambda: flow.sent > seen + 20)
        count = int(archive(d, "search", None, "--count", "dir:in"))
        tap.check(count, flow.sent - 3)
        # the one who asked is told by the kernel
        events = trail(d, "--action", "erase")
        tap.check([e["uid"] for e in events], [os.getuid()] * 3)
        tap.check(d.term(), 0)
        d.start()
        tap.check(int(archive(d, "search", None, "--count", "dir:in")),
                  flow.sent - 3)
        assert "damaged" not in d.log(), d.log()


@cases.add
def expire_and_hold_while_mail_flows():
    with Daemon(start=False) as d:
        with_retention(d, "400d")
        d.start()
        old = d.path("old.mbox")
        with open(old, "w") as file:
            for n in range(40):
                file.write(f"From x@y Mon Jan  6 10:00:00 2020\n"
                           f"From: x@y.example\nSubject: old{n}y\n"
                           f"Date: Mon, 06 Jan 2020 10:00:00 +0000\n"
                           f"Message-ID: <{n}@y.example>\n\nbody {n}\n\n")
        bring_in(d, old)
        archive(d, "hold", "add", None, "case", "subject:old7y")
        with Flow(d) as flow:
            wait_until(lambda: flow.sent > 10)
            plan = rows(archive(d, "expire", None, "--plan", "--json"))
            done = rows(archive(d, "expire", None, "--json"))
            tap.check(done, plan)
            tap.check([(p["family"], p["fate"], p["held"]) for p in done],
                      [("import", "gone", 1)])
            seen = flow.sent
            wait_until(lambda: flow.sent > seen + 10)
        tap.check(len(ids(d, "subject:old7y")), 1)
        tap.check(ids(d, "subject:old8y", status=1), [])
        tap.check(int(archive(d, "search", None, "--count", "dir:in")),
                  flow.sent)
        archive(d, "hold", "release", None, "case")
        archive(d, "expire")
        tap.check(ids(d, "subject:old7y", status=1), [])
        archive(d, "verify", None, "--all")


@cases.add
def what_the_mta_did_not_take_is_withdrawn():
    with Daemon() as d:
        m = d.connect()

        def hear_no_more():
            """Had we closed it, libmilter might not read the end."""
            m.sock.shutdown(socket.SHUT_RD)
            m.send(b"E")
        m.open(**dict(INBOUND))
        m.end_of_message = hear_no_more
        m.message(**message("a@sender.example", subject="gone"))
        event = wait_until(lambda: trail(d, "--action", "withdrawn"))[0]
        m.close()
        tap.check((event["login"], len(event["ids"])), ("hanaperd", 1))
        tap.check_in("MTA was gone", event["reason"])
        archive(d, "show", None, event["ids"][0])


@cases.add
def the_daemon_expires_once_a_day():
    with Daemon(start=False) as d:
        d.start()
        wait_until(lambda: os.path.exists(d.path("state", "expired")))
        with open(d.path("old.eml"), "w") as file:
            file.write("Date: Mon, 06 Jan 2020 10:00:00 +0000\n\nx\n")
        bring_in(d, d.path("old.eml"))
        with_retention(d, "400d")
        d.term()
        folder = d.path("archive", "families", "import")
        d.start()  # today it did already
        time.sleep(0.5)
        tap.check(os.listdir(folder), ["2020-01.1"])
        d.term()
        os.utime(d.path("state", "expired"), (1, 1))
        d.start()
        wait_until(lambda: os.listdir(folder) == [])
        wait_until(lambda: "2020-01.1: expired" in d.log())
        tap.check([e["login"] for e in trail(d, "--action", "expire")],
                  ["hanaperd"])


@cases.add
def what_a_kill_leaves_is_done_at_the_next_start():
    with Daemon() as d:
        for n in range(30):
            d.send("a@sender.example", INBOUND, subject=f"kill{n}z")
        for n in range(6):
            one, = ids(d, f"subject:kill{n}z")
            p = subprocess.Popen([HANAPER, "archive", "erase", "-c", d.conf,
                                  "--reason", "x", one],
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            time.sleep(0.004 * n)
            os.kill(d.roles()["milter"], signal.SIGKILL)
            p.wait()
            d.wait_log("was started again")
            erased = one in [i for e in trail(d, "--action", "erase")
                             for i in e["ids"]]
            wait_until(lambda: bool(ids(d, f"subject:kill{n}z", status=int(
                erased))) != erased if not erased else True)
            wait_until(lambda: len(trail(d, "--action", "erase")) ==
                       len(trail(d, "--action", "erased")))
        d.term()
        archive(d, "verify", None, "--all")


if __name__ == "__main__":
    tap.run(cases)
