#!/usr/bin/env python3
"""hanaperd started as root: what it makes for its user, what that user must
be able to do, and that nothing of it stays root. Prints TAP."""
import os
import pwd
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
import daemon as d7  # noqa: E402
import tap  # noqa: E402
from daemon import HANAPER, Daemon, HANAPERD, is_signed  # noqa: E402

cases = tap.Cases()


def owner(path):
    st = os.stat(path)
    return st.st_uid, stat.S_IMODE(st.st_mode)


@cases.add
def folders_and_socket_are_made_for_the_user():
    with Daemon(start=False) as d:
        d.configure(state_dir=d.path("var", "lib", "state"),
                    archive_dir=d.path("var", "lib", "archive"))
        d.start()
        reply = d.send()
        assert reply[-1] == (b"c", b"") and is_signed(reply), reply
        uid = d7.nobody()
        assert owner(d.path("var", "lib", "state")) == (uid, 0o750)
        assert owner(d.path("var", "lib", "archive")) == (uid, 0o750)
        assert owner(d.path("var", "lib")) == (0, 0o755)
        assert owner(d.path("run")) == (uid, 0o2750)
        assert owner(d.path("run", "milter.sock")) == (uid, 0o660)
        # keys stay root's, and were read all the same
        assert owner(d.key_files()[0])[0] == 0
        assert d.term() == 0


@cases.add
def the_roles_are_the_user_for_good():
    with Daemon() as d:
        for pid in d.roles().values():
            with open(f"/proc/{pid}/status") as file:
                status = dict(line.rstrip("\n").split(":\t", 1)
                              for line in file if ":\t" in line)
            assert set(status["Uid"].split()) == {str(d7.nobody())}, status
            assert "0" not in status["Groups"].split(), status
            assert int(status["CapEff"], 16) == 0, status
            assert int(status["CapPrm"], 16) == 0, status
            assert status["NoNewPrivs"] == "1", status
        assert d.term() == 0


def refused(d, words):
    for args in (("-t",), ("-f",)):
        p = subprocess.run([HANAPERD, "-c", d.conf, *args],
                           capture_output=True, text=True, timeout=60)
        assert p.returncode == 78, (args, p)
        lines = [line for line in p.stderr.splitlines() if words in line]
        assert len(lines) == 1, (args, p.stderr)
    p = subprocess.run([HANAPER, "check", "-c", d.conf, "--no-dns"],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 78, p
    lines = [line for line in p.stdout.splitlines() if words in line]
    assert len(lines) == 1, p.stdout


@cases.add
def what_the_user_may_not_do_is_said_at_start():
    with Daemon(start=False) as d:
        for name in ("state", "archive"):
            os.mkdir(d.path(name), 0o755)
        for name in ("state", "archive"):
            refused(d, f"{name}_dir {d.path(name)}: user nobody may not "
                       "write to it: Permission denied")
            os.chown(d.path(name), d7.nobody(), -1)
        os.chmod(d.path("zone"), 0o600)
        refused(d, f"zone_file {d.path('zone')}: user nobody may not read it")
        os.chmod(d.path("zone"), 0o644)
        d.write("table", "example.org d=example.org\n")
        os.chmod(d.path("table"), 0o600)
        d.configure(sign_table=d.path("table"))
        refused(d, f"sign_table {d.path('table')}: user nobody may not read")
        os.chmod(d.path("table"), 0o644)
        p = subprocess.run([HANAPERD, "-c", d.conf, "-t"])
        assert p.returncode == 0


@cases.add
def the_user_must_be_there_and_not_be_root():
    with Daemon(start=False) as d:
        d.configure(user="no-such-user")
        refused(d, "user = no-such-user: no such user; make it with: ")
        d.configure(user="root")
        refused(d, "user = root: the daemon does not run as root")


@cases.add
def the_group_of_the_socket_must_be_there():
    with Daemon(start=False) as d:
        d.configure(listen=f"unix:{d.path('run', 's')} group=no-such-group")
        refused(d, "listen: no group \"no-such-group\"")


@cases.add
def strangers_learn_nothing():
    with Daemon() as d:
        socket_path = d.path("state", "control.sock")
        assert owner(socket_path) == (d7.nobody(), 0o660)
        # whatever somebody does to the modes, the kernel tells who it is
        os.chmod(socket_path, 0o666)
        os.chmod(d.path("state"), 0o755)
        uid = pwd.getpwnam("daemon").pw_uid
        group = os.stat(d.path("archive")).st_gid
        ask = [HANAPER, "status", "-c", d.conf]

        def run(groups):
            return subprocess.run(ask, capture_output=True, text=True,
                                  user=uid, group=uid, extra_groups=groups)
        p = run([])
        assert p.returncode == 77 and "no member" in p.stderr, p
        p = run([group])
        assert p.returncode == 0 and "archive.shards" in p.stdout, p


@cases.add
def members_read_and_the_daemon_writes_it_down():
    with Daemon() as d:
        d.send()
        uid = pwd.getpwnam("daemon").pw_uid
        group = os.stat(d.path("archive")).st_gid

        def run(*words, groups=(group,)):
            return subprocess.run([HANAPER, "archive", words[0], "-c", d.conf,
                                   *words[1:]], capture_output=True, text=True,
                                  user=uid, group=uid, extra_groups=groups)
        p = run("search", "--format", "{id}", "dir:out")
        assert p.returncode == 0 and p.stdout.strip(), p
        one = p.stdout.strip()
        p = run("erase", "--reason", "x", one)
        assert p.returncode == 77 and "only root and the" in p.stderr, p
        p = run("audit")
        assert f"daemon ({uid})  search  dir:out" in p.stdout, p
        # nobody there to write it down: nothing is shown
        d.term()
        p = run("search", "dir:out")
        assert p.returncode == 75 and p.stdout == "", p
        p = run("search", "--unrecorded", "dir:out")
        assert p.returncode == 0 and p.stdout, p


if __name__ == "__main__":
    tap.run(cases, None if os.geteuid() == 0 else "needs root")
