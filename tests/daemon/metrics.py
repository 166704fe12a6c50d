#!/usr/bin/env python3
"""The metrics endpoint of the running daemon. Prints TAP."""
import http.client
import json
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND, free_port  # noqa: E402
import tap  # noqa: E402

cases = tap.Cases()


def ask(port, path="/metrics", method="GET"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.request(method, path)
    r = c.getresponse()
    body = r.read().decode()
    c.close()
    return r, body


def say(port, request):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.settimeout(20)
        s.sendall(request)
        parts = []
        while True:
            try:
                part = s.recv(65536)
            except ConnectionResetError:
                break
            if not part:
                break
            parts.append(part)
        return b"".join(parts)


def values(text):
    """{"name": number}; checks that each line is of the format."""
    found, typed = {}, {}
    for line in text.splitlines():
        m = re.fullmatch(r"# TYPE (hanaper_\w+) (counter|gauge)", line)
        if m:
            assert m[1] not in typed, line
            typed[m[1]] = m[2]
            last = m[1]
            continue
        m = re.fullmatch(r'(hanaper_\w+)((?:\{\w+="[^"]*"(?:,\w+="[^"]*")*\})'
                         r'?) (\d+)', line)
        assert m, line
        assert m[1] == last, f"{line} stands behind {last}"
        assert (typed[m[1]] == "counter") == m[1].endswith("_total"), line
        found[m[1] + m[2]] = int(m[3])
    return found


def status(d):
    return json.loads(subprocess.run(
        [HANAPER, "status", "-c", d.conf, "--json"], check=True,
        capture_output=True, timeout=60).stdout)


@cases.add
def numbers_are_those_of_status():
    port = free_port()
    with Daemon(metrics=f"inet:{port}@127.0.0.1") as d:
        d.send()
        d.send("a@sender.example", INBOUND)
        r, body = ask(port)
        tap.check(r.status, 200)
        tap.check(r.headers["Content-Type"], "text/plain; version=0.0.4")
        got = values(body)
        tap.check(got["hanaper_messages_total"], 2)
        tap.check(got["hanaper_signed_total"], 1)
        tap.check(got['hanaper_results_total{method="spf",result="pass"}'], 1)
        tap.check(got['hanaper_results_total{method="dmarc",result="fail"}'],
                  0)
        tap.check(got["hanaper_archive_stored_total"], 2)
        tap.check(got["hanaper_archive_shards"], 1)
        assert got["hanaper_archive_free_bytes"] > 0
        assert 'hanaper_info{version="' in body

        def count(v):
            if isinstance(v, dict):
                return sum(count(x) for x in v.values())
            return isinstance(v, int)
        # all but pid; and there is info
        tap.check(len(got), count(status(d)) - 1 + 1, "how many")
        m = d.connect()
        m.open(**INBOUND)
        tap.check(values(ask(port)[1])["hanaper_sessions"], 1)
        m.quit()
        r, body = ask(port, method="HEAD")
        tap.check((r.status, body), (200, ""))
        assert int(r.headers["Content-Length"]) > 1000


@cases.add
def other_requests_are_refused():
    port = free_port()
    with Daemon(metrics=f"inet:{port}@127.0.0.1") as d:
        for path, method, want in (("/", "GET", 404),
                                   ("/metrics/x", "GET", 404),
                                   ("/metrics?x=1", "GET", 200),
                                   ("/metrics", "POST", 405)):
            tap.check(ask(port, path, method)[0].status, want, path)
        for request, want in ((b"\r\n\r\n", b"400"), (b"GET /\r\n\r\n", b"400"),
                              (b"\0\xff\n\n", b"400"),
                              (b"GET /metrics HTTP/1.0\n\n", b"200"),
                              (b"GET /" + b"x" * 20000, b"431")):
            tap.check_in(want, say(port, request).split(b"\r\n")[0] or want)
        # one who says nothing does not keep others out for ever
        with socket.create_connection(("127.0.0.1", port), 20):
            tap.check(ask(port)[0].status, 200, "behind a silent client")
        tap.check(d.term(), 0, "stop")


@cases.add
def a_reload_moves_and_ends_it():
    ports = free_port(), free_port()
    with Daemon(metrics=None) as d:
        for port in ports:
            d.configure(metrics=f"inet:{port}@127.0.0.1")
            d.hup()
            d.wait_log("were read again")
            tap.check(ask(port)[0].status, 200, port)
        d.send()
        d.hup()
        d.wait_log("were read again")
        tap.check(values(ask(ports[1])[1])["hanaper_messages_total"], 1)
        d.configure(metrics="off")
        d.hup()
        d.wait_log("were read again")
        for port in ports:
            try:
                ask(port)
            except ConnectionRefusedError:
                continue
            raise AssertionError(f"{port} answers")


@cases.add
def mail_goes_on_without_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Daemon(metrics=f"inet:{port}@127.0.0.1") as d:
            tap.check_in(f"metrics = inet:{port}@127.0.0.1: port {port} of "
                         "127.0.0.1: Address already in use: there are none",
                         d.log())
            tap.check(d.send()[-1][0], b"c")


if __name__ == "__main__":
    tap.run(cases)
