#!/usr/bin/env python3
"""The milter floor, driven over its socket in both shapes of the protocol
(everything offered, nothing offered) over a flow that writes down its calls.
Prints TAP."""
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path[:0] = [TESTS, os.path.join(TESTS, "milter")]
sys.dont_write_bytecode = True
import milter_client as mc  # noqa: E402
import tap  # noqa: E402
from milter_client import Milter, Closed, wait_until  # noqa: E402

STUBD = os.path.join(os.environ.get("BUILDDIR", "."), "tests/milter/stubd")
cases = tap.Cases()
SHAPES = {"all": {}, "none": {"steps": 0}}


class Stub:
    def __init__(self, sessions=100, progress_ms=10000, inet=False,
                 marks=None):
        self.dir = tempfile.TemporaryDirectory(prefix="hnm")
        self.address = os.path.join(self.dir.name, "s")
        self.process = subprocess.Popen(
            [STUBD, "0" if inet else self.address, str(sessions),
             str(progress_ms)] + ([marks] if marks else []),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="latin-1", bufsize=1)
        self.lines = queue.Queue()
        threading.Thread(target=self.pump, daemon=True).start()
        if inet:
            self.address = ("127.0.0.1", int(self.expect("port")[0]))
        self.found = int(self.expect("found")[0]) if marks else None
        self.nodelay = self.expect("ready")[0] == "nodelay"

    def pump(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next(self):
        line = self.lines.get(timeout=20)
        assert line is not None, "stubd ended"
        what, a, b = line.split("|", 2)
        return what, a, b

    def expect(self, what, *texts):
        got = self.next()
        assert got[0] == what, f"{got}, not {what}"
        for want, have in zip(texts, got[1:]):
            assert want == have, f"{have!r}, not {want!r}"
        return got[1:]

    def find(self, what):
        """The next line of that kind, whatever comes before it."""
        while True:
            got = self.next()
            if got[0] == what:
                return got[1:]

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def counts(self):
        """sessions, transactions, flow's sessions, flow's messages,
        environments, running; skips other lines."""
        self.tell("counts")
        while True:
            what, a, _ = self.next()
            assert what != "OUT OF ORDER"
            if what == "counts":
                return [int(n) for n in a.split()]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.dir.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


@cases.add
def negotiates_what_it_uses():
    with Stub() as s:
        m = Milter(s.address)
        version, actions, steps = m.negotiate()
        assert version == 6
        assert actions == 0x1 | 0x10 | 0x20 | 0x100, hex(actions)
        assert steps == (mc.HDR_LEADSPC | mc.NOUNKNOWN | mc.NODATA |
                         mc.NR_CONN | mc.NR_HELO | mc.NR_MAIL | mc.NR_RCPT |
                         mc.NR_HDR | mc.NR_EOH | mc.NR_BODY), hex(steps)
        assert m.symlist == {
            0: ["j", "{daemon_name}", "{client_addr}", "{client_ptr}"],
            2: ["{auth_type}", "{auth_authen}", "{tls_version}", "{cipher}",
                "{cipher_bits}"],
            5: ["i"]}, m.symlist
        m.quit()


@cases.add
def negotiates_within_what_is_offered():
    with Stub() as s:
        for actions, steps in ((0x1ff, 0), (0x11, mc.NR_HDR),
                               (0xff, mc.STEPS_ALL & ~mc.HDR_LEADSPC)):
            m = Milter(s.address)
            _, got_actions, got_steps = m.negotiate(actions, steps)
            assert got_actions & ~actions == 0, hex(got_actions)
            assert got_steps & ~steps == 0, hex(got_steps)
            assert bool(m.symlist) == bool(actions & 0x100)
            m.quit()


def whole_message(shape):
    def case():
        with Stub() as s:
            m = Milter(s.address)
            m.negotiate(**SHAPES[shape])
            assert m.connect(client_ptr="ptr.example") in \
                (None, [(b"c", b"")])
            assert m.helo("h.example", tls_version="TLSv1.3",
                          cipher="AES", cipher_bits="256") in \
                (None, [(b"c", b"")])
            assert m.mail("<a@x>", "SIZE=5", "BODY=8BITMIME",
                          auth_authen="joe", auth_type="PLAIN") in \
                (None, [(b"c", b"")])
            for reply in (m.rcpt("<b@y>"), m.rcpt("<c@z>"), m.data(),
                          m.header("From", " a"), m.header("X", "b\n\tc "),
                          m.header("Empty", ""), m.header("\xe4", " \xff"),
                          m.end_of_header(), m.body(b"one\r"),
                          m.body(b"\ntwo\r\n")):
                assert reply in (None, [(b"c", b"")])
            assert m.silent(), "a reply to a step that has none"
            assert m.end_of_message() == [(b"c", b"")]
            space = int(shape == "all")
            lead = " " if space else ""
            s.expect("facts", "ip=192.0.2.1 name=client.example "
                     "ptr=ptr.example helo= daemon=smtpd j=mx.example "
                     f"space={space} lacks=000 env=0")
            s.expect("helo", "h.example")
            s.expect("mail", "<a@x>", "auth=joe type=PLAIN tls=TLSv1.3 AES "
                     "256 SIZE=5 BODY=8BITMIME")
            s.expect("rcpt", "<b@y>")
            s.expect("rcpt", "<c@z>")
            s.expect("header", "From", lead + "a")
            s.expect("header", "X", "b\\0a\tc ")
            s.expect("header", "Empty", "")
            s.expect("header", "\xe4", lead + "\xff")
            s.expect("eoh")
            s.expect("body", "one\\0d")
            s.expect("body", "\\0atwo\\0d\\0a")
            s.expect("finish", "4ABCDEF", "4 10")
            s.expect("message_free", "f")
            # and the next message on the same connection
            assert m.message("<e@x>")[-1] == (b"c", b"")
            s.expect("mail", "<e@x>", "auth=joe type=PLAIN tls=TLSv1.3 AES "
                     "256")
            m.quit()
            wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])
    case.__name__ = f"whole message, {shape} offered"
    cases.add(case)


