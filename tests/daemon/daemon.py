"""A hanaperd of the tests' own: folders, a key, a zone file, a log.

    with Daemon(max_sessions=3) as d:
        m = d.connect()

As root the daemon's user is nobody, else everything runs as we do."""
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path[:0] = [TESTS, os.path.join(TESTS, "milter")]
sys.dont_write_bytecode = True
from milter_client import Milter, wait_until  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
HANAPERD = os.environ.get("HANAPERD", "./hanaperd")

ZONE = """\
sender.example TXT "v=spf1 ip4:192.0.2.25 -all"
_dmarc.sender.example TXT "v=DMARC1; p=none"
25.2.0.192.in-addr.arpa PTR mail.sender.example
mail.sender.example A 192.0.2.25
"""
INBOUND = {"name": "mail.sender.example", "ip": "192.0.2.25"}
OUTBOUND = {"name": "localhost", "ip": "127.0.0.1"}


def message(author, subject="x"):
    return {"sender": f"<{author}>",
            "headers": (("From", f" {author}"), ("To", " b@example.net"),
                        ("Date", " Mon, 30 Nov 2026 12:00:00 +0000"),
                        ("Message-ID", " <1@example.org>"),
                        ("Subject", f" {subject}"))}


def inserted(reply, name):
    """The values inserted for a field name, LF folds and all."""
    prefix = name.encode() + b"\0"
    return [data[4 + len(prefix):-1].decode() for kind, data in reply
            if kind == b"i" and data[4:].startswith(prefix)]


def is_signed(reply, domain="example.org"):
    return any(f"d={domain};" in v for v in inserted(reply, "DKIM-Signature"))


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(p) for p in file.read().split()]
    except OSError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Daemon:
    def __init__(self, keys=("example.org",), start=True, **settings):
        self.top = tempfile.mkdtemp(prefix="hnd.")
        os.chmod(self.top, 0o755)
        self.conf = self.path("hanaper.conf")
        self.process = None
        self.log_at = 0
        self.notify = None
        self.settings = {
            "listen": f"unix:{self.path('run', 'milter.sock')}",
            "user": "nobody",
            "state_dir": self.path("state"),
            "key_dir": self.path("keys"),
            "archive": "on",
            "archive_dir": self.path("archive"),
            "zone_file": self.path("zone"),
            "log": "stderr",
            "require_published_key": "no",
            "authserv_id": "mx.example.org",
        } | settings
        if os.geteuid() == 0 and "group=" not in self.settings["listen"] \
                and self.settings["listen"].startswith("unix:"):
            self.settings["listen"] += " group=nogroup"
        self.write("zone", ZONE)
        os.mkdir(self.path("keys"), 0o750)
        for domain in keys:
            self.make_key(domain)
        self.configure()
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.top, ignore_errors=True)

    # -- files

    def path(self, *names):
        return os.path.join(self.top, *names)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def configure(self, **changes):
        """A setting of None is left out."""
        self.settings.update(changes)
        self.write("hanaper.conf", "".join(
            f"{name} = {value}\n" for name, value in self.settings.items()
            if value is not None))

    def make_key(self, domain, *args):
        subprocess.run([HANAPER, "key", "generate", domain, "--type",
                        "ed25519", "--key-dir", self.path("keys"), *args],
                       check=True, capture_output=True)

    def key_files(self, domain="example.org"):
        folder = self.path("keys", domain)
        return [os.path.join(folder, n) for n in sorted(os.listdir(folder))]

    # -- the process

    def spawn(self, *args):
        env = dict(os.environ)
        env.pop("NOTIFY_SOCKET", None)
        env.pop("JOURNAL_STREAM", None)
        if self.notify:
            env["NOTIFY_SOCKET"] = self.notify
        with open(self.path("log"), "ab") as log:
            return subprocess.Popen([HANAPERD, "-c", self.conf, *args],
                                    stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=env)

    def start(self):
        self.process = self.spawn("-f")
        self.wait_log("started, listening")

    def log(self):
        try:
            with open(self.path("log"), errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def wait_log(self, text, seconds=30):
        """Until `text` was logged since the last one waited for."""
        def found():
            at = self.log().find(text, self.log_at)
            if at < 0:
                if self.process is not None:
                    assert self.process.poll() is None, \
                        f"it ended: {self.log()}"
                return False
            self.log_at = at + len(text)
            return True
        try:
            wait_until(found, seconds)
        except AssertionError:
            raise AssertionError(
                f"no {text!r} in the log:\n{self.log()}") from None

    def roles(self):
        """{"signer": pid, "milter": pid} of those that run."""
        found = {}
        for pid in children(self.process.pid):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            for word in words:
                if word.startswith(b"--role="):
                    found[word[7:].decode()] = pid
        return found

    def hup(self):
        self.process.send_signal(signal.SIGHUP)

    def term(self, seconds=40):
        """Stop; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self):
        if self.process is None:
            return
        pids = list(self.roles().values())
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in pids:
            wait_until(lambda p=pid: not alive(p))

    # -- mail

    def address(self):
        listen = self.settings["listen"].split()[0]
        if listen.startswith("unix:"):
            return listen[5:]
        port, host = listen.split(":", 1)[1].split("@")
        return host.strip("[]"), int(port)

    def connect(self, timeout=20):
        return Milter(self.address(), timeout)

    def send(self, author="a@example.org", client=None, **kwargs):
        """One message over its own connection; the last reply."""
        m = self.connect()
        reply = m.open(**dict(client or OUTBOUND))
        if reply[-1][0] == b"c":
            reply = m.message(**message(author, **kwargs))
        m.quit()
        return reply


def free_port(host="127.0.0.1"):
    import socket
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def nobody():
    return pwd.getpwnam("nobody").pw_uid
