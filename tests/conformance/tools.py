"""What the judges need: the programs under test, zone files made from a
case's `dns`, messages as an SMTP server would have delivered them."""
import contextlib
import json
import os
import subprocess
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_SECONDS = 60

_place = None
_zones = {}
_lock = threading.Lock()


class Broken(Exception):
    """A program failed where it must answer."""


@contextlib.contextmanager
def workplace():
    global _place
    with tempfile.TemporaryDirectory(prefix="hanaper-conformance.") as place:
        _place = place
        yield
        _place = None


def place():
    return _place


def program(name, variable=None):
    if variable and os.environ.get(variable):
        return os.environ[variable]
    for top in (os.environ.get("BUILDDIR"), os.getcwd(),
                os.path.join(HERE, "..", "..")):
        if top and os.access(os.path.join(top, name), os.X_OK):
            return os.path.join(top, name)
    raise SystemExit(f"{name} is not built: make {name}, or set BUILDDIR")


def call(argv, data, statuses=(0,)):
    done = subprocess.run(argv, input=data, capture_output=True,
                          timeout=RUN_SECONDS)
    if done.returncode not in statuses:
        raise Broken(f"{os.path.basename(argv[0])} {argv[1]}: exit "
                     f"{done.returncode}: "
                     + done.stderr.decode(errors="replace").strip()[-500:])
    return done


def helper_raw(kind, *inputs, **options):
    """The C helper's output. Each input becomes a FILE: one is piped in,
    several are written to files."""
    argv = [program("tests/conformance/helper"), kind]
    for name, value in options.items():
        if value is not None and value != "":
            # An argument cannot hold a NUL; no name or address does.
            argv += ["--" + name.replace("_", "-"),
                     os.fsencode(str(value)).replace(b"\0", b"?")]
    if len(inputs) <= 1:
        return call(argv + ["-"] * len(inputs), b"".join(inputs)).stdout
    with tempfile.TemporaryDirectory(dir=_place) as folder:
        for i, data in enumerate(inputs):
            path = os.path.join(folder, str(i))
            with open(path, "wb") as out:
                out.write(data)
            argv.append(path)
        return call(argv, b"").stdout


def helper(kind, *inputs, **options):
    return json.loads(helper_raw(kind, *inputs, **options))


def hanaper(command, *args, data=b"", statuses=(0,)):
    return call([program("hanaper", "HANAPER"), command, *args], data,
                statuses)


# ---- zones ----

def _octets(text):
    """A value's octets: characters above U+007F stand for their UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _quote(text):
    out = []
    for byte in _octets(text):
        if byte in b'"\\':
            out.append("\\" + chr(byte))
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append("\\%03d" % byte)
    return '"' + "".join(out) + '"'


def _name(text):
    """Escape what would end or change the name in the file."""
    out = []
    for byte in _octets(text):
        if byte <= 32 or byte >= 127 or byte in b'"\\#;':
            out.append("\\%03d" % byte)
        else:
            out.append(chr(byte))
    return "".join(out) or "."


# Types that nothing of ours asks for; they only make a name exist, which
# any listed type does.
def _data(record):
    if "rcode" in record:
        return "!" + record["rcode"]
    value = record["value"]
    if record["type"] in ("TXT", "SPF"):
        parts = value if isinstance(value, list) else [value]
        return " ".join(_quote(part) for part in parts) or '""'
    if record["type"] == "MX":
        return f"{value[0]} {_name(value[1])}"
    return _name(value) if isinstance(value, str) else str(value)


def zone(records):
    """The path of a zone file with these records."""
    lines = []
    for record in records or []:
        lines.append(f"{_name(record['name'])} {record['type']} "
                     f"{_data(record)}")
    text = "\n".join(lines) + "\n"
    with _lock:
        if text not in _zones:
            path = os.path.join(_place, f"zone{len(_zones)}")
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
            _zones[text] = path
        return _zones[text]


def keep(text):
    """Text (a key) in a file only we can read."""
    with _lock:
        if text not in _zones:
            path = os.path.join(_place, f"key{len(_zones)}")
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w", encoding="ascii") as out:
                out.write(text)
            _zones[text] = path
        return _zones[text]


# ---- messages ----

def message(folder, case):
    with open(os.path.join(folder, case["message"]), "rb") as raw:
        data = raw.read()
    if case["line_endings"] == "lf":
        data = data.replace(b"\n", b"\r\n")
    return data
