#!/usr/bin/env python3
"""hanaperd as a whole: start, mail, reload, death of each process, stop.
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
import daemon as d7  # noqa: E402
import tap  # noqa: E402
from daemon import (Daemon, HANAPERD, INBOUND, OUTBOUND, alive,  # noqa: E402
                    children, free_port, inserted, is_signed, message)
from milter_client import Closed, wait_until  # noqa: E402

cases = tap.Cases()


def works(d):
    reply = d.send()
    assert reply[-1] == (b"c", b"") and is_signed(reply), reply
    reply = d.send("a@sender.example", INBOUND)
    assert reply[-1] == (b"c", b""), reply
    results = inserted(reply, "Authentication-Results")
    assert len(results) == 1 and "spf=pass" in results[0], reply


@cases.add
def mail_over_a_unix_socket():
    with Daemon() as d:
        works(d)
        mode = os.stat(d.path("run", "milter.sock")).st_mode & 0o777
        assert mode == 0o660, oct(mode)
        assert os.stat(d.path("run")).st_mode & 0o777 == 0o750
        assert d.term() == 0
        assert not os.path.exists(d.path("run", "milter.sock"))


@cases.add
def mail_over_inet():
    with Daemon(listen=f"inet:{free_port()}@127.0.0.1") as d:
        works(d)
        assert d.term() == 0


@cases.add
def mail_over_inet6():
    try:
        port = free_port("::1")
    except OSError:
        raise tap.Skip("this machine has no ::1") from None
    with Daemon(listen=f"inet6:{port}@[::1]") as d:
        works(d)
        assert d.term() == 0


def open_files(pid):
    """What its descriptors lead to; some are only there for a moment."""
    links = []
    for n in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{n}"))
        except FileNotFoundError:
            pass
    return links


@cases.add
def what_the_mta_does_not_grant_is_not_archived():
    forged = (("Authentication-Results", " mx.example.org; spf=pass"),)
    with Daemon() as d:
        def send(actions, more=(), client=INBOUND, author="a@sender.example"):
            parts = message(author)
            parts["headers"] = more + parts["headers"]
            m = d.connect()
            m.open(actions=actions, **client)
            reply = m.message(**parts)
            m.quit()
            return reply[-1]
        put_off = (b"y", b"451 4.3.0 The mail server does not let its "
                   b"filter do its work\0")
        for _ in range(2):
            assert send(0x130) == put_off, "no insert"
            assert send(0x21, forged) == put_off, "no change"
        tap.check(send(0x2, client=OUTBOUND, author="a@example.org"), put_off,
                  "no insert, no signature")
        assert d.log().count("does not let us") == 1, d.log()
        d.wait_log("does not let us add header fields: mail")
        assert send(0x21) == (b"c", b""), "nothing to change"
        assert send(0x2, client=OUTBOUND, author="c@sender.example") == \
            (b"c", b""), "nothing to do"
        assert d.term() == 0
        run = subprocess.run([d7.HANAPER, "archive", "search", "-c", d.conf,
                              "--count", "larger:1"],
                             capture_output=True, text=True)
        assert run.stdout.split()[:1] == ["2"], run


@cases.add
def three_processes_and_who_holds_what():
    with Daemon() as d:
        works(d)
        roles = d.roles()
        assert set(roles) == {"signer", "milter"}, roles
        with open(d.key_files()[0]) as file:
            secret = file.read().splitlines()[1].encode()
        for role, pid in roles.items():
            if os.geteuid() == 0:
                assert os.stat(f"/proc/{pid}/task").st_uid in (
                    d7.nobody(), 0)
                with open(f"/proc/{pid}/status") as file:
                    uids = [line.split()[1:] for line in file
                            if line.startswith("Uid:")][0]
                assert set(uids) == {str(d7.nobody())}, uids
            try:
                links = open_files(pid)
            except PermissionError:
                # not even its own user may look into the signer
                assert role == "signer" and os.geteuid() != 0, role
                continue
            assert not any(".pem" in link for link in links), (role, links)
            if role == "milter":
                assert secret not in memory_of(pid)
        assert d.term() == 0


def memory_of(pid):
    """What can be read of a process's own memory."""
    parts = []
    try:
        with open(f"/proc/{pid}/maps") as maps, \
                open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, mode = line.split()[:2]
                if not mode.startswith("rw"):
                    continue
                low, high = (int(x, 16) for x in span.split("-"))
                if high - low > 64 << 20:
                    continue
                try:
                    mem.seek(low)
                    parts.append(mem.read(high - low))
                except (OSError, ValueError):
                    pass
    except PermissionError:
        return b""
    return b"".join(parts)


