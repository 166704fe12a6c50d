#!/usr/bin/env python3
"""What is wrong at start is said in one clear line, with the exit status of
sysexits, by hanaperd, `hanaperd -t` and `hanaper check` alike."""
import grp
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import rig  # noqa: E402
import tap  # noqa: E402

EX_CONFIG = 78
USER = "nobody"
GROUP = grp.getgrgid(os.getegid()).gr_name
place = tempfile.TemporaryDirectory(prefix="hanaper-start.")
top = place.name


def path(name):
    return os.path.join(top, name)


def config(**changes):
    """A good configuration, changed: None leaves an option out. Gives the
    number of its lines."""
    values = {
        "listen": f"unix:{path('run/milter.sock')} group={GROUP}",
        "state_dir": path("state"), "key_dir": path("keys"),
        "zone_file": path("zone"), "archive": "on",
        "archive_dir": path("archive"), "log": "stderr",
    }
    if os.geteuid() == 0:
        values["user"] = USER
    values.update(changes)
    lines = [f"{k} = {v}" for k, v in values.items() if v is not None]
    with open(path("conf"), "w") as out:
        out.write("\n".join(lines) + "\n")
    return len(lines)


def prepare():
    for name in ("state", "keys", "archive", "run"):
        os.mkdir(path(name), 0o700)
    if os.geteuid() == 0:
        os.chmod(top, 0o755)
        for name in ("state", "archive"):
            shutil.chown(path(name), USER)
    with open(path("zone"), "w") as out:
        out.write('example.org TXT "v=spf1 -all"\n')


def start(*options):
    return subprocess.run(
        [os.environ["HANAPERD"], "-f", *options, "-c", path("conf")],
        capture_output=True, text=True, timeout=60)


def check_command():
    return subprocess.run(
        [os.environ["HANAPER"], "check", "-c", path("conf")],
        capture_output=True, text=True, timeout=60)


def wrong(status, *words):
    """All three refuse; one line has all the words."""
    for done in (start("-t"), start(), check_command()):
        text = done.stderr + done.stdout
        what = " ".join(map(str, done.args))
        if status is None:
            tap.check(done.returncode != 0, True, f"{what} fails")
        else:
            tap.check(done.returncode, status, f"{what}: {text} status")
        lines = [line for line in text.splitlines()
                 if all(word in line for word in words)]
        tap.check(len(lines) >= 1, True, f"{what}: line with {words} in "
                  f"{text!r}")


def unknown_option():
    last = config(archive_dri=path("archive"))
    wrong(EX_CONFIG, f"conf:{last}:", "archive_dri", "archive_dir")


def bad_value():
    config(dns_timeout="soon")
    wrong(EX_CONFIG, "dns_timeout", "soon")


def duplicate():
    last = config()
    with open(path("conf"), "a") as out:
        out.write("archive = off\n")
    wrong(EX_CONFIG, f"conf:{last + 1}:", "archive")


def missing_file():
    config()
    os.rename(path("conf"), path("gone"))
    wrong(EX_CONFIG, path("conf"))


def missing_key_folder():
    config(key_dir=path("nokeys"))
    wrong(None, path("nokeys"))


def open_key():
    config()
    subprocess.run([os.environ["HANAPER"], "key", "generate", "-c",
                    path("conf"), "example.net", "--selector", "s1",
                    "--type", "ed25519"], capture_output=True, check=True)
    key = path("keys/example.net/s1.pem")
    os.chmod(key, 0o644)
    try:
        wrong(None, "s1.pem")
    finally:
        os.chmod(key, 0o600)


def socket_folder():
    with open(path("file"), "w"):
        pass
    config(listen=f"unix:{path('file/milter.sock')} group={GROUP}")
    wrong(None, path("file"))


def socket_is_a_file():
    with open(path("run/file"), "w"):
        pass
    config(listen=f"unix:{path('run/file')} group={GROUP}")
    wrong(EX_CONFIG, path("run/file"), "is no socket")


def address_of_others():
    config(listen="inet:8891@192.0.2.1")
    wrong(EX_CONFIG, "listen: port 8891 of 192.0.2.1: Cannot assign")


def table_keys():
    """Keys that only the sign table names."""
    def table(key):
        with open(path("table"), "w") as out:
            out.write(f"example.net d=example.net s=s9 key={path(key)}\n")
        config(sign_table=path("table"))
    table("nokey.pem")
    wrong(EX_CONFIG, path("nokey.pem"), "No such file")
    with open(path("bad.pem"), "w") as out:
        out.write("no key\n")
    os.chmod(path("bad.pem"), 0o600)
    table("bad.pem")
    wrong(EX_CONFIG, path("bad.pem"), "no private key")
    os.chmod(path("bad.pem"), 0o644)
    wrong(EX_CONFIG, path("bad.pem"), "too open")


def table_without_key():
    with open(path("table"), "w") as out:
        out.write("* d=nokey.example\n")
    config(sign_table=path("table"))
    for done in (start("-t"), check_command()):
        tap.check(done.returncode, 0, f"{done.args} status")
        text = done.stdout + done.stderr
        tap.check("table:1" in text and "nokey.example" in text, True, text)


def deep_folders():
    """What start makes is no error before."""
    config(archive_dir=path("a/b/c"), state_dir=path("d/e/f"),
           listen=f"unix:{path('g/h/i')} group={GROUP}")
    for done in (start("-t"), check_command()):
        tap.check(done.returncode, 0, done.stdout + done.stderr)


def archive_folder():
    config(archive_dir=path("file/archive"))
    wrong(None, path("file/archive"))


def bad_zone():
    with open(path("badzone"), "w") as out:
        out.write("example.org NONSENSE x\n")
    config(zone_file=path("badzone"))
    wrong(None, "badzone:1")


def good():
    config()
    tap.check(start("-t").returncode, 0, "hanaperd -t")
    daemon = subprocess.Popen(
        [os.environ["HANAPERD"], "-f", "-c", path("conf")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(path("run/milter.sock"))
                    break
                except OSError:
                    time.sleep(0.05)
        else:
            raise AssertionError("no socket")
        daemon.send_signal(signal.SIGTERM)
        tap.check(daemon.wait(30), 0, "exit status")
    finally:
        daemon.kill()
        daemon.wait()


def usage():
    done = subprocess.run([os.environ["HANAPERD"], "--what"],
                          capture_output=True, text=True)
    tap.check(done.returncode, 64, "exit status")


reason = rig.programs()
if reason is None:
    prepare()
    config()
tap.run([
    ("unknown option: file, line, the nearest name, 78", unknown_option),
    ("bad value", bad_value),
    ("duplicate", duplicate),
    ("no configuration file", missing_file),
    ("no key folder", missing_key_folder),
    ("a key others can read", open_key),
    ("a socket that cannot be made", socket_folder),
    ("a socket where a file is", socket_is_a_file),
    ("an address that is not ours", address_of_others),
    ("keys of the sign table", table_keys),
    ("a line of the sign table without a key", table_without_key),
    ("folders that can be made", deep_folders),
    ("an archive that cannot be written", archive_folder),
    ("a bad zone file", bad_zone),
    ("and a good one starts and stops", good),
    ("usage", usage),
], reason, place.cleanup)
