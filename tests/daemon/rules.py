#!/usr/bin/env python3
"""archive_scope and [archive] sections of a running daemon: what is kept, in
which family, for how long, and what `hanaper check` and `explain` say of it.
Prints TAP."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER, INBOUND  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

cases = tap.Cases()

RULES = """
[archive bulk]
header = Precedence:bulk
keep = no

[archive hr]
recipient = hr@example.net
family = hr-31-letters-is-the-longest-ok

[archive loud]
larger = 100
verdict = dmarc:pass
family = short

[retention short]
keep = 30d

[retention shrot]
keep = 7d
"""


def rules(d, text=RULES):
    d.configure()
    with open(d.conf, "a") as file:
        file.write(text)


def hanaper(d, *words, status=0, command=1):
    run = subprocess.run([HANAPER, *words[:command], "-c", d.conf,
                          *words[command:]], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == status, (words, run)
    return run.stdout


def send(d, *headers, rcpts=("<b@example.net>",)):
    """The id of the decision."""
    m = d.connect()
    m.open(**INBOUND)
    reply = m.message(sender="<a@sender.example>", rcpts=list(rcpts),
                      headers=(("From", " a@sender.example"), *headers))
    m.quit()
    assert reply[-1][0] in b"ac", reply
    return re.findall(r" id=(\S+)", d.log())[-1]


def explain(d, key):
    def found():
        run = subprocess.run([HANAPER, "explain", "-c", d.conf, key],
                             capture_output=True, text=True, timeout=60)
        found.text = run.stdout
        return run.returncode == 0
    wait_until(found)
    return found.text


def families(d):
    return {s["family"]: s["messages"] for s in map(
        json.loads, hanaper(d, "archive", "stats", "--json",
                            command=2).splitlines())
        if s["family"] != "audit"}


@cases.add
def each_message_goes_where_its_rule_says():
    with Daemon(start=False) as d:
        rules(d)
        d.start()
        plain = send(d)
        bulk = send(d, ("Precedence", " Bulk"))
        hr = send(d, ("Subject", " x" * 80),
                  rcpts=("<b@example.net>", "<HR@example.net>"))
        loud = send(d, ("Subject", " y" * 80))
        tap.check(families(d), {"mail": 1, "short": 1,
                                "hr-31-letters-is-the-longest-ok": 1}, "kept")
        tap.check_in("in the family mail: archive_scope = all",
                     explain(d, plain))
        tap.check_in("not archived: [archive bulk] has keep = no",
                     explain(d, bulk))
        tap.check_in("in the family hr-31-letters-is-the-longest-ok: "
                     "[archive hr]", explain(d, hr))
        tap.check_in("in the family short: [archive loud]", explain(d, loud))
        plan = [json.loads(line) for line in hanaper(
            d, "archive", "expire", "--plan", "--json",
            command=2).splitlines()]
        tap.check([p["family"] for p in plan if "family" in p], ["short"],
                  "planned")


@cases.add
def a_reload_takes_new_rules_and_a_bad_one_keeps_the_old():
    with Daemon(start=False) as d:
        rules(d, "\n[archive x]\nlarger = 1\nkeep = no\n")
        d.start()
        send(d)
        tap.check(families(d), {}, "kept")
        rules(d, "\n[archive x]\nlarger = 1\nfamily = two\n")
        d.hup()
        d.wait_log("were read again")
        send(d)
        tap.check(families(d), {"two": 1}, "kept")
        rules(d, "\n[archive x]\nlarger = 1\nfamily = ../three\n")
        d.hup()
        d.wait_log("'../three' is not a family name")
        send(d)
        rules(d, "")
        tap.check(families(d), {"two": 2}, "kept")


@cases.add
def check_tells_what_the_sections_mean():
    with Daemon(start=False) as d:
        rules(d)
        said = hanaper(d, "check", "--no-dns")
        tap.check_in("archive family mail: kept forever, there is no "
                     "[retention mail]", said)
        tap.check_in("archive family short ([archive loud]): kept for 30 days "
                     "behind the end of the month", said)
        tap.check_in("[retention shrot]: no [archive] section stores mail in "
                     "that family, and the store has none", said)
        # of the past: a store of which we see only the folder
        os.makedirs(d.path("archive", "families", "shrot"))
        os.chmod(d.path("archive"), 0o777)
        assert "shrot" not in hanaper(d, "check", "--no-dns")
        d.configure(archive="off")
        rules(d, "\n[archive x]\nlarger = 1\nkeep = no\n")
        tap.check_in("archive = off: [archive x] does nothing",
                     hanaper(d, "check", "--no-dns"))


@cases.add
def hostile_names_are_refused_with_their_place():
    with Daemon(start=False) as d:
        line = len(open(d.conf).readlines()) + 4
        for name in ("..", "a/b", "A", "x" * 32, "a b", "-", "a\tb", "é",
                     "audit", "hold", "import", "."):
            rules(d, f"\n[archive x]\nlarger = 1\nfamily = {name}\n")
            run = subprocess.run([HANAPER, "check", "-c", d.conf],
                                 capture_output=True, text=True, timeout=60)
            tap.check(run.returncode, 78, name)
            assert f"{d.conf}:{line}: " in run.stderr or \
                f"{d.conf}:{line - 2}: " in run.stderr, (name, run.stderr)


if __name__ == "__main__":
    tap.run(cases)