@cases.add
def without_keys_in_verify_mode():
    with Daemon(keys=(), mode="verify", key_dir=None) as d:
        assert set(d.roles()) == {"milter"}
        reply = d.send("a@sender.example", INBOUND)
        assert "spf=pass" in inserted(reply, "Authentication-Results")[0]
        assert d.term() == 0


@cases.add
def reload_takes_new_keys_zone_and_rules():
    with Daemon() as d:
        old = d.connect()
        old.open(**INBOUND)
        assert not is_signed(d.send("a@new.example"), "new.example")
        d.make_key("new.example")
        d.write("zone", d7.ZONE.replace("192.0.2.25", "192.0.2.99"))
        d.configure(authserv_id="other.example.org")
        d.hup()
        d.wait_log("configuration and keys were read again")
        assert is_signed(d.send("a@new.example"), "new.example")
        reply = d.send("a@sender.example", INBOUND)
        value = inserted(reply, "Authentication-Results")[0]
        assert value.strip().startswith("other.example.org;"), value
        assert "spf=fail" in value, value
        # the session that began before goes by the old rules
        d.configure(user="other", listen="unix:/other/place", log="syslog")
        d.hup()
        for name in ("listen", "user", "log"):
            d.wait_log(f"a change of {name} needs a restart")
        d.wait_log("configuration and keys were read again")
        reply = old.message(**message("a@sender.example"))
        value = inserted(reply, "Authentication-Results")[0]
        assert value.strip().startswith("mx.example.org;"), value
        assert "spf=pass" in value, value
        old.quit()
        assert d.term() == 0
        assert not os.path.exists(d.path("run", "milter.sock"))


def selectors(reply):
    return sorted(tag.strip()[2:]
                  for value in inserted(reply, "DKIM-Signature")
                  for tag in value.split(";") if tag.strip()[:2] == "s=")


@cases.add
def keys_that_the_sign_table_names():
    with Daemon(start=False) as d:
        own = os.path.basename(d.key_files()[0])[:-4]
        os.mkdir(d.path("other"), 0o750)
        for name in ("one", "two"):
            d.make_key("other.example", "--selector", name)
            os.rename(d.path("keys", "other.example", name + ".pem"),
                      d.path("other", name + ".pem"))
            os.rmdir(d.path("keys", "other.example"))
        line = "boss@example.org d=example.org s=special key=%s\n"
        d.write("table", line % d.path("other", "one.pem"))
        d.configure(sign_table=d.path("table"))
        d.start()
        first = d.send("boss@example.org")
        assert selectors(first) == ["special"], first
        # it is no key of the domain for anybody else
        assert selectors(d.send("a@example.org")) == [own]
        # another file, and another line for the same key
        d.write("table", line % d.path("other", "two.pem") +
                "a@example.org d=example.org s=special\n"
                "a@example.org d=example.org s=" + own + "\n"
                "c@example.org d=example.org\n")
        d.hup()
        d.wait_log("configuration and keys were read again")
        assert selectors(d.send("boss@example.org")) == ["special"]
        assert selectors(d.send("a@example.org")) == sorted(["special", own])
        assert selectors(d.send("c@example.org")) == [own]
        # one name, two keys
        for wrong, why in (
                (line % d.path("other", "two.pem") +
                 line.replace("boss", "vice") % d.path("other", "one.pem"),
                 "key= is another file"),
                ("* d=example.org s=%s key=%s\n" % (
                    own, d.path("other", "one.pem")), "leave key= out")):
            d.write("table", wrong)
            d.hup()
            d.wait_log(why)
            assert selectors(d.send("boss@example.org")) == ["special"]
        assert d.term() == 0


