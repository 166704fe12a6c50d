#!/usr/bin/env python3
"""Our signatures and seals through independent implementations, and theirs
through ours: dkimpy and Perl's Mail::DKIM. What is not installed is skipped,
case by case."""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HELPER = os.path.join(os.environ.get("BUILDDIR", "."),
                      "tests/conformance/helper")
PYTHON = "/usr/bin/python3"  # the one that has Debian's modules
DOMAIN = "football.example.com"

VECTORS = open(os.path.join(HERE, "vectors.h"), encoding="ascii").read()


def vector(name):
    text = re.search(re.escape(name) + r"\[\] =\n(.*?);\n", VECTORS, re.S)
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.group(1))) \
        .encode().decode("unicode_escape")


def define(name):
    text = re.search(r"#define " + name + r" (?:\\\n)?((?:.*\\\n)*.*)\n",
                     VECTORS)
    return "".join(re.findall(r'"([^"]*)"', text.group(1)))


RSA_PEM = vector("rfc8463_rsa_pem")
RSA_TXT = "v=DKIM1; k=rsa; p=" + define("RFC8463_RSA_P")
ED_SEED = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
ED_PEM = ("-----BEGIN PRIVATE KEY-----\n"
          "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
          "-----END PRIVATE KEY-----\n")
ED_TXT = "v=DKIM1; k=ed25519; p=" + define("RFC8463_ED25519_P")
KEYS = {"rsa": (RSA_PEM, RSA_TXT), "ed": (ED_PEM, ED_TXT)}

HEAD = (b"Received: from a by b; Fri, 11 Jul 2003 21:01:54 -0700\r\n"
        b"From: Joe SixPack <joe@football.example.com>\r\n"
        b"To:   Suzie Q\t<suzie@shopping.example.net>,\r\n"
        b" \t Bob <bob@shopping.example.net>  \r\n"
        b"SUBJECT:no blank\r\n"
        b"Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
        b"Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n")
MESSAGES = {
    "plain": HEAD + b"\r\nHi.\r\n\r\nWe lost the game.  Are you?\r\n",
    "blanks": HEAD + b"\r\n  Hi. \t \r\n\t\r\n a\t b \r\n \r\n\r\n\r\n",
    "8bit": HEAD + b"\r\nCaf\xc3\xa9 \xff\xfe\r\n.\r\n..x\r\n",
    "one line end": HEAD + b"\r\n\r\n",
    "long": HEAD + b"\r\n" + b"0123456789 abcdef  " * 5000 + b"\r\n",
}
CANONS = [(a, b) for a in ("relaxed", "simple") for b in ("relaxed", "simple")]


# ---- ours ----

