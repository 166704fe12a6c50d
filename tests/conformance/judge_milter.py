"""Whole milter sessions: milter-e2e, milter-sign, milter-verify. Each works on
a hanaperd of its own over a unix socket, with a configuration made from what
the source configures."""
import grp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import tools
from judge_dkim import tags
from tools import Broken, helper, zone

sys.path.insert(0, os.path.join(tools.HERE, "..", "milter"))
from milter_client import Closed, Milter  # noqa: E402

START_SECONDS = 20
# The other methods in the sources' fields are their own extras.
METHODS = ("spf", "dkim", "dmarc", "iprev", "arc")
_daemons = {}
_lock = threading.Lock()


class Daemon:
    def __init__(self, settings, keys=(), table=None, sections=""):
        self.top = tempfile.mkdtemp(dir=tools.place())
        self.socket = os.path.join(self.top, "run", "milter.sock")
        for name in ("run", "state", "keys"):
            os.mkdir(os.path.join(self.top, name), 0o700)
        # Keys that a sign table names stand outside key_dir.
        self.keys = os.path.join(self.top, "table-keys" if table else "keys")
        for domain, selector, pem in keys:
            self._key(domain, selector, pem)
        group = grp.getgrgid(os.getegid()).gr_name
        values = {"listen": f"unix:{self.socket} group={group}",
                  "state_dir": f"{self.top}/state",
                  "key_dir": f"{self.top}/keys", "log": "stderr",
                  "require_published_key": "no"}
        if os.geteuid() == 0:
            # hanaperd does not run as root
            values["user"] = "nobody"
            for folder in (tools.place(), self.top):
                os.chmod(folder, 0o755)
            shutil.chown(os.path.join(self.top, "state"), "nobody")
        if table:
            with open(f"{self.top}/table", "w") as out:
                out.write(table.replace("KEYS", self.keys))
            values["sign_table"] = f"{self.top}/table"
        values.update(settings)
        with open(f"{self.top}/conf", "w") as out:
            out.writelines(f"{k} = {v}\n" for k, v in values.items())
            out.write(sections)
        self.log = open(f"{self.top}/log", "wb")
        self.process = subprocess.Popen(
            [tools.program("hanaperd", "HANAPERD"), "-f", "-c",
             f"{self.top}/conf"], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        self._wait()

    def _key(self, domain, selector, pem):
        folder = os.path.join(self.keys, domain)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        fd = os.open(os.path.join(folder, selector + ".pem"),
                     os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(fd, "w") as out:
            out.write(pem)

    def _wait(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                mta = Milter(self.socket)
                mta.negotiate()
                mta.close()
                return
            except (OSError, Closed):
                if self.process.poll() is not None or \
                        time.monotonic() > deadline:
                    self.stop()
                    with open(f"{self.top}/log", errors="replace") as text:
                        raise Broken("hanaperd: " + text.read()[-400:])
                time.sleep(0.05)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def shared(key, make):
    """One daemon for all cases of one configuration."""
    with _lock:
        if key not in _daemons:
            _daemons[key] = make()
        return _daemons[key]


def done():
    for daemon in _daemons.values():
        daemon.stop()
    _daemons.clear()


class Answer:
    """What the MTA was told at the end: the last command's packets."""

    def __init__(self, packets):
        self.command, self.data = packets[-1]
        self.edits = packets[:-1]

    def accepted(self):
        return self.command in (b"a", b"c")

    def refused(self):
        return self.command == b"r" or (self.command == b"y"
                                        and self.data[:1] == b"5")

    def reply(self):
        return (self.command + b" " + self.data).decode(errors="replace")

    def inserted(self, name):
        """Values of the fields of this name that were added."""
        out = []
        for command, data in self.edits:
            if command not in (b"h", b"i"):
                continue
            field, value = data[4 if command == b"i" else 0:].split(b"\0")[:2]
            if field.decode().lower() == name.lower():
                out.append(value.decode(errors="replace").strip())
        return out


def session(daemon, i, raw):
    mta = Milter(daemon.socket, timeout=60)
    try:
        mta.negotiate()
        name = i.get("hostname", "localhost")
        steps = [
            lambda: mta.connect(name, None if i["ip"] == "unspec" else i["ip"],
                                j="mx.example.org"),
            lambda: mta.helo(i.get("helo", name)),
            lambda: mta.message(f"<{i['mail_from']}>",
                                [f"<{i.get('rcpt_to', 'r@example.net')}>"],
                                *_parts(raw)),
        ]
        for step in steps:
            packets = step()
            if packets and packets[-1][0] != b"c":
                break
        return Answer(packets)
    finally:
        mta.close()


def _parts(raw):
    """([(name, value with LF folds)], body)"""
    head, _, body = raw.partition(b"\r\n\r\n")
    fields = []
    for line in re.split(rb"\r?\n(?![ \t])", head):
        name, colon, value = line.partition(b":")
        if colon:
            fields.append((name.rstrip(b" \t").decode("latin-1"),
                           value.replace(b"\r\n", b"\n").decode("latin-1")))
    return fields, body


def _crlf_header(raw):
    """In these messages folds may be bare LF, as a milter sees them."""
    head, gap, body = raw.partition(b"\r\n\r\n")
    return re.sub(rb"\r?\n", b"\r\n", head) + gap + body


def results(value):
    """{method: [result...]} of our field; of SPF the MAIL FROM identity, or
    HELO's when there is no other."""
    out = {}
    for part in value.split(";")[1:]:
        found = re.match(r"\s*([a-z-]+)\s*=\s*([a-z]+)", part)
        if found:
            out.setdefault(found[1], []).append((found[2], part))
    spf = out.get("spf", [])
    mail = [s for s in spf if "smtp.mailfrom" in s[1]]
    if spf:
        out["spf"] = mail[:1] or spf[:1]
    return {method: [word for word, _ in found]
            for method, found in out.items()}


# ---- Authentication Milter ----

def e2e_states_nothing(case):
    return case["kind"] == "milter-e2e" and not case["expect"]["results"] \
        and "reject" not in case["description"].lower()


# dmarc_reject trusts this client, whatever DMARC says.
TRUSTED = """
[override forwarder]
client = 99.123.123.123
dmarc = note
reason = a trusted forwarder
"""


def _e2e_daemon(folder, case):
    path = os.path.join(folder, case["dns_file"])
    rejects = case["config"].startswith("dmarc_reject")

    def make():
        with open(path, encoding="utf-8") as text:
            records = json.load(text)
        return Daemon({"zone_file": zone(records), "mode": "verify",
                       "multi_from": "evaluate",
                       "dmarc": "reject" if rejects else "note"},
                      sections=TRUSTED if rejects else "")
    return shared((path, rejects), make)


def e2e(folder, case):
    facts = dict(case["input"])
    # The source changes these by its setting ip_map before it evaluates.
    mapped = re.search(r"client address to (\S+) and the HELO name to (\S+)",
                       case.get("note", ""))
    if mapped:
        facts.update(ip=mapped[1], helo=mapped[2], hostname=mapped[2])
    answer = session(_e2e_daemon(folder, case), facts,
                     tools.message(folder, case))
    wanted = case["expect"]["results"]
    if not wanted:
        return [] if answer.refused() \
            else [f"reply is {answer.reply()}, not a refusal"]
    if not answer.accepted():
        return [f"reply is {answer.reply()}"]
    fields = answer.inserted("Authentication-Results")
    if len(fields) != 1:
        return [f"{len(fields)} fields"]
    got = results(fields[0])
    return [f"{method} is {got.get(method)}, not {wanted[method]}"
            for method in METHODS
            if method in wanted and got.get(method) != wanted[method]]


# ---- OpenDKIM ----

def _settings(case):
    """The source's configuration, translated."""
    conf = {}
    for line in case["opendkim_conf"]:
        name, _, value = line.partition("\t")
        conf[name.lower()] = value.strip()
    out = {"mode": "verify" if conf.get("mode") == "v" else "sign",
           "zone_file": zone(case["dns"]), "arc": "off", "spf": "no",
           "dmarc": "off",
           "sign_headers": "From Date Subject",
           "canonicalization": conf.get("canonicalization", "simple/simple")}
    if "signaturettl" in conf:
        out["signature_lifetime"] = conf["signaturettl"] + "s"
    return out


def _verifies(case):
    return any(re.match(r"Mode\s+v$", line.strip())
               for line in case["opendkim_conf"])


def sign(folder, case):
    # Two sessions of the source's that only verify are filed under this kind.
    if _verifies(case):
        return verify(folder, case)
    wanted = [re.sub(r"\s", "", w) for w in case["expect"]["must_contain"]]
    pem = case["private_key_pem"]
    pairs, domain = [], None
    for word in wanted:
        if word.startswith("d="):
            domain = word[2:]
        elif word.startswith("s="):
            pairs.append((domain, word[2:]))
    keys = [(d, s, pem) for d, s in pairs]
    table = "".join(f"* d={d} s={s} key=KEYS/{d}/{s}.pem\n" for d, s in pairs)
    # Without tables the folder of the author's domain says who signs.
    tables = any(line.startswith("SigningTable")
                 for line in case["opendkim_conf"])
    raw = _crlf_header(tools.message(folder, case))
    daemon = Daemon(_settings(case), keys, table if tables else None)
    try:
        answer = session(daemon, case["input"], raw)
    finally:
        daemon.stop()
    if not answer.accepted():
        return [f"reply is {answer.reply()}"]
    fields = answer.inserted("DKIM-Signature")
    if len(fields) != len(pairs):
        return [f"{len(fields)} signatures, not {len(pairs)}"]
    out = _lacking(fields, wanted, raw)
    head = b"".join(b"DKIM-Signature: " + f.replace("\n", "\r\n").encode()
                    + b"\r\n" for f in fields)
    zone_file = zone([{"name": f"{s}._domainkey.{d}", "type": "TXT",
                       "value": "v=DKIM1; p=" + _public(pem)}
                      for d, s in pairs])
    for got in helper("dkim-verify", head + raw, zone=zone_file,
                      line_ends="crlf")["signatures"]:
        if got["result"] != "pass":
            out.append(f"our signature is {got['result']} ({got['reason']})")
    return out


def _public(pem):
    done = subprocess.run(["openssl", "pkey", "-pubout", "-outform", "DER"],
                          input=pem.encode(), capture_output=True)
    if done.returncode:
        raise Broken("openssl: " + done.stderr.decode())
    import base64
    return base64.b64encode(done.stdout).decode()


def _lacking(fields, wanted, raw):
    """Tags must be equal; of h= the names that are present, which we write in
    lower case and once more to oversign."""
    present = set(re.findall(r"(?m)^([!-9;-~]+):",
                             raw.decode("latin-1").lower()))
    seen = [tags(f) for f in fields]
    out = []
    for word in wanted:
        name, _, value = word.partition("=")
        for mine in seen:
            got = mine.get(name)
            if name == "h":
                names = [n for n in dict.fromkeys((got or "").split(":"))
                         if n in present]
                if names == value.lower().split(":"):
                    break
            elif got is not None and value in ("", got):
                break
        else:
            out.append(f"no {word} in {fields}")
    return out


def verify(folder, case):
    raw = _crlf_header(tools.message(folder, case))
    daemon = Daemon(_settings(case))
    try:
        answer = session(daemon, case["input"], raw)
    finally:
        daemon.stop()
    expect, out = case["expect"], []
    refused = expect["final_reply"] == "SMFIR_REPLYCODE"
    if answer.accepted() == refused:
        out.append(f"reply is {answer.reply()}, not {expect['final_reply']}")
    fields = answer.inserted("Authentication-Results")
    if expect["header_added"] == "Authentication-Results" and not fields:
        out.append("no field was added")
    if expect["header_added"] == "no Authentication-Results" and fields:
        out.append(f"added {fields}")
    for word in expect["must_contain"]:
        # The id is the MTA's, which a script did not give.
        if fields and word != "unknown-host;" and word not in fields[0]:
            out.append(f"no {word} in {fields[0]}")
    return out


KINDS = {"milter-e2e": e2e, "milter-sign": sign, "milter-verify": verify}