@cases.add
def a_bad_reload_keeps_the_old_state():
    with Daemon() as d:
        key = d.key_files()[0]

        def refused(words):
            d.hup()
            d.wait_log(words)
            d.wait_log("the old configuration stays in use")
            works(d)

        good = dict(d.settings)
        d.write("hanaper.conf", "max_sesions = 3\n")
        refused(f"{d.conf}:1: ")
        os.unlink(d.conf)
        refused("cannot read the configuration")
        d.settings = good
        d.configure()
        os.chmod(key, 0o644)
        refused(f"run: chmod 0640 {key}")
        os.chmod(key, 0o640)
        d.write("zone", "sender.example BOGUS x\n")
        refused("zone:1: ")
        d.write("zone", d7.ZONE)
        # what only the signer can see: then the milter process must not
        # switch either
        os.mkdir(d.path("keys", "broken.example"), 0o750)
        d.write("keys/broken.example/k.pem", "no key\n")
        os.chmod(d.path("keys", "broken.example", "k.pem"), 0o640)
        d.configure(authserv_id="half.example")
        refused("broken.example/k.pem: no private key")
        reply = d.send("a@sender.example", INBOUND)
        value = inserted(reply, "Authentication-Results")[0]
        assert value.strip().startswith("mx.example.org;"), value
        # and all is well again
        d.configure(authserv_id="whole.example")
        os.unlink(d.path("keys", "broken.example", "k.pem"))
        os.rmdir(d.path("keys", "broken.example"))
        d.hup()
        d.wait_log("configuration and keys were read again")
        assert d.term() == 0


@cases.add
def every_line_of_a_json_log_is_an_object():
    with Daemon(log_format="json", start=False) as d:
        d.process = d.spawn("-f")
        d.wait_log("started, listening")
        hostile = "a" * 400 + "\x01\"\\\xff" * 400 + "@sender.example"
        for client in (INBOUND, OUTBOUND):
            m = d.connect()
            m.open(**client)
            m.message(sender=f"<{hostile}>", headers=(
                ("From", " x@sender.example"),
                ("Subject", " \xff\x01\"")) + (
                ("DKIM-Signature", " v=1; a=rsa-sha256; d=a.example; s=s; "
                 "h=from; bh=AAAA; b=AAAA"),) * 4)
            m.quit()
        os.kill(d.roles()["milter"], signal.SIGKILL)
        d.wait_log("was started again")
        d.write("zone", "broken\n")
        d.hup()
        d.wait_log("stays in use")
        assert d.term() == 0
        objects = [json.loads(line) for line in d.log().splitlines()]
        messages = [o for o in objects if "qid" in o]
        assert len(messages) == 2, objects
        assert "dkim4" in messages[0], messages
        assert {o["level"] for o in objects if "level" in o} == \
            {"error", "warning", "info"}, objects


@cases.add
def many_reloads_while_mail_flows():
    with Daemon() as d:
        m = d.connect()
        m.open(**OUTBOUND)
        for _ in range(20):
            d.hup()
            reply = m.message(**message("a@example.org"))
            assert is_signed(reply) and reply[-1] == (b"c", b""), reply
            works(d)
        m.quit()
        d.wait_log("configuration and keys were read again")
        assert set(d.roles()) == {"signer", "milter"}
        assert "process" not in d.log().replace("milter process", "").replace(
            "signer process", "") or "was killed" not in d.log()
        assert d.term() == 0


@cases.add
def stops_within_a_second_when_idle():
    with Daemon() as d:
        m = d.connect()
        m.open(**OUTBOUND)
        time.sleep(0.3)
        began = time.monotonic()
        assert d.term() == 0
        took = time.monotonic() - began
        assert took < 2, took
        assert not d.roles()


@cases.add
def term_waits_for_messages_under_way():
    with Daemon() as d:
        m, idle = d.connect(), d.connect()
        m.open(**OUTBOUND)
        idle.open(**OUTBOUND)
        m.mail("<a@example.org>")
        m.rcpt()
        d.process.send_signal(signal.SIGTERM)
        d.wait_log("stopping")

        def refused():
            reply = idle.message()
            # or it was just before the drain began
            return reply[-1][1].startswith(b"421 4.3.2 ")
        wait_until(refused)
        m.header("From", " a@example.org")
        m.end_of_header()
        m.body(b"late\r\n")
        reply = m.end_of_message()
        assert reply[-1] == (b"c", b"") and is_signed(reply), reply
        assert d.process.wait(20) == 0


@cases.add
def a_second_term_does_not_wait():
    with Daemon() as d:
        m = d.connect()
        m.open(**OUTBOUND)
        m.mail()
        d.process.send_signal(signal.SIGTERM)
        d.wait_log("stopping")
        assert d.process.poll() is None
        assert d.term(20) == 0
        assert not os.path.exists(d.path("run", "milter.sock"))