def decisions(shape):
    def case():
        with Stub() as s:
            m = Milter(s.address)
            m.open(**SHAPES[shape])
            lead = b" " if shape == "all" else b""
            assert m.message("<edits@x>") == [
                (b"m", b"\0\0\0\2Authentication-Results\0\0"),
                (b"m", b"\0\0\0\1Subject\0" + lead + b"new\0"),
                (b"i", b"\0\0\0\1DKIM-Signature\0" + lead +
                 b"v=1;\n\ta=b\0"),
                (b"i", b"\0\0\0\0Authentication-Results\0" + lead +
                 b"mx; x\0"),
                (b"c", b"")]
            assert m.message("<reject@x>") == \
                [(b"y", b"550 5.7.1 No, id=7\0")]
            assert m.message("<later@x>") == [(b"y", b"451 4.3.0 Later\0")]
            assert m.message("<norcode@x>") == [(b"t", b"")]
            assert m.message("<hold@x>") == \
                [(b"q", b"dmarc=fail\0"), (b"c", b"")]
            assert m.message("<nomem@x>")[-1][0] == b"y"
            assert m.message("<fine@x>") == [(b"c", b"")]
            m.quit()
            wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])
    case.__name__ = f"decisions, {shape} offered"
    cases.add(case)


for _shape in SHAPES:
    whole_message(_shape)
    decisions(_shape)


@cases.add
def changes_the_mta_does_not_take_are_tempfailed():
    with Stub() as s:
        m = Milter(s.address)
        m.open(actions=0)
        reply = m.message("<edits@x>")
        assert [p[0] for p in reply] == [b"y"], reply
        assert reply[0][1].startswith(b"451 4.3.0 "), reply
        assert m.message("<hold@x>")[-1][1].startswith(b"451 4.3.0 ")
        s.find("withdrawn")
        s.find("withdrawn")
        assert m.message("<fine@x>") == [(b"c", b"")]
        m.quit()
        freed = 0
        while freed < 2:  # of the one held, and of the last one
            what = s.next()[0]
            assert what != "withdrawn"
            freed += what == "message_free"


@cases.add
def flow_is_told_what_the_mta_does_not_grant():
    with Stub() as s:
        for actions, lacks in ((0x131, "000"), (0x130, "100"),
                               (0x121, "010"), (0x111, "001"), (0x2, "111")):
            m = Milter(s.address)
            m.open(actions=actions)
            m.message("<fine@x>")
            m.send(b"K")
            m.connect()
            m.quit()
            for _ in range(2):
                tap.check_in(f" lacks={lacks} ", s.find("facts")[0])


