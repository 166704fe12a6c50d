#!/usr/bin/env python3
"""hanaper key check and rotate, against zone files and a fixed clock.
Prints TAP."""
import fcntl
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
cases = tap.Cases()

START = 1800000000  # 2027-01-15
HOUR, DAY = 3600, 86400
KEEP = (14 + 7) * DAY  # signature_lifetime and a week in queues


class Domain:
    """A key folder with one Ed25519 key, e1, since START, and a zone."""

    def __init__(self, config="", first=("ed25519", "e1")):
        self.config, self.first = config, first

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="hnr")
        self.keys = os.path.join(self.dir.name, "keys")
        self.zone = os.path.join(self.dir.name, "zone")
        self.conf = os.path.join(self.dir.name, "c.conf")
        with open(self.conf, "w") as f:
            f.write(f"key_dir = {self.keys}\n{self.config}")
        if self.first:
            self.generate(*self.first)
        self.publish()
        return self

    def __exit__(self, *_):
        self.dir.cleanup()

    def generate(self, kind, selector, at=START):
        self.run("generate", "example.org", "--type", kind, "--selector",
                 selector)
        path = self.path(selector + ".pem")
        os.utime(path, (at, at))

    def run(self, verb, *args, status=0):
        p = subprocess.run([HANAPER, "key", verb, "-c", self.conf, *args],
                           capture_output=True, text=True)
        assert p.returncode == status, (verb, args, p.returncode, p.stdout,
                                        p.stderr)
        self.err = p.stderr
        return p.stdout

    def rotate(self, at, *args, status=1):
        return self.run("rotate", "--zone", self.zone, "--clock", str(at),
                        *args, "example.org", status=status)

    def check(self, *args, status=0):
        return self.run("check", "--zone", self.zone, *args, status=status)

    def path(self, *names):
        return os.path.join(self.keys, "example.org", *names)

    def publish(self, text=None):
        if text is None:
            text = self.run("dns", "example.org") if self.first else "# none"
        with open(self.zone, "w") as f:
            f.write(text)

    def state(self):
        try:
            with open(self.path("state")) as f:
                return [line.split() for line in f if line[0] != "#"]
        except FileNotFoundError:
            return None

    def states(self):
        return {line[0]: line[1] for line in self.state() or []}

    def files(self):
        return sorted(n for n in os.listdir(self.path()) if n != "state")


@cases.add
def check_says_published_absent_different_unknown():
    with Domain() as d:
        name = "e1._domainkey.example.org"
        tap.check(d.check(), f"{name}: active, published\n")
        tap.check(d.check("example.org"), f"{name}: active, published\n")
        d.publish("# none\n")
        tap.check(d.check(status=1), f"{name}: active, absent\n")
        d.publish(f'{name}. TXT "v=DKIM1; k=ed25519; p=" '
                  '"dRuw1cJEIzKK7eqgYXmtHAEPhqyYaIk7uAxuJ4vr4Ds="\n')
        tap.check(d.check(status=1),
                  f"{name}: active, different; another key\n")
        d.publish(f'{name}. TXT "v=DKIM1; k=ed25519; p="\n')
        tap.check_in("different; ", d.check(status=1))
        d.publish(f"{name}. TXT !SERVFAIL\n")
        tap.check_in(": active, cannot be looked up", d.check(status=1))


@cases.add
def check_notes_what_receivers_would():
    with Domain() as d:
        good = d.run("dns", "example.org")
        d.publish(good.replace("v=DKIM1;", "v=DKIM1; t=y;"))
        tap.check_in("published; t=y", d.check())
        d.publish(good + good)
        tap.check_in("published; several records", d.check())
        # without k= it is an RSA key, and a broken one
        d.publish(good.replace("k=ed25519; ", ""))
        tap.check_in(": active, different; ", d.check(status=1))
        d.publish(good.replace("v=DKIM1;", "v=DKIM1; s=other;"))
        tap.check_in(": active, different; ", d.check(status=1))


@cases.add
def check_in_json():
    with Domain() as d:
        d.generate("rsa2048", "r1")
        rows = [json.loads(line) for line in
                d.check("--json", status=1).splitlines()]
        tap.check([(r["selector"], r["dns"], r["state"], r["key_type"],
                    r["bits"], r["notes"]) for r in rows],
                  [("e1", "published", "active", "ed25519", 256, []),
                   ("r1", "absent", "active", "rsa", 2048, [])])
        tap.check(rows[0]["name"], "e1._domainkey.example.org")
        tap.check(rows[0]["domain"], "example.org")


