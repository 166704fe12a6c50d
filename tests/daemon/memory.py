#!/usr/bin/env python3
"""Each allocation of a message's way through hanaperd fails once. The answer
is then the right one or "try again later", never a message without its
signature, with another verdict, or missing from the archive; and no process
dies. Prints TAP."""
import collections
import json
import os
import re
import struct
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.environ.get("SRCDIR", "."), "tests"),
                os.path.join(os.environ.get("SRCDIR", "."), "tests/daemon")]
sys.dont_write_bytecode = True
import daemon  # noqa: E402
import tap  # noqa: E402
from milter_client import Closed, wait_until  # noqa: E402

SHIM = os.path.join(os.environ.get("BUILDDIR", "."),
                    "tests/daemon/nth_malloc.so")
ZONE = daemon.ZONE.replace(
    '"v=spf1 ', '"v=spf1 include:inc.sender.example mx ').replace(
        "p=none", "p=reject") + """\
inc.sender.example TXT "v=spf1 ip4:192.0.2.1 -all"
"""
MADE = ("DKIM-Signature", "ARC-Seal", "ARC-Message-Signature",
        "ARC-Authentication-Results")
cases = tap.Cases()


class Failing(daemon.Daemon):
    def __init__(self, **settings):
        super().__init__(keys=("sender.example",), start=False, **settings)
        self.make_key("sender.example", "--type", "rsa2048")
        p = subprocess.run([daemon.HANAPER, "key", "dns", "sender.example",
                            "--key-dir", self.path("keys"), "--json"],
                           capture_output=True, text=True, check=True)
        self.write("zone", ZONE + "".join(
            '%s TXT "%s" "%s"\n' % (key["name"], key["value"][:200],
                                   key["value"][200:])
            for key in map(json.loads, p.stdout.splitlines())))
        self.counter = self.path("counter")
        self.fail_at(0)
        os.chmod(self.counter, 0o666)
        os.environ["LD_PRELOAD"] = os.path.abspath(SHIM)
        os.environ["NTH_MALLOC"] = self.counter
        try:
            self.start()
        finally:
            del os.environ["LD_PRELOAD"], os.environ["NTH_MALLOC"]

    def fail_at(self, n):
        with open(self.counter, "r+b" if os.path.exists(self.counter)
                  else "wb") as f:
            f.write(struct.pack("=q", n))

    def left(self):
        with open(self.counter, "rb") as f:
            return struct.unpack("=q", f.read())[0]

    def failed(self):
        return self.left() < 0


def outcome(d, client, **what):
    """What came of a message: "later", or the last reply."""
    try:
        m = d.connect()
        m.open(**client)
        reply = m.message(**what)
        m.quit()
    except (Closed, OSError):
        return "later"
    kind, data = reply[-1]
    if kind == b"t" or kind == b"y" and data.startswith(b"4"):
        return "later"
    return reply


def results(reply):
    """method=result of the field that we added; None when there is none."""
    fields = daemon.inserted(reply, "Authentication-Results")
    return re.findall(r"(\w+)=(\w+)", re.sub(
        r'"[^"]*"|\S+\.\S+=\S+', "", fields[0])) if fields else None


def archived(d):
    """How often each envelope recipient is there."""
    p = subprocess.run([daemon.HANAPER, "archive", "search", "-c", d.conf,
                        "--json", "--limit", "10000", "dir:in OR dir:out"],
                       capture_output=True, check=True)
    return collections.Counter(
        rcpt for line in p.stdout.splitlines()
        for rcpt in json.loads(line)["rcpts"])


def judged_good(d, copies):
    """Every signature and every seal of what left verifies."""
    paths = []
    for n, fields in enumerate(copies):
        paths.append(d.path(f"{n}.eml"))
        with open(paths[-1], "wb") as f:
            f.write("".join(f"{name}:{value}\n" for name, value in fields)
                    .replace("\n", "\r\n").encode() + b"\r\ntext\r\n")
    p = subprocess.run([daemon.HANAPER, "verify", "--json", "--zone",
                        d.path("zone"), *paths], capture_output=True)
    lines = p.stdout.splitlines()
    tap.check(len(lines), len(copies), p.stderr)
    for line, fields in zip(lines, copies):
        said = json.loads(line)["authentication_results"]
        names = [name for name, _ in fields]
        tap.check(said.count("dkim=pass"), names.count("DKIM-Signature"), said)
        tap.check(len(re.findall(r"\barc=pass", said)),
                  int("ARC-Seal" in names), said)


def nothing():
    pass


