#!/usr/bin/env python3
"""The control socket of the running daemon, and what `hanaper` asks there.
Prints TAP."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

cases = tap.Cases()


def hanaper(d, *args, status=0):
    run = subprocess.run([HANAPER, *args[:1], "-c", d.conf, *args[1:]],
                         capture_output=True, text=True, timeout=60)
    assert status in (None, run.returncode), (args, run)
    return run


def status(d):
    return json.loads(hanaper(d, "status", "--json").stdout)


def connect(d):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(d.path("state", "control.sock"))
    return s


def everything(s):
    parts = []
    while True:
        part = s.recv(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def say(d, request):
    with connect(d) as s:
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        return everything(s)


@cases.add
def status_tells_what_was_done():
    with Daemon() as d:
        d.send()
        d.send("a@sender.example", INBOUND)
        got = status(d)
        tap.check(got["messages"], 2, "messages")
        tap.check(got["accepted"], 2, "accepted")
        tap.check(got["signed"], 1, "signed")
        tap.check(got["spf"]["pass"], 1, "spf=pass")
        tap.check(got["keys"], {"loaded": 1, "domains": 1}, "keys")
        tap.check(got["archive"]["state"], "on", "archive")
        tap.check(got["archive"]["stored"], 2, "stored")
        tap.check(got["archive"]["shards"], 1, "shards")
        tap.check(got["archive"]["poisoned_shards"], 0, "poisoned")
        assert got["archive"]["free_bytes"] > 0, got
        assert got["uptime_s"] < 600 and got["pid"] in d.roles().values()
        text = hanaper(d, "status").stdout
        assert "spf.pass" in text and "spf.fail" not in text, text
        mode = os.stat(d.path("state", "control.sock")).st_mode & 0o7777
        tap.check(mode, 0o660, "mode")
        m = d.connect()
        m.open(**INBOUND)
        tap.check(status(d)["sessions"], 1, "sessions")
        m.quit()
        tap.check(d.term(), 0, "exit")
        assert not os.path.exists(d.path("state", "control.sock"))
        run = hanaper(d, "status", status=69)
        tap.check_in("not running", run.stderr)


@cases.add
def without_an_archive():
    with Daemon(archive="off") as d:
        tap.check(status(d)["archive"], {"state": "off"}, "archive")


@cases.add
def nonsense_gets_an_error():
    with Daemon() as d:
        for request, words in (
                (b"\n\n", b"different versions"),
                (b"garbage\n\n", b"syntax error"),
                (b"command=status\nprotocol#99\n\n", b"different versions"),
                (b"command=nothing\nprotocol#1\n\n", b"no command"),
                (b"command=status\n", b"syntax error"),
                (b"\0" * 100000, b"syntax error"),
                (b"x" * 5000000, b"limit reached")):
            try:
                answer = say(d, request)
            except (BrokenPipeError, ConnectionResetError):
                continue  # it did not want to hear all of that
            tap.check_in(words, answer, repr(request[:20]))
            assert b"result#0" not in answer, answer
        status(d)


@cases.add
def slow_and_many_clients_harm_nobody():
    with Daemon() as d:
        for _ in range(5):  # each has ten seconds
            idle, began = [connect(d) for _ in range(16)], time.monotonic()
            with connect(d) as s:  # one too many
                answer = everything(s)
            run = hanaper(d, "status", status=None)
            if time.monotonic() - began < 8:
                break
            for s in idle:
                s.close()
        tap.check(answer, b"", "the answer to one too many")
        tap.check(run.returncode, 75, "status")
        tap.check_in("busy", run.stderr)
        assert d.send()[-1] == (b"c", b"")
        for s in idle[1:]:
            s.close()
        def back():
            try:
                return say(d, b"command=status\nprotocol#1\n\n")
            except OSError:
                return b""
        wait_until(back)
        # a stop does not wait for who says nothing
        began = time.monotonic()
        tap.check(d.term(), 0, "exit")
        assert time.monotonic() - began < 8
        idle[0].close()


@cases.add
def it_comes_back_after_kill():
    with Daemon() as d:
        first = status(d)["pid"]
        os.kill(first, signal.SIGKILL)
        d.wait_log("was started again")
        assert status(d)["pid"] != first


@cases.add
def a_reload_moves_it():
    with Daemon() as d:
        old = d.path("state", "control.sock")
        os.mkdir(d.path("state2"))
        os.chmod(d.path("state2"), 0o777)
        d.configure(state_dir=d.path("state2"))
        d.hup()
        d.wait_log("configuration and keys were read again")
        status(d)
        assert not os.path.exists(old)
        assert os.path.exists(d.path("state2", "control.sock"))


@cases.add
def it_steals_no_socket():
    with Daemon(start=False) as d:
        os.mkdir(d.path("state"))
        os.chmod(d.path("state"), 0o777)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(d.path("state", "control.sock"))
            os.chmod(d.path("state", "control.sock"), 0o777)
            other.listen(5)
            d.start()
            assert "another hanaperd answers there" in d.log(), d.log()
            assert d.send()[-1] == (b"c", b"")


if __name__ == "__main__":
    tap.run(cases)