@cases.add
def keys_of_the_sign_table():
    with Domain() as d:
        d.generate("rsa2048", "r1")
        other = os.path.join(d.dir.name, "other.pem")
        os.rename(d.path("r1.pem"), other)
        table = os.path.join(d.dir.name, "table")
        with open(d.conf, "a") as f:
            f.write(f"sign_table = {table}\n")

        def write(text):
            with open(table, "w") as f:
                f.write(text)
        write(f"x@example.org d=example.org s=x key={other}\n"
              f"y@example.org d=example.org s=x key={other}\n"
              "z@example.org d=example.org s=e1\n")
        d.publish()
        tap.check([line.split(":")[0] for line in d.check().splitlines()],
                  ["e1._domainkey.example.org", "x._domainkey.example.org"])
        # not ours to rotate, but what names the old key is told
        d.rotate(START)
        d.publish()
        d.rotate(START)
        tap.check_in(f"{table}:3 still names it", d.rotate(START + HOUR))
        message = os.path.join(d.dir.name, "mail")
        with open(message, "w") as f:
            f.write("From: a@example.org\n\nx\n")
        for options, wanted in (((), "s=e20270115;"),
                                (("--selector", "x"), "s=x;")):
            out = subprocess.run(
                [HANAPER, "sign", "-c", d.conf, "--field", *options,
                 message], capture_output=True, text=True, check=True).stdout
            tap.check(out.count("DKIM-Signature:"), 1)
            tap.check_in(wanted, out)
        write(f"x@example.org d=example.org s=e1 key={other}\n")
        d.check(status=73)
        tap.check_in(f"{table}:1: key_dir holds this key as well", d.err)
        write(f"x@example.org d=example.org s=x key={other}\n"
              f"y@example.org d=example.org s=x key={other}.2\n")
        d.check(status=73)
        tap.check_in(f"{table}:2: key= is another file", d.err)


@cases.add
def check_errors():
    with Domain() as d:
        d.check("none.example", status=66)
        tap.check_in("hanaper key generate none.example", d.err)
        d.check("a", "b", status=64)
        d.check("--wait", "1h", status=64)
        d.zone += ".missing"
        d.check(status=74)
        tap.check_in(d.zone, d.err)


@cases.add
def a_whole_rotation():
    with Domain() as d:
        before = d.run("dns", "example.org")
        out = d.rotate(START)
        new = "e20270115"
        assert out.startswith(f"{new}._domainkey.example.org. IN TXT "), out
        tap.check(d.state(), [["e1", "active", str(START)],
                              [new, "next", str(START)]])
        # as often as one likes: nothing but the record to publish
        state, files = d.state(), d.files()
        for at in (START, START + DAY, START + 100 * DAY):
            tap.check_in("not published; publish this record:\n" + out,
                         d.rotate(at))
            tap.check((d.state(), d.files()), (state, files))
        d.publish()
        at = START + 200 * DAY
        tap.check_in("next, seen in the DNS; it may sign from "
                     "2027-08-03 09:00 UTC", d.rotate(at))
        tap.check(d.state()[1], [new, "next", str(START), str(at)])
        d.rotate(at + HOUR - 1)
        tap.check(d.states(), {"e1": "active", new: "next"})
        out = d.rotate(at + HOUR)
        tap.check_in(f"{new}._domainkey.example.org: active; let hanaperd",
                     out)
        tap.check_in("e1._domainkey.example.org: retired", out)
        changed = at + HOUR
        tap.check(d.state(), [["e1", "retired", str(changed)],
                              [new, "active", str(changed)]])
        # both records stay
        d.check()
        out = d.rotate(changed + KEEP - 1, "--prune")
        tap.check_in("its record must stay until ", out)
        tap.check(d.files(), ["e1.pem", new + ".pem"])
        out = d.rotate(changed + KEEP)
        tap.check_in("its record may be withdrawn", out)
        tap.check(d.files(), ["e1.pem", new + ".pem"])
        # withdrawn: fine now, and not fine before
        d.publish(d.run("dns", "example.org").replace(before, ""))
        d.check("--clock", str(changed + KEEP))
        tap.check_in("e1._domainkey.example.org: retired, absent",
                     d.check("--clock", str(changed + KEEP - 1), status=1))
        out = d.rotate(changed + KEEP, "--prune", status=0)
        tap.check(out, "e1._domainkey.example.org: removed; its record may "
                  "be withdrawn\n")
        tap.check(d.files(), [new + ".pem"])
        tap.check(d.state(), [[new, "active", str(changed)]])
        # and the next one begins
        d.rotate(changed + KEEP + DAY)
        tap.check(sorted(d.states().values()), ["active", "next"])


@cases.add
def a_record_that_goes_away_is_awaited_anew():
    with Domain() as d:
        d.rotate(START)
        d.publish()
        d.rotate(START + 10)
        d.publish("# none\n")
        d.rotate(START + 20)
        tap.check(d.state()[1][3:], [])
        d.publish()
        d.rotate(START + 2 * HOUR)
        tap.check(d.states()["e1"], "active")
        # nothing is concluded from an outage, neither way
        d.publish("e20270115._domainkey.example.org. TXT !SERVFAIL\n")
        tap.check_in("cannot be looked up", d.rotate(START + 4 * HOUR))
        tap.check(d.states()["e1"], "active")
        d.publish()
        d.rotate(START + 4 * HOUR)
        tap.check(d.states()["e1"], "retired")