@cases.add
def the_signer_dies():
    with Daemon() as d:
        m, inbound = d.connect(), d.connect()
        m.open(**OUTBOUND)
        inbound.open(**INBOUND)
        for _ in range(3):
            pid = d.roles()["signer"]
            os.kill(pid, signal.SIGKILL)
            refused = 0
            while True:  # a 4xx until it is back, never without a signature
                reply = m.message(**message("a@example.org"))
                if reply[-1][0] == b"c":
                    assert is_signed(reply), reply
                    if d.roles().get("signer", pid) != pid:
                        break
                else:
                    assert reply[-1][0] == b"t" or \
                        reply[-1][1].startswith(b"4"), reply
                    refused += 1
                reply = inbound.message(**message("a@sender.example"))
                assert reply[-1] == (b"c", b""), reply
                assert "spf=pass" in inserted(
                    reply, "Authentication-Results")[0]
            d.wait_log("the signer process was killed by signal 9")
        works(d)
        assert d.term() == 0


@cases.add
def the_signer_hangs():
    with Daemon() as d:
        pid = d.roles()["signer"]
        os.kill(pid, signal.SIGSTOP)
        m = d.connect()
        m.open(**INBOUND)
        reply = m.message(**message("a@sender.example"))
        assert reply[-1] == (b"c", b""), reply
        m.quit()
        reply = d.send()
        assert reply[-1][0] in b"ty" and not is_signed(reply), reply
        os.kill(pid, signal.SIGCONT)
        works(d)
        assert d.term() == 0


def files_of(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/fd")]


def limit_files(pid, most):
    """The limit of before. Only its own user may, not even root."""
    own = {"user": "nobody", "group": "nogroup", "extra_groups": []} \
        if os.geteuid() == 0 else {}

    def prlimit(*args):
        return subprocess.run(["prlimit", f"--pid={pid}", *args], check=True,
                              capture_output=True, text=True, **own).stdout
    before = prlimit("--nofile", "--raw", "--noheadings", "--output=SOFT")
    prlimit(f"--nofile={most}:")
    return int(before)


@cases.add
def the_connection_to_the_signer_ends():
    """Both processes live: the one has no descriptor for what the other
    sends. They meet again once there is room, without anybody's help."""
    with Daemon() as d:
        works(d)
        roles = d.roles()
        d.process.send_signal(signal.SIGSTOP)
        open_then = len(files_of(roles["milter"]))
        os.kill(roles["signer"], signal.SIGKILL)
        wait_until(lambda: len(files_of(roles["milter"])) < open_then - 30)
        free = sorted(set(range(1000)) - set(files_of(roles["milter"])))
        most = limit_files(roles["milter"], free[12])
        d.process.send_signal(signal.SIGCONT)
        d.wait_log("had lost each other")
        reply = d.send()
        assert reply[-1][0] in b"ty" and not is_signed(reply), reply
        limit_files(roles["milter"], most)
        wait_until(lambda: is_signed(d.send()))
        assert d.roles()["milter"] == roles["milter"]
        works(d)
        assert d.term() == 0


@cases.add
def the_milter_process_dies():
    with Daemon() as d:
        m = d.connect()
        m.open(**OUTBOUND)
        m.mail()
        os.kill(d.roles()["milter"], signal.SIGKILL)
        try:
            m.rcpt()
            m.end_of_message()
            raise AssertionError("the connection lives")
        except (Closed, OSError):
            pass
        # nobody waits: closed at once, or served again
        began = time.monotonic()

        def back():
            try:
                works(d)
                return True
            except (Closed, OSError):
                return False
        wait_until(back)
        assert time.monotonic() - began < 15
        d.wait_log("the milter process was killed by signal 9")
        d.wait_log("the milter process was started again")
        assert set(d.roles()) == {"signer", "milter"}
        assert d.term() == 0


@cases.add
def clients_that_come_early_are_served():
    with Daemon(start=False) as d:
        d.process = d.spawn("-f")

        def early():
            try:
                return d.connect()
            except OSError:
                return None
        m = wait_until(early)
        assert m.open(**OUTBOUND) == [(b"c", b"")]
        m.quit()


@cases.add
def both_die():
    with Daemon() as d:
        for pid in d.roles().values():
            os.kill(pid, signal.SIGKILL)

        def back():
            try:
                works(d)
                return True
            except (Closed, OSError, AssertionError):
                return False
        wait_until(back)
        assert d.term() == 0


@cases.add
def a_reload_while_a_role_is_down():
    with Daemon() as d:
        d.make_key("new.example")
        os.kill(d.roles()["milter"], signal.SIGKILL)
        d.hup()
        d.wait_log("configuration and keys were read again")

        def back():
            try:
                return is_signed(d.send("a@new.example"), "new.example")
            except (Closed, OSError):
                return False
        wait_until(back)
        assert d.term() == 0


@cases.add
def the_supervisor_dies():
    with Daemon() as d:
        roles = d.roles()
        d.process.kill()
        d.process.wait()
        for pid in roles.values():
            wait_until(lambda p=pid: not alive(p))
        # its socket is still there, and is replaced
        assert os.path.exists(d.path("run", "milter.sock"))
        d.start()
        works(d)
        assert d.term() == 0


@cases.add
def a_second_daemon_does_not_take_the_socket():
    with Daemon() as d:
        other = d.spawn("-f")
        assert other.wait(20) == 78
        assert "another process listens there" in d.log()
        works(d)
        assert d.term() == 0


@cases.add
def what_is_no_socket_is_not_removed():
    with Daemon(start=False) as d:
        os.mkdir(d.path("run"))
        d.write("run/milter.sock", "precious")
        assert d.spawn("-f").wait(20) == 78
        assert "is there already and is no socket" in d.log()
        with open(d.path("run", "milter.sock")) as file:
            assert file.read() == "precious"


@cases.add
def sessions_beyond_the_limit():
    with Daemon(max_sessions=3) as d:
        kept = [d.connect() for _ in range(3)]
        for m in kept:
            assert m.open(**OUTBOUND) == [(b"c", b"")]
        assert d.send()[-1][1].startswith(b"451 4.3.0 ")
        kept.pop().quit()

        def admitted():
            return d.send()[-1] == (b"c", b"")
        wait_until(admitted)
        assert d.term() == 0


@cases.add
def connections_that_break_leave_nothing_behind():
    with Daemon() as d:
        works(d)
        pid = d.roles()["milter"]

        def open_files():
            return len(os.listdir(f"/proc/{pid}/fd"))
        before = open_files()
        for count in range(240):
            m = d.connect()
            steps = [m.negotiate, lambda: m.connect(**OUTBOUND), m.helo,
                     m.mail, m.rcpt, lambda: m.header("From", " x"),
                     m.end_of_header, lambda: m.body(b"x" * 5000)]
            for step in steps[:count % 9]:
                step()
            if count % 2:
                m.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  b"\1\0\0\0\0\0\0\0")
            m.close()
        works(d)
        wait_until(lambda: open_files() <= before + 2)
        assert d.term() == 0


