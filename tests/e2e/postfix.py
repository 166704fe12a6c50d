"""A private Postfix on loopback: own configuration, queue and data folder,
a free high port, nothing of the system's touched. As with Debian's own
master.cf, smtpd, cleanup and most others run chrooted in the queue folder;
mail to any recipient is delivered by virtual(8) into one Maildir.

    with Postfix(top) as mta:         # top: an empty folder of root's
        mta.start("unix:hanaper/milter.sock")
        qid = mta.send(raw, "a@example.org", ["b@example.net"])
        copy = mta.delivered(qid)

Needs root (chroot) and the packages postfix and its users. `why_not()` says
what is missing. Used by contrib/try and by the tests beside it.
"""
import json
import os
import pwd
import re
import shutil
import smtplib
import socket
import subprocess
import time

# Debian's chroot column: everything but these is chrooted.
NOT_CHROOTED = {"qmgr", "proxymap", "proxywrite", "local", "virtual",
                "postlog"}
# name, private, wake-up, process limit, program: Debian's list.
SERVICES = """
pickup n 60 1 pickup
cleanup n - 0 cleanup
qmgr n 300 1 qmgr
tlsmgr - 1000? 1 tlsmgr
rewrite - - - trivial-rewrite
bounce - - 0 bounce
defer - - 0 bounce
trace - - 0 bounce
verify - - 1 verify
flush n 1000? 0 flush
proxymap - - - proxymap
proxywrite - - 1 proxymap
smtp - - - smtp
relay - - - smtp
showq n - - showq
error - - - error
retry - - - error
discard - - - discard
local - - - local
virtual - - - virtual
lmtp - - - lmtp
anvil - - 1 anvil
scache - - 1 scache
"""
# What programs inside the chroot look for.
CHROOT_FILES = ("resolv.conf", "services", "hosts", "nsswitch.conf",
                "host.conf", "localtime")
START_SECONDS = 30
DELIVERY_SECONDS = 60


def why_not():
    """Why no private Postfix can be run here, or None."""
    if os.geteuid() != 0:
        return "needs root for Postfix's chroot"
    if not shutil.which("postfix", path=os.environ["PATH"] + ":/usr/sbin"):
        return "Postfix is not installed"
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Refused(Exception):
    """The SMTP server said no: .code and .text."""

    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code, self.text = code, text


