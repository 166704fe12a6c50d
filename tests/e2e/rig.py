"""hanaperd behind a private Postfix, with a fixed zone: the stage of the
end-to-end tests and of contrib/try.

    with Rig() as rig:
        rig.start()
        raw = rig.signed(rig.mail("news@sender.example", "Hello"))
        got = rig.receive(raw)            # from SENDER, an outside client
        rig.sent(rig.mail("jo@example.org", "Hi"))   # from a trusted network

Domains: example.org is ours (keys in the key folder); sender.example signs,
has SPF and p=reject; other.example signs, too; temp.example has a DNS that
fails. The programs are $HANAPER and $HANAPERD.
"""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import postfix

OURS, SENDER_DOMAIN = "example.org", "sender.example"
# (address, verified name, HELO) of outside clients
SENDER = ("192.0.2.25", "mail.sender.example", "mail.sender.example")
STRANGER = ("198.51.100.66", "host66.bad.example", "host66.bad.example")
AUTHSERV = "mx.example.org"  # Postfix's myhostname
USER = "nobody"
START_SECONDS = 30
STOP_SECONDS = 40

ZONE = """\
example.org TXT "v=spf1 ip4:192.0.2.10 -all"
example.org MX 10 mx.example.org
_dmarc.example.org TXT "v=DMARC1; p=none"
mx.example.org A 192.0.2.10
sender.example TXT "v=spf1 ip4:192.0.2.25 -all"
sender.example MX 10 mail.sender.example
mail.sender.example A 192.0.2.25
mail.sender.example TXT "v=spf1 a -all"
25.2.0.192.in-addr.arpa PTR mail.sender.example
_dmarc.sender.example TXT "v=DMARC1; p=reject"
other.example TXT "v=spf1 -all"
_dmarc.other.example TXT "v=DMARC1; p=none"
host66.bad.example A 198.51.100.66
66.100.51.198.in-addr.arpa PTR host66.bad.example
temp.example * !SERVFAIL
_dmarc.temp.example * !SERVFAIL
temp._domainkey.temp.example * !SERVFAIL
slow.example * !TIMEOUT
_dmarc.slow.example * !TIMEOUT
slow._domainkey.slow.example * !TIMEOUT
"""


def programs():
    """Why the programs under test cannot be run, or None."""
    for name in ("HANAPER", "HANAPERD"):
        path = os.environ.get(name, "")
        if not os.access(path, os.X_OK):
            return f"{name.lower()} is not built"
    return None


def why_not():
    return postfix.why_not() or programs()