@cases.add
def client_addresses():
    rows = [
        (dict(name="unknown", ip="2001:db8::1", client_ptr="unknown"),
         "ip=2001:db8::1 name= ptr="),
        (dict(name="[192.0.2.9]", ip="192.0.2.9"), "ip=192.0.2.9 name= ptr="),
        (dict(name="m.example", ip="::ffff:192.0.2.3"),
         "ip=192.0.2.3 name=m.example ptr="),
        (dict(name="localhost", ip=None), "ip= name=localhost ptr="),
        (dict(name="localhost", ip=None, client_addr="127.0.0.1"),
         "ip=127.0.0.1 name=localhost ptr="),
        (dict(name="localhost", ip="/run/x"), "ip= name=localhost ptr="),
    ]
    with Stub() as s:
        for options, want in rows:
            m = Milter(s.address)
            m.negotiate(steps=mc.STEPS_ASKING)
            assert m.connect(**options) == [(b"c", b"")]
            facts = s.expect("facts")[0]
            assert facts.startswith(want + " helo= "), facts
            m.quit()
            s.expect("session_free")


@cases.add
def sessions_beyond_the_limit_get_a_temporary_refusal():
    with Stub(sessions=3) as s:
        kept = [Milter(s.address) for _ in range(3)]
        for m in kept:
            assert m.open() == [(b"c", b"")]
        m = Milter(s.address)
        m.open()
        assert m.message()[-1][1].startswith(b"451 4.3.0 ")
        m.quit()
        kept.pop().quit()
        wait_until(lambda: s.counts()[0] == 2)
        m = Milter(s.address)
        m.open()
        assert m.message() == [(b"c", b"")]
        for k in kept + [m]:
            k.quit()
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


def stages(m):
    """The steps of a message as functions, in order."""
    return [m.negotiate, m.connect, m.helo, m.mail, m.rcpt, m.data,
            lambda: m.header("From", " x"), m.end_of_header,
            lambda: m.body(b"x\r\n"), m.end_of_message]


@cases.add
def disconnect_abort_and_quit_in_each_stage():
    with Stub() as s:
        for way in ("close", "quit", "abort", "reset"):
            for count in range(11):
                m = Milter(s.address)
                steps = stages(m)
                assert len(steps) == 10
                for step in steps[:count]:
                    step()
                if way == "abort":
                    m.abort()
                    if count >= 3:  # a whole message fits behind it
                        assert m.message("<ok@x>") == [(b"c", b"")]
                    m.quit()
                elif way == "reset":
                    m.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                      b"\1\0\0\0\0\0\0\0")
                    m.close()
                else:
                    getattr(m, way)()
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


@cases.add
def mail_again_without_an_abort():
    with Stub() as s:
        m = Milter(s.address)
        m.open()
        m.mail("<one@x>")
        m.abort()
        m.mail("<two@x>")
        m.rcpt()
        m.abort()
        m.abort()
        assert m.message("<three@x>") == [(b"c", b"")]
        assert s.counts()[:4] == [1, 0, 1, 0]
        m.quit()


@cases.add
def quit_for_a_new_connection():
    with Stub() as s:
        m = Milter(s.address)
        m.open(ip="192.0.2.1")
        assert m.message() == [(b"c", b"")]
        m.send(b"K")  # SMFIC_QUIT_NC: connect follows, no negotiation
        assert m.connect(ip="192.0.2.77") == [(b"c", b"")]
        assert m.silent()
        m.helo()
        assert m.message() == [(b"c", b"")]
        m.quit()
        seen = [s.find("facts")[0], s.find("facts")[0]]
        assert seen[1].startswith("ip=192.0.2.77 "), seen
        assert " space=1 lacks=000 " in seen[1], seen
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


@cases.add
def garbage_does_no_harm():
    with Stub() as s:
        for data in (b"\xff" * 64, b"\0\0\0\0", b"\0\0\0\1Q", b"\0\0\0\5XYZ",
                     b"\x7f\xff\xff\xffB", b"\0\0\0\1O", b"\0\0\0\5O\0\0\0\6",
                     b"\0\0\0\1M", b"\0\0\0\1E"):
            m = Milter(s.address)
            m.sock.sendall(data)
            m.sock.shutdown(socket.SHUT_WR)
            try:
                while True:
                    m.receive()
            except Closed:
                pass
            m.close()
        # broken commands after a good beginning
        for command, data in ((b"M", b""), (b"M", b"no-nul"), (b"C", b""),
                              (b"C", b"x\0004"), (b"R", b""), (b"L", b"x"),
                              (b"H", b""), (b"D", b""), (b"Z", b"x")):
            m = Milter(s.address)
            m.open()
            m.send(command, data)
            m.close()
        m = Milter(s.address)
        m.open()
        assert m.message() == [(b"c", b"")]
        m.quit()
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


