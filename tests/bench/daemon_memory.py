#!/usr/bin/env python3
"""make bench BENCH=daemon: the anonymous memory (RssAnon) of hanaperd's
milter process while BENCH_MESSAGES (3,000; 100,000 for the real figure)
messages of up to 205 KB come in over eight connections. Prints one line
"ok|short NAME MEASURED TARGET" as the other benchmarks do."""
import base64
import os
import random
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "daemon")]
from daemon import INBOUND, Daemon  # noqa: E402

MESSAGES = int(os.environ.get("BENCH_MESSAGES", "3000"))
CLIENTS = 8
TARGET_MIB = 32
WORDS = ("please let me know if the report about invoices and orders of last "
         "week is what you need for the meeting with our customers").split()


def rss_anon_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0


class Client(threading.Thread):
    def __init__(self, daemon, number):
        super().__init__()
        self.daemon, self.number, self.sent = daemon, number, 0
        self.raw = self.seconds = 0

    def body(self, rng):
        text = " ".join(rng.choices(WORDS, k=250)).encode() + b"\r\n"
        size = rng.choices((0, 15000, 150000), (80, 15, 5))[0]
        if size:
            text += base64.encodebytes(rng.randbytes(size)).replace(
                b"\n", b"\r\n")
        return text

    def run(self):
        rng = random.Random(self.number)
        m = self.daemon.connect(timeout=120)
        m.open(**INBOUND)
        for n in range(MESSAGES // CLIENTS):
            sender = f"s{rng.randrange(300)}@sender.example"
            body = self.body(rng)
            reply = m.message(
                sender=f"<{sender}>", body=body, queue_id=f"{self.number}-{n}",
                headers=(("From", f" {sender}"), ("To", " b@example.org"),
                         ("Date", " Mon, 30 Nov 2026 12:00:00 +0000"),
                         ("Message-ID", f" <{self.number}.{n}@x>"),
                         ("Subject", f" number {n}")))
            assert reply[-1][0] == b"c", reply
            self.sent += 1
            self.raw += len(body)
        m.quit()


def main():
    if os.environ.get("BENCH", "") not in ("", "daemon"):
        return 0
    peak = 0
    with Daemon(keys=()) as d:
        pid = d.roles()["milter"]
        clients = [Client(d, n) for n in range(CLIENTS)]
        start = time.monotonic()
        for c in clients:
            c.start()
        while any(c.is_alive() for c in clients):
            peak = max(peak, rss_anon_kib(pid))
            time.sleep(0.05)
        seconds = time.monotonic() - start
        sent = sum(c.sent for c in clients)
        after = rss_anon_kib(pid)
        assert sent == MESSAGES // CLIENTS * CLIENTS
        print(f"{sent} messages, {sum(c.raw for c in clients) >> 20} MB, in "
              f"{seconds:.1f} s; RssAnon at most {peak} KiB, in the end "
              f"{after} KiB")
    good = peak <= TARGET_MIB * 1024
    print("ok" if good else "short", "daemon memory, MiB",
          f"{peak / 1024:.3f} <={TARGET_MIB:.3f}")
    return not good


sys.exit(main())