@cases.add
def the_wait_is_never_under_the_ttl():
    with Domain() as d:
        d.rotate(START)
        d.publish()
        d.rotate(START, "--wait", "0")
        d.rotate(START + 299, "--wait", "0")
        tap.check(d.states()["e1"], "active")
        d.rotate(START + 300, "--wait", "5m")
        tap.check(d.states()["e1"], "retired")


@cases.add
def a_clock_that_was_set_back_waits_anew():
    with Domain() as d:
        d.rotate(START)
        d.publish()
        d.rotate(START + DAY)
        d.rotate(START)
        tap.check(d.state()[1][3], str(START))
        d.rotate(START + HOUR)
        tap.check(d.states()["e1"], "retired")


@cases.add
def young_keys_are_left_alone():
    with Domain() as d:
        tap.check(d.rotate(START + 30 * DAY - 1, "--age", "30d", status=0),
                  "")
        tap.check((d.state(), d.files()), (None, ["e1.pem"]))
        d.rotate(START + 30 * DAY, "--age", "30d")
        tap.check(len(d.files()), 2)


@cases.add
def types_rotate_each_for_itself():
    with Domain() as d:
        d.generate("rsa2048", "r1")
        d.rotate(START, "--type", "rsa2048")
        tap.check(d.states(), {"r1": "active", "r20270115": "next"})
        d.rotate(START)
        tap.check(d.states(), {"r1": "active", "r20270115": "next",
                               "e1": "active", "e20270115": "next"})
        d.publish()
        d.rotate(START, "--type", "ed25519")
        d.rotate(START + HOUR, "--type", "ed25519")
        tap.check(d.states(), {"r1": "active", "r20270115": "next",
                               "e1": "retired", "e20270115": "active"})
    with Domain() as d:
        d.rotate(START, "--type", "rsa2048", status=66)
        tap.check_in("hanaper key generate", d.err)


@cases.add
def two_keys_without_a_state():
    with Domain() as d:
        d.generate("ed25519", "e0", START - DAY)
        os.unlink(d.path("state"))
        d.run("list", status=73)
        tap.check_in("say which one signs: hanaper key rotate example.org",
                     d.err)
        d.publish("# none\n")
        out = d.rotate(START)
        tap.check_in("e1._domainkey.example.org: is next, e0 goes on "
                     "signing", out)
        tap.check(d.states(), {"e0": "active", "e1": "next"})
        tap.check(d.files(), ["e0.pem", "e1.pem"])
        d.run("list")


@cases.add
def an_interrupted_prune_is_finished():
    with Domain() as d:
        d.rotate(START)
        d.publish()
        d.rotate(START)
        d.rotate(START + HOUR)
        os.unlink(d.path("e1.pem"))
        d.run("list")
        d.rotate(START + HOUR + KEEP, "--prune", status=0)
        tap.check(list(d.states()), ["e20270115"])


@cases.add
def selectors_of_one_day_differ():
    with Domain() as d:
        d.rotate(START)
        d.publish()
        d.rotate(START + 1)
        d.rotate(START + 1 + HOUR)
        os.unlink(d.path("e1.pem"))
        d.rotate(START + 2 * HOUR + KEEP, "--prune", status=0)
        day = START + 2 * HOUR + KEEP
        os.rename(d.path("e20270115.pem"), d.path("e20270205.pem"))
        with open(d.path("state"), "w") as f:
            f.write(f"e20270205 active {START}\n")
        d.rotate(day)
        tap.check(d.files(), ["e20270205.pem", "e20270205b.pem"])


@cases.add
def the_lifetime_of_the_domain_counts():
    with Domain("[domain example.org]\nsignature_lifetime = 60d\n") as d:
        d.rotate(START)
        d.publish()
        d.rotate(START)
        d.rotate(START + HOUR)
        tap.check_in("must stay", d.rotate(START + HOUR + 67 * DAY - 1))
        tap.check_in("may be withdrawn", d.rotate(START + HOUR + 67 * DAY))


@cases.add
def one_at_a_time():
    with Domain() as d:
        fd = os.open(d.path(), os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        p = subprocess.Popen(
            [HANAPER, "key", "rotate", "-c", d.conf, "--zone", d.zone,
             "example.org"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            p.wait(0.3)
            raise AssertionError("it did not wait for the lock")
        except subprocess.TimeoutExpired:
            tap.check(d.files(), ["e1.pem"])
        os.close(fd)
        tap.check(p.wait(30), 1)
        tap.check(len(d.files()), 2)


@cases.add
def rotate_errors():
    with Domain() as d:
        d.run("rotate", status=64)
        for bad in ("", "x", "1y", "-1", "99999999999999999999s"):
            d.rotate(START, "--wait", bad, status=64)
        d.rotate(START, "--json", status=64)
        d.run("rotate", "--zone", d.zone, "none.example", status=66)
        tap.check_in("hanaper key generate none.example", d.err)
        with open(d.path("state"), "w") as f:
            f.write("nonsense\n")
        d.rotate(START, status=65)
        tap.check_in("state:1: not SELECTOR", d.err)
        tap.check(d.files(), ["e1.pem"])


if __name__ == "__main__":
    tap.run(cases)