def ours(kind, message, **options):
    args = [HELPER, kind]
    with tempfile.TemporaryDirectory() as folder:
        for name, value in options.items():
            if name in ("key", "zone"):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="ascii") as f:
                    f.write(value)
                value = path
            args += ["--" + name.replace("_", "-"), str(value)]
        out = subprocess.run(args + ["-"], input=message,
                             stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def zone(kind):
    return 's._domainkey.%s TXT "%s"\n' % (DOMAIN, KEYS[kind][1])


def our_signature(message, kind, header, body):
    answer = ours("dkim-sign", message, key=KEYS[kind][0], domain=DOMAIN,
                  selector="s", header_canon=header, body_canon=body,
                  clock=1700000000)
    return b"DKIM-Signature:" + answer["field"].encode() + b"\r\n" + message


def our_verdict(message, kind):
    return ours("dkim-verify", message, zone=zone(kind))["result"]


def our_seal(message):
    answer = ours("arc-sign", message, key=RSA_PEM, domain=DOMAIN,
                  selector="s", zone=zone("rsa"), authserv_id="mx.example",
                  results="spf=pass smtp.mailfrom=football.example.com",
                  clock=1700000000)
    if "refused" in answer:
        raise RuntimeError(answer["refused"])
    return b"".join(
        name.encode() + b":" + answer[name].encode() + b"\r\n"
        for name in ("ARC-Seal", "ARC-Message-Signature",
                     "ARC-Authentication-Results")) + message


def our_chain(message):
    answer = ours("arc-verify", message, zone=zone("rsa"))
    return "%s %s" % (answer["result"], answer["reason"] or "")


# ---- theirs: one process each that answers line by line, as starting one
# costs more than all its work ----

DKIMPY = r"""
import base64, dkim, json, sys
def verify(m, txt):
    good = dkim.verify(m, dnsfunc=lambda *a, **k: txt)
    return b"pass" if good else b"fail"
def sign(m, txt, key, alg, head, body):
    return dkim.sign(m, b"s", b"football.example.com", key,
                     canonicalize=(head, body), signature_algorithm=alg) + m
def arc_verify(m, txt):
    return dkim.arc_verify(m, dnsfunc=lambda *a, **k: txt)[0]
def arc_sign(m, txt, key):
    return b"".join(dkim.arc_sign(m, b"s", b"football.example.com", key,
                    b"mx.example", include_headers=[b"from", b"subject"])) + m
for line in sys.stdin:
    job, args = json.loads(line)
    try:
        out = globals()[job](*[base64.b64decode(a) for a in args])
    except Exception as e:
        out = repr(e).encode()
    print(base64.b64encode(out).decode(), flush=True)
"""

PERL = r"""
package Rr; sub type { 'TXT' } sub txtdata { $_[0][0] }
sub char_str_list { $_[0][0] }
package main;
use strict; use JSON::PP; use MIME::Base64; use Mail::DKIM::DNS;
use Mail::DKIM::Verifier; use Mail::DKIM::Signer; use Mail::DKIM::PrivateKey;
use Mail::DKIM::ARC::Verifier; use Mail::DKIM::ARC::Signer;
our $txt;
{ no warnings; *Mail::DKIM::DNS::query = sub { bless [$txt], 'Rr' }; }
sub key { (my $k = shift) =~ s/-----[^-]*-----|\s//g;
  Mail::DKIM::PrivateKey->load(Data => $k) }
sub feed { my ($d, $m) = @_; $d->PRINT($m); $d->CLOSE; $d }
my @who = (Domain => 'football.example.com', Selector => 's',
  Algorithm => 'rsa-sha256');
my %jobs = (
  verify => sub { feed(Mail::DKIM::Verifier->new, shift)->result },
  arc_verify => sub { feed(Mail::DKIM::ARC::Verifier->new, shift)->result },
  sign => sub { my ($m, $k, $method) = @_;
    my $s = feed(Mail::DKIM::Signer->new(@who, Method => $method,
      Key => key($k)), $m);
    (my $f = $s->signature->as_string) =~ s/\r?\n/\r\n/g; "$f\r\n$m" },
  arc_sign => sub { my ($m, $k) = @_;
    my $s = feed(Mail::DKIM::ARC::Signer->new(@who, SrvId => 'mx.example',
      Chain => 'ar', Key => key($k)), $m);
    my @f = $s->as_strings; s/\r?\n/\r\n/g for @f;
    join("\r\n", @f) . "\r\n$m" },
);
$| = 1;
while (my $line = <STDIN>) {
  my ($job, $args) = @{ decode_json($line) };
  my ($m, $t, @rest) = map { decode_base64($_) } @$args;
  $txt = $t;
  my $out = eval { $jobs{$job}->($m, @rest) } // "died: $@";
  print encode_base64($out, ''), "\n";
}
"""


class Server:
    """A foreign program that is asked line by line; started when needed."""

    def __init__(self, *command):
        self.command, self.process = command, None

    def ask(self, job, message, *args):
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True)
        words = [base64.b64encode(a if isinstance(a, bytes) else a.encode())
                 .decode() for a in (message,) + args]
        self.process.stdin.write(json.dumps([job, words]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer == "":
            raise RuntimeError("it died: " + self.command[0])
        return base64.b64decode(answer)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


SERVERS = {"dkimpy": Server(PYTHON, "-c", DKIMPY),
           "perl": Server("perl", "-e", PERL)}


def dkimpy(*question):
    return SERVERS["dkimpy"].ask(*question)


def perl(*question):
    return SERVERS["perl"].ask(*question)


def present(command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    except OSError:
        return False


# ---- cases: name, a function that gives what should be "pass" ----

def cases_dkim():
    for name, message in MESSAGES.items():
        for kind, (pem, txt) in KEYS.items():
            alg = "rsa-sha256" if kind == "rsa" else "ed25519-sha256"
            secret = pem if kind == "rsa" else ED_SEED
            needs = "dkimpy" if kind == "rsa" else "dkimpy-ed"
            for head, body in CANONS:
                label = "%s, %s, %s/%s" % (name, kind, head, body)

                def our(m=message, k=kind, h=head, b=body):
                    return our_signature(m, k, h, b)
                yield (needs, "dkimpy verifies ours: " + label,
                       lambda our=our, t=txt: dkimpy("verify", our(), t))
                yield (needs, "ours verifies dkimpy: " + label,
                       lambda m=message, a=(txt, secret, alg, head, body),
                       k=kind: our_verdict(dkimpy("sign", m, *a), k))
                if kind != "rsa":
                    continue
                yield ("perl", "Mail::DKIM verifies ours: " + label,
                       lambda our=our, t=txt: perl("verify", our(), t))
                yield ("perl", "ours verifies Mail::DKIM: " + label,
                       lambda m=message, a=(txt, pem, head + "/" + body):
                       our_verdict(perl("sign", m, *a), "rsa"))


RESULTS = b"Authentication-Results: mx.example; spf=pass; arc=%s\r\n"


def seal(who, message, status):
    """One more set on top. The others take the status from the results."""
    if who == "ours":
        return our_seal(message)
    for word in (b"none", b"pass"):
        message = message.replace(RESULTS % word, b"")
    return SERVERS[who].ask("arc_sign", RESULTS % status + message, RSA_TXT,
                            RSA_PEM)


def check_chain(message, who):
    if who == "ours":
        return our_chain(message)
    return SERVERS[who].ask("arc_verify", message, RSA_TXT)


def cases_arc():
    """Chains of up to three sealers, each validator over each."""
    chains = [("ours",), ("ours", "ours", "ours"), ("dkimpy",), ("perl",),
              ("dkimpy", "ours"), ("perl", "ours"), ("ours", "dkimpy"),
              ("ours", "perl"), ("perl", "dkimpy", "ours")]
    for chain in chains:
        for who in ("ours", "dkimpy", "perl"):
            others = [w for w in chain + (who,) if w != "ours"]
            if not others:
                continue

            def go(chain=chain, who=who):
                message, status = MESSAGES["plain"], b"none"
                for sealer in chain:
                    message, status = seal(sealer, message, status), b"pass"
                return check_chain(message, who)
            yield ("+".join(sorted(set(others))),
                   "ARC: %s validates %s" % (who, ", ".join(chain)), go)


def main():
    have = {
        "dkimpy": present([PYTHON, "-c", "import dkim"]),
        "dkimpy-ed": present([PYTHON, "-c", "import dkim, nacl.signing"]),
        "perl": present(["perl", "-MMail::DKIM::ARC::Signer", "-MJSON::PP",
                         "-e", "1"]),
    }
    number = failed = 0
    for needs, name, go in [*cases_dkim(), *cases_arc()]:
        number += 1
        missing = [n for n in needs.split("+") if not have[n]]
        if missing:
            print("ok %d - %s # SKIP no %s" % (number, name,
                                               ", ".join(missing)))
            continue
        try:
            got = go()
            got = got.decode() if isinstance(got, bytes) else got
            got = got.strip()
        except (RuntimeError, subprocess.CalledProcessError, OSError) as e:
            got = str(e)
        good = got == "pass"
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", number, name))
        if not good:
            for line in got.splitlines():
                print("# " + line)
    print("1..%d" % number)
    for server in SERVERS.values():
        server.close()
    return 1 if failed else 0


sys.exit(main())