def each_allocation(d, client, headers, right, before=nothing):
    def send(name):
        return outcome(d, client, sender="<a@sender.example>",
                       rcpts=(f"<{name}@example.net>",),
                       headers=headers + (("X-Name", f" {name}"),))
    assert right(send("first"))
    roles = d.roles()
    accepted, copies, later, missed, n = [], [], 0, 0, 0
    # what comes behind the reply is met or not, as time has it
    while missed < 20:
        n += 1
        before()
        d.fail_at(n)
        reply = send(f"nth{n}")
        missed = 0 if d.failed() else missed + 1
        d.fail_at(0)
        if reply == "later":
            later += 1
        else:
            assert right(reply), (n, reply, d.log()[-2000:])
            accepted.append(f"nth{n}@example.net")
            copies.append(tuple(
                (name, value) for name in MADE
                for value in daemon.inserted(reply, name)) + headers)
        assert d.roles() == roles, (n, d.log()[-2000:])
    assert n > 60 and later > 10, (n, later)
    # it goes on as before, and all that was accepted is there
    assert right(send("last"))
    there = archived(d)
    for rcpt in accepted + ["last@example.net"]:
        tap.check(there[rcpt], 1, rcpt)
    judged_good(d, copies)
    print(f"# {n} allocations, {later} times put off")


def headers():
    return daemon.message("a@sender.example")["headers"]


@cases.add
def signing():
    with Failing() as d:
        each_allocation(d, daemon.OUTBOUND, headers(),
                        lambda r: daemon.is_signed(r, "sender.example"))

MANY = 1 << 40


@cases.add
def reloading():
    """Whatever a reload lacks: mail is signed again right after. Nearly all
    of its allocations are libcrypto's, of which a few will do; the last ones
    are those of the key list between signer and milter process."""
    with Failing() as d:
        def signs():
            reply = outcome(d, daemon.OUTBOUND, sender="<a@sender.example>",
                            headers=headers())
            return reply != "later" and daemon.is_signed(reply,
                                                         "sender.example")

        def reload(n):
            d.fail_at(n)
            d.hup()
            wait_until(lambda: re.search("read again|stays in use",
                                         d.log()[d.log_at:]))
            time.sleep(0.01)  # the list may still be read
            left = d.left()
            d.fail_at(0)
            d.log_at = len(d.log())
            wait_until(signs)
            return left

        all_of_them = MANY - reload(MANY)
        for n in range(1, all_of_them, 499):
            reload(n)
        n, missed = all_of_them - 200, 0
        while missed < 20:
            n += 1
            missed = 0 if reload(n) < 0 else missed + 1
        roles = d.roles()
        assert set(roles) == {"signer", "milter"}, roles
        lost = d.log().count("had lost each other")
        assert lost > 1, d.log()[-2000:]
        print(f"# {n} allocations, {lost} times signer and milter lost each "
              "other")


def verdicts(arc):
    return [("iprev", "pass"), ("spf", "pass"), ("spf", "none"),
            ("dkim", "pass"), ("dkim", "pass"), ("arc", arc),
            ("dmarc", "pass")]


def rightly_judged(reply, arc="none"):
    got, right = results(reply), verdicts(arc)
    # RFC 8617 has no word for a chain that cannot be checked now
    unknown = [("arc", "fail")] if any(
        re.search(r'arc=fail reason="[^"]*(unavailable|internal error)"', f)
        for f in daemon.inserted(reply, "Authentication-Results")) else []
    return got is not None and len(got) == len(right) and all(
        g in [want, (want[0], "temperror")] + unknown
        for g, want in zip(got, right))


def fields_of(d, client, names, extra=()):
    """The fields of these names that a message gets."""
    reply = outcome(d, client, sender="<a@sender.example>",
                    headers=extra + headers())
    return tuple((name, " " + value) for name in names
                 for value in daemon.inserted(reply, name))


def signatures(d):
    found = fields_of(d, daemon.OUTBOUND, ["DKIM-Signature"])
    assert len(found) == 2, found
    return found


@cases.add
def verifying():
    with Failing(dmarc="reject") as d:
        each_allocation(d, daemon.INBOUND, signatures(d) + headers(),
                        rightly_judged)


@cases.add
def verifying_what_was_never_asked_for():
    with Failing(dmarc="reject") as d:
        def forget():
            d.hup()
            d.wait_log("were read again")
        each_allocation(d, daemon.INBOUND, signatures(d) + headers(),
                        rightly_judged, before=forget)


def rightly_sealed(reply):
    """No seal that says other than what was found, and none at all on a
    chain that could not be checked."""
    seals = daemon.inserted(reply, "ARC-Seal")
    if not rightly_judged(reply, "pass"):
        return False
    if ("arc", "pass") not in results(reply):
        return not seals
    return len(seals) == 1 and "i=2;" in seals[0] and "cv=pass" in seals[0]


@cases.add
def sealing_a_chain():
    with Failing(dmarc="reject", arc="seal", arc_domain="sender.example",
                 arc_seal="*") as d:
        signed = signatures(d)
        chain = fields_of(d, daemon.INBOUND,
                          MADE[1:], signed)
        assert len(chain) == 3, chain
        each_allocation(d, daemon.INBOUND, chain + signed + headers(),
                        rightly_sealed)


tap.run(cases, None if os.path.exists(SHIM) else
        "a sanitizer has its own malloc")