class Postfix:
    def __init__(self, top, settings=None, services=()):
        """`services`: lines more for master.cf."""
        self.top = top
        self.services = services
        self.etc = os.path.join(top, "etc")
        self.queue = os.path.join(top, "queue")
        self.data = os.path.join(top, "data")
        self.mail = os.path.join(top, "mail")
        self.log = os.path.join(top, "maillog")
        self.port = free_port()
        self.settings = settings or {}
        self.running = False
        self._make_folders()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- the instance ----

    def _make_folders(self):
        owner = pwd.getpwnam("postfix")
        nobody = pwd.getpwnam("nobody")
        for folder in (self.etc, self.queue, self.data, self.mail,
                       os.path.join(self.queue, "etc")):
            os.makedirs(folder, mode=0o755, exist_ok=True)
        os.chown(self.data, owner.pw_uid, owner.pw_gid)
        os.chown(self.mail, nobody.pw_uid, nobody.pw_gid)
        for name in CHROOT_FILES:
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, os.path.join(self.queue, "etc"))

    def _configure(self, milter):
        nobody = pwd.getpwnam("nobody")
        settings = {
            "compatibility_level": "3.6",
            "queue_directory": self.queue,
            "data_directory": self.data,
            "maillog_file": self.log,
            "maillog_file_prefixes": self.top,
            "myhostname": "mx.example.org",
            "enable_long_queue_ids": "yes",
            "inet_interfaces": "127.0.0.1",
            "inet_protocols": "ipv4",
            "mynetworks": "127.0.0.0/8",
            "smtpd_authorized_xclient_hosts": "127.0.0.0/8",
            # Every recipient is ours, and all go to one Maildir.
            "mydestination": "",
            "alias_maps": "",
            "virtual_mailbox_domains": "static:all",
            "virtual_mailbox_base": self.mail,
            "virtual_mailbox_maps": "static:inbox/",
            "virtual_mailbox_limit": "0",
            "virtual_minimum_uid": "1",
            "virtual_uid_maps": f"static:{nobody.pw_uid}",
            "virtual_gid_maps": f"static:{nobody.pw_gid}",
            "message_size_limit": "120000000",
            "header_size_limit": "8000000",
            "in_flow_delay": "0",
            "smtpd_error_sleep_time": "0",
            "smtpd_milters": milter or "",
            "non_smtpd_milters": "",
            "milter_default_action": "tempfail",
            "biff": "no",
        }
        settings.update(self.settings)
        with open(os.path.join(self.etc, "main.cf"), "w") as out:
            for name, value in settings.items():
                out.write(f"{name} = {value}\n")
        with open(os.path.join(self.etc, "master.cf"), "w") as out:
            out.write(f"127.0.0.1:{self.port} inet n - y - - smtpd\n")
            for line in SERVICES.strip().splitlines():
                name, private, wake, limit, program = line.split()
                chroot = "n" if name in NOT_CHROOTED else "y"
                unpriv = "n" if name in ("local", "virtual") else "-"
                out.write(f"{name} unix {private} {unpriv} {chroot} {wake} "
                          f"{limit} {program}\n")
            out.write("postlog unix-dgram n - n - 1 postlogd\n")
            for line in self.services:
                out.write(line + "\n")

    def _postfix(self, *command):
        return subprocess.run(
            ["postfix", "-c", self.etc, *command], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin"))

    def start(self, milter=None):
        self._configure(milter)
        done = self._postfix("start")
        if done.returncode != 0:
            raise RuntimeError(f"postfix start: {done.stdout}{self.tail()}")
        self.running = True
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(
                    ("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError("Postfix does not listen: "
                                       + self.tail())
                time.sleep(0.05)

    def reload(self, milter):
        """Another milter; takes effect for new sessions."""
        self._configure(milter)
        done = self._postfix("reload")
        if done.returncode != 0:
            raise RuntimeError(f"postfix reload: {done.stdout}")

    def stop(self):
        if self.running:
            self.running = False
            self._postfix("stop")

    def tail(self, lines=15):
        try:
            with open(self.log, errors="replace") as text:
                return "".join(text.readlines()[-lines:])
        except OSError:
            return ""

    # ---- mail in ----

    def session(self, client=None, login=None, timeout=120):
        """An SMTP session; `client` (ip, reverse name, helo) makes Postfix
        take us for that host, `login` for an authenticated user."""
        smtp = smtplib.SMTP("127.0.0.1", self.port, timeout=timeout,
                            local_hostname="client.example.org")
        self._greet(smtp, "client.example.org")
        words = []
        if client:
            ip, name, _ = client
            if ":" in ip:
                ip = "IPV6:" + ip
            words += [f"NAME={name or '[UNAVAILABLE]'}", f"ADDR={ip}"]
        if login:
            words += [f"LOGIN={login}"]
        if words:
            code, text = smtp.docmd("XCLIENT", " ".join(words))
            if code != 220:
                raise Refused(code, text.decode())
            self._greet(smtp, client[2] if client else "client.example.org")
        return smtp

    @staticmethod
    def _greet(smtp, name):
        code, text = smtp.ehlo(name)
        if code >= 400:
            smtp.close()
            raise Refused(code, text.decode(errors="replace"))

    @staticmethod
    def submit(smtp, raw, sender, recipients):
        """One transaction; returns the queue id Postfix acknowledged."""
        steps = [lambda: smtp.mail(sender)]
        steps += [lambda r=r: smtp.rcpt(r) for r in recipients]
        for step in steps:
            code, text = step()
            if code >= 400:
                if code != 421:  # which ends the session
                    smtp.rset()
                raise Refused(code, text.decode(errors="replace"))
        code, text = smtp.data(raw)
        text = text.decode(errors="replace")
        if code >= 400:
            raise Refused(code, text)
        return re.search(r"queued as (\S+)", text)[1]

    def send(self, raw, sender, recipients, client=None, login=None):
        with self.session(client, login) as smtp:
            return self.submit(smtp, raw, sender, recipients)

    def sendmail(self, path):
        """Make `path` a sendmail command of this instance, for root."""
        with open(path, "w") as out:
            out.write(f'#!/bin/sh\nexec /usr/sbin/sendmail -C {self.etc} "$@"\n')
        os.chmod(path, 0o755)

    def queued(self):
        """Queue ids of what is not delivered yet."""
        done = subprocess.run(
            ["/usr/sbin/postqueue", "-c", self.etc, "-j"],
            capture_output=True, text=True)
        return [json.loads(line)["queue_id"]
                for line in done.stdout.splitlines()]

    def flush(self):
        """Try again now what was deferred."""
        subprocess.run(["/usr/sbin/postqueue", "-c", self.etc, "-f"],
                       check=True, capture_output=True)

    def wait_empty(self):
        deadline = time.monotonic() + DELIVERY_SECONDS
        while self.queued():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.queued()} stay: {self.tail()}")
            time.sleep(0.05)

    # ---- mail out ----

    def delivered(self, qid):
        """The first delivered copy of a queue id, with LF line ends, as
        virtual(8) wrote it; waits for it."""
        return self.copies(qid, 1)[0]

    def copies(self, qid, count):
        new = os.path.join(self.mail, "inbox", "new")
        mark = re.compile(rb"^\tby \S+ \([^)]*\) with \S+ id "
                          + qid.encode() + rb"\b", re.M)
        deadline = time.monotonic() + DELIVERY_SECONDS
        while True:
            found = []
            for name in (os.listdir(new) if os.path.isdir(new) else []):
                with open(os.path.join(new, name), "rb") as mail:
                    raw = mail.read()
                if mark.search(raw.split(b"\n\n", 1)[0] + b"\n"):
                    found.append(raw)
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise RuntimeError(f"{qid} was not delivered: {self.tail()}")
            time.sleep(0.05)


def fields(raw):
    """The header of a message as (name, raw value) pairs, in order."""
    head = raw.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0]
    out = []
    for line in re.split(rb"\n(?![ \t])", head):
        name, colon, value = line.partition(b":")
        if colon:
            out.append((name.decode(errors="replace"), value))
    return out


def values(raw, name):
    """Unfolded values of all fields of one name, top down."""
    return [re.sub(rb"\n[ \t]+", b" ", value).strip().decode("utf-8", "replace")
            for n, value in fields(raw) if n.lower() == name.lower()]