@cases.add
def long_work_is_reported():
    with Stub(progress_ms=100) as s:
        m = Milter(s.address)
        m.open()
        reply = m.message("<slow@x>")
        assert reply[-1] == (b"c", b"")
        assert 2 <= [p[0] for p in reply].count(b"p") <= 8, reply
        assert m.message("<fast@x>") == [(b"c", b"")]
        m.quit()


@cases.add
def a_session_keeps_its_environment():
    with Stub() as s:
        old = Milter(s.address)
        old.open()
        s.expect("facts")
        s.tell("swap")
        s.find("swapped")
        new = Milter(s.address)
        new.open()
        assert s.find("facts")[0].endswith("env=1")
        assert old.message() == [(b"c", b"")]
        old.quit()
        new.quit()
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


@cases.add
def draining_waits_for_messages_under_way():
    with Stub() as s:
        busy, idle = Milter(s.address), Milter(s.address)
        busy.open()
        idle.open()
        busy.mail("<slow@x>")
        s.tell("drain")
        s.find("draining")
        # nothing new begins
        late = Milter(s.address)
        late.open()
        for m in idle, late:
            assert m.message()[-1][1].startswith(b"421 4.3.2 ")
        busy.rcpt()
        busy.header("From", " x")
        busy.end_of_header()
        assert busy.end_of_message()[-1] == (b"c", b"")
        s.find("idle")
        s.process.wait(20)


@cases.add
def draining_ends_when_a_message_does_not():
    with Stub() as s:
        m = Milter(s.address)
        m.open()
        m.mail()
        s.tell("drain")
        s.find("busy")
        s.process.wait(20)


@cases.add
def stops_at_once_when_idle():
    with Stub() as s:
        m = Milter(s.address)
        m.open()
        assert m.message() == [(b"c", b"")]
        time.sleep(0.3)
        began = time.monotonic()
        s.tell("drain")
        s.process.wait(20)
        assert time.monotonic() - began < 2


@cases.add
def what_crashed_us_twice_is_refused_for_good():
    crash = {"headers": (("From", " x"), ("Crash", " here"), ("To", " y")),
             "body": b"a" * 70000}
    rows = (("<crash@x>", crash), ("<crash-end@x>", {"body": b"b" * 3000}))
    for sender, content in rows:
        with tempfile.TemporaryDirectory(prefix="hnm") as place:
            marks = os.path.join(place, "marks")
            for attempt in range(2):
                with Stub(marks=marks) as s:
                    assert s.found == min(attempt, 1), s.found
                    m = Milter(s.address)
                    m.open()
                    assert m.message("<fine@x>") == [(b"c", b"")]
                    try:
                        m.message(sender, **content)
                        raise AssertionError("it lives")
                    except (Closed, OSError):
                        assert s.process.wait(20) == 99
                    m.close()
            for attempt in range(2):
                with Stub(marks=marks) as s:
                    assert s.found == 1 - attempt, s.found
                    m = Milter(s.address)
                    m.open()
                    assert m.message(sender, **content)[-1] == \
                        (b"y", b"554 5.6.0 This message cannot be "
                         b"processed\0")
                    # nothing else is touched by it
                    assert m.message("<fine@x>") == [(b"c", b"")]
                    m.quit()
                    wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


@cases.add
def over_tcp_without_delay():
    with Stub(inet=True) as s:
        assert s.nodelay
        m = Milter(s.address)
        m.open()
        for _i in range(20):
            assert m.message() == [(b"c", b"")]
        m.quit()


@cases.add
def many_sessions_at_once():
    with Stub(sessions=500) as s:
        connections = [Milter(s.address) for _ in range(200)]
        for m in connections:
            assert m.open() == [(b"c", b"")]
        for m in connections:
            m.mail()
            m.rcpt()
        for m in connections:
            m.header("From", " x")
            m.end_of_header()
            m.body(b"x" * 65535)
        for m in connections:
            assert m.end_of_message()[-1] == (b"c", b"")
        for m in connections:
            m.close()
        wait_until(lambda: s.counts() == [0, 0, 0, 0, 0, 1])


if __name__ == "__main__":
    tap.run(cases)