class Rig:
    def __init__(self, settings=None, socket_kind="unix", postfix_settings=None,
                 services=()):
        self.top = tempfile.mkdtemp(prefix="hanaper-e2e.")
        os.chmod(self.top, 0o755)
        self.settings = settings or {}
        self.kind = socket_kind
        self.path = {name: os.path.join(self.top, name) for name in (
            "hanaper.conf", "zone", "keys", "state", "archive", "foreign",
            "daemon.log")}
        self.mta = postfix.Postfix(os.path.join(self.top, "postfix"),
                                   postfix_settings, services)
        self.port = postfix.free_port()
        self.daemon = None
        self._log = None
        self._prepare()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- what stands on disk ----

    def _prepare(self):
        owner = pwd.getpwnam(USER)
        for name in ("keys", "foreign"):
            os.mkdir(self.path[name], 0o700)
        for name in ("state", "archive"):
            os.mkdir(self.path[name], 0o750)
            os.chown(self.path[name], owner.pw_uid, owner.pw_gid)
        self.configure()
        self.zone = ZONE
        self.write_zone()
        for domain in (OURS, SENDER_DOMAIN, "other.example"):
            folder = "keys" if domain == OURS else "foreign"
            self.make_key(domain, "s1", "rsa2048", folder)
        self.make_key(OURS, "s2", "ed25519", "keys")
        self.write_zone()

    def listen(self):
        """(what hanaperd gets, what Postfix gets)"""
        if self.kind == "unix":
            path = os.path.join(self.mta.queue, "hanaper", "milter.sock")
            return f"unix:{path}", "unix:hanaper/milter.sock"
        return (f"inet:{self.port}@127.0.0.1", f"inet:127.0.0.1:{self.port}")

    def configure(self, **changes):
        self.settings.update(changes)
        values = {
            "listen": self.listen()[0],
            "user": USER,
            "state_dir": self.path["state"],
            "key_dir": self.path["keys"],
            "zone_file": self.path["zone"],
            "dns_timeout": "2s",
            "archive": "on",
            "archive_dir": self.path["archive"],
            "log": "stderr",
        }
        values.update(self.settings)
        with open(self.path["hanaper.conf"], "w") as out:
            for name, value in values.items():
                if value is not None:
                    out.write(f"{name} = {value}\n")

    def write_zone(self):
        with open(self.path["zone"], "w") as out:
            out.write(self.zone)

    def make_key(self, domain, selector, kind, folder):
        """A key as `hanaper key generate` makes it, published in the zone."""
        conf = self.path["hanaper.conf"]
        if folder != "keys":
            conf = os.path.join(self.top, "foreign.conf")
            with open(conf, "w") as out:
                out.write(f"key_dir = {self.path[folder]}\n")
        self.hanaper("key", "generate", domain, "--selector", selector,
                     "--type", kind, conf=conf)
        text = self.hanaper("key", "dns", domain, conf=conf).stdout.decode()
        self.zone += published(text, f"{selector}._domainkey.{domain}")

    # ---- the command ----

    def hanaper(self, *words, data=b"", statuses=(0,), conf=None):
        argv = [os.environ["HANAPER"], *words]
        if words[0] in ("archive", "key"):
            argv = [argv[0], *words[:2], "-c",
                    conf or self.path["hanaper.conf"], *words[2:]]
        done = subprocess.run(argv, input=data, capture_output=True)
        if done.returncode not in statuses:
            raise AssertionError(
                f"{' '.join(argv)}: exit {done.returncode}: "
                + (done.stderr or done.stdout).decode(errors="replace"))
        return done

    def search(self, query):
        """The archive's hits as a list of objects."""
        out = self.hanaper("archive", "search", "--json", "--limit", "10000",
                           query, statuses=(0, 1)).stdout.decode()
        return [json.loads(line) for line in out.splitlines() if line]

    def raw(self, ident):
        return self.hanaper("archive", "show", "--raw", str(ident)).stdout

    def contents(self, query):
        """The bytes of all messages found, by `archive export`."""
        with tempfile.TemporaryDirectory(dir=self.top) as folder:
            self.hanaper("archive", "export", "--to", folder, query)
            out = []
            for top, _, names in os.walk(folder):
                for name in (n for n in names if n.endswith(".eml")):
                    with open(os.path.join(top, name), "rb") as raw:
                        out.append(raw.read())
            return out

    def explain(self, ident):
        """What `hanaper explain` says of a message, awaited: the MTA has its
        answer before the decision is written down."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            done = self.hanaper("explain", "-c", self.path["hanaper.conf"],
                                ident, statuses=(0, 66))
            if done.returncode == 0:
                return done.stdout.decode(errors="surrogateescape")
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.05)

    # ---- the daemon ----

    def start(self, milters=None):
        self.start_daemon()
        self.mta.start(milters or self.listen()[1])

    def start_daemon(self):
        self._log = open(self.path["daemon.log"], "ab")
        self.daemon = subprocess.Popen(
            [os.environ["HANAPERD"], "-f", "-c", self.path["hanaper.conf"]],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            cwd="/", start_new_session=True)
        self.wait_ready()

    def wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.daemon.poll() is not None:
                raise AssertionError(
                    f"hanaperd ended with {self.daemon.returncode}: "
                    + self.log_tail())
            if time.monotonic() > deadline:
                raise AssertionError("hanaperd does not listen: "
                                     + self.log_tail())
            time.sleep(0.05)

    def _answers(self):
        """Whether a milter negotiation is answered: the process behind the
        socket is there, not only the socket."""
        where = self.listen()[0]
        try:
            if self.kind == "unix":
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(2)
                s.connect(where.partition(":")[2])
            else:
                s = socket.create_connection(("127.0.0.1", self.port), 2)
            with s:
                # SMFIC_OPTNEG: version 6, all actions, all steps
                s.sendall(b"\0\0\0\x0dO" + b"\0\0\0\x06" + b"\0\0\x01\xff"
                          + b"\0\x1f\xff\xff")
                return len(s.recv(5)) > 0
        except OSError:
            return False

    def processes(self):
        """pid → command line of hanaperd's children."""
        out = {}
        with open(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children"
                  ) as text:
            for pid in map(int, text.read().split()):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as line:
                        out[pid] = line.read().replace(b"\0", b" ").decode()
                except OSError:
                    pass
        return out

    def role(self, word):
        """The pid of the child whose command line names the role."""
        found = [pid for pid, line in self.processes().items() if word in line]
        if len(found) != 1:
            raise AssertionError(f"no {word}: {self.processes()}")
        return found[0]

    def signal(self, number):
        self.daemon.send_signal(number)

    def log_tail(self, lines=25):
        try:
            with open(self.path["daemon.log"], errors="replace") as text:
                return "".join(text.readlines()[-lines:])
        except OSError:
            return ""

    def log(self):
        with open(self.path["daemon.log"], errors="replace") as text:
            return text.read()

    def stop_daemon(self):
        """Ask it to drain; its exit status."""
        if self.daemon is None:
            return None
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
                raise AssertionError("hanaperd did not stop: "
                                     + self.log_tail())
        status, self.daemon = self.daemon.returncode, None
        self._log.close()
        return status

    def stop(self):
        try:
            self.mta.stop()
            self.stop_daemon()
        finally:
            if os.environ.get("E2E_KEEP"):
                print(f"# kept {self.top}")
            else:
                shutil.rmtree(self.top, ignore_errors=True)

    # ---- mail ----

    @staticmethod
    def mail(sender, subject, body=b"Hello\r\n", to="user@example.org",
             extra=b""):
        """A plain message, CRLF."""
        ident = f"{time.time_ns()}.{os.getpid()}"
        head = (f"From: {sender}\r\nTo: {to}\r\nSubject: {subject}\r\n"
                f"Date: Mon, 30 Nov 2026 12:00:00 +0000\r\n"
                f"Message-ID: <{ident}@test.example>\r\n").encode()
        return head + extra + b"\r\n" + body

    def key(self, domain, selector="s1"):
        folder = "keys" if domain == OURS else "foreign"
        return os.path.join(self.path[folder], domain, selector + ".pem")

    def signed(self, raw, domain=SENDER_DOMAIN, selector="s1", *options,
               key=None):
        """The message with a signature by `hanaper sign` on top."""
        return self.hanaper("sign", "--domain", domain, "--selector",
                            selector, "--key", key or self.key(domain),
                            *options, "-", data=raw).stdout

    def verify(self, raw, *options):
        """What `hanaper verify --json` says of a message."""
        out = self.hanaper("verify", "--json", "--zone", self.path["zone"],
                           *options, "-", data=raw, statuses=(0, 1)).stdout
        return json.loads(out)

    def receive(self, raw, sender="news@sender.example",
                to=("user@example.org",), client=SENDER):
        """Send from outside; the delivered copy."""
        return self.mta.delivered(self.mta.send(raw, sender, list(to),
                                                client=client))

    def sent(self, raw, sender="jo@example.org", to=("you@remote.example",)):
        """Send from a trusted network; the delivered copy."""
        return self.mta.delivered(self.mta.send(raw, sender, list(to)))


def published(text, name):
    """The zone-file line of one key out of what `key dns` prints."""
    for block in re.findall(
            r"^(\S+)[^\n\"(]*\bTXT\b\s*\(?((?:\s*\"[^\"]*\")+)", text, re.M):
        if block[0].rstrip(".") == name:
            strings = " ".join(re.findall(r'"[^"]*"', block[1]))
            return f"{name} TXT {strings}\n"
    raise AssertionError(f"no record of {name} in: {text}")


def results(raw):
    """Our Authentication-Results of a delivered copy as {method: [words]}."""
    out = {}
    for value in postfix.values(raw, "Authentication-Results"):
        ident, _, rest = value.partition(";")
        if ident.strip() != AUTHSERV:
            continue
        for part in rest.split(";"):
            m = re.match(r"\s*([a-z-]+)\s*=\s*([a-z]+)", part)
            if m:
                out.setdefault(m[1], []).append(m[2])
    return out