@cases.add
def tells_systemd():
    with Daemon(start=False) as d:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(d.path("notify"))
        os.chmod(d.path("notify"), 0o666)
        s.settimeout(20)
        d.notify = d.path("notify")
        d.start()
        assert s.recv(4096) == b"READY=1"
        d.hup()
        text = s.recv(4096).decode()
        assert text.startswith("RELOADING=1\nMONOTONIC_USEC="), text
        assert text.split("=")[2].isdigit(), text
        assert s.recv(4096).startswith(b"READY=1\n")
        assert d.term() == 0
        assert s.recv(4096) == b"STOPPING=1"
        s.close()


def find_daemon(conf):
    """Pids of hanaperd with this configuration that have no hanaperd as
    parent."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if conf.encode() in words and os.path.basename(words[0]) == \
                os.path.basename(HANAPERD).encode() and alive(int(name)):
            found.append(int(name))
    return found


@cases.add
def in_the_background():
    with Daemon(start=False, log="syslog") as d:
        p = d.spawn()
        assert p.wait(30) == 0, d.log()
        pids = find_daemon(d.conf)
        assert len(pids) == 1, pids
        try:
            works(d)
            assert os.getsid(pids[0]) == pids[0]
            assert os.readlink(f"/proc/{pids[0]}/fd/2") == "/dev/null" or \
                os.geteuid() != os.stat(f"/proc/{pids[0]}").st_uid
        finally:
            roles = children(pids[0])
            os.kill(pids[0], signal.SIGTERM)
            wait_until(lambda: not alive(pids[0]))
        for pid in roles:
            wait_until(lambda p=pid: not alive(p))
        assert not os.path.exists(d.path("run", "milter.sock"))


@cases.add
def a_failed_start_in_the_background_is_told():
    with Daemon(start=False) as d:
        d.configure(bogus="1")
        p = d.spawn()
        assert p.wait(30) == 78
        assert f"{d.conf}:" in d.log(), d.log()
        wait_until(lambda: not find_daemon(d.conf))


@cases.add
def roles_are_not_for_callers():
    for role in ("signer", "milter", "x"):
        p = subprocess.run([HANAPERD, f"--role={role}", "stderr"],
                           stdin=subprocess.DEVNULL, capture_output=True)
        assert p.returncode == 64, p


if __name__ == "__main__":
    tap.run(cases)
