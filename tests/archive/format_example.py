#!/usr/bin/env python3
"""The worked example of archive-format(5), built here from the page's words
alone, must be what the page prints; and what Hanaper reads from those bytes.
Prints TAP."""
import base64
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

NONCE = bytes(range(0x40, 0x50))
UUID = bytes(range(16))
MESSAGE = b"Subject: hi\r\n\r\nhello\r\n"
TIME = 1796060000123456


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def raw_zstd(plain):
    """RFC 8878: magic, single segment with one length byte, one raw block."""
    return (b"\x28\xB5\x2F\xFD\x20" + bytes([len(plain)]) +
            struct.pack("<I", len(plain) << 3 | 1)[:3] + plain)


def padded(block):
    return block + bytes(-len(block) % 8)


def commitment(letter, salt, plain):
    return sha(b"hanaper-x-v1\0", letter, salt, sha(plain))


def build():
    meta_plain = b"\1" + struct.pack("<HI", 1, 2) + b"in"
    meta = b"\x11" * 16 + raw_zstd(meta_plain)
    body = b"\x22" * 16 + sha(MESSAGE) + raw_zstd(MESSAGE)
    c_meta = commitment(b"M", b"\x11" * 16, meta_plain)
    c_body = commitment(b"B", b"\x22" * 16, MESSAGE)
    leaf = sha(b"\0", b"hanaper-leaf-v1\0", UUID,
               struct.pack("<IQBq", 7, 0, 1, TIME),
               c_meta, bytes(64), c_body)
    total = 128 + len(padded(meta)) + len(padded(body))
    header = (b"\xF5HNF" + struct.pack("<BBHQqQQ", 1, 1, 0, 0, TIME, 4096,
                                       total) +
              struct.pack("<IIIIQQ", len(meta), 0, 0, 0, len(body),
                          len(MESSAGE)) + leaf +
              struct.pack("<IIII", crc32c(padded(meta)), 0, 0,
                          crc32c(padded(body))))
    header += sha(NONCE, header)[:8]
    return header + padded(meta) + padded(body), c_meta, c_body


# --- Ed25519 (RFC 8032), to sign without any tool

P = 2 ** 255 - 19
Q = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def recover_x(y):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return x if x % 2 == 0 else P - x


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2
    return ((x1 * y2 + x2 * y1) * pow(1 + k, P - 2, P) % P,
            (y1 * y2 + x1 * x2) * pow(1 - k, P - 2, P) % P)


def multiply(n, point=(recover_x(BASE_Y), BASE_Y)):
    result = (0, 1)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def compress(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def sign(seed, text):
    """Public key and signature."""
    digest = hashlib.sha512(seed).digest()
    secret = int.from_bytes(digest[:32], "little")
    secret = secret & (1 << 254) - 8 | 1 << 254
    public = compress(multiply(secret))

    def number(*parts):
        return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(),
                              "little") % Q
    r = number(digest[32:], text)
    point = compress(multiply(r))
    s = (r + number(point, public, text) * secret) % Q
    return public, point + s.to_bytes(32, "little")


SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc4"
                     "4449c5697b326919703bac031cae7f60")
ORIGIN = f"{UUID.hex()}/1/7"
OTHER = b"\xee" * 32


def b64(data):
    return base64.b64encode(data).decode()


def build_proof(frame, c_meta, c_body):
    """Key, note and proof (which has the note behind it), all text."""
    leaf = frame[72:104]
    root = sha(b"\1", leaf, OTHER)
    text = (f"{ORIGIN}\n2\n{b64(root)}\n"
            "time 2026-11-30T17:33:20.623456Z\n")
    public, signature = sign(SEED, text.encode())
    name = f"hanaper/{UUID.hex()}"
    number = sha(name.encode(), b"\n\1", public)[:4]
    key = f"{name}+{number.hex()}+{b64(bytes([1]) + public)}"
    note = f"{text}\n\u2014 {name} {b64(number + signature)}\n"
    meta = b"\1" + struct.pack("<HI", 1, 2) + b"in"
    proof = (f"hanaper-proof 1\nshard {ORIGIN}\nframe 0\ntype 1\n"
             f"time {TIME}\n"
             f"META disclosed {'11' * 16} {b64(meta)}\n"
             "EVIDENCE absent\nEDITS absent\n"
             f"BODY disclosed {'22' * 16} {sha(MESSAGE).hex()}\n"
             f"leaf {leaf.hex()}\npath {OTHER.hex()}\nkey {key}\nnote\n")
    return key, note, proof


def as_page(text):
    """Long lines folded, what mdoc wants escaped."""
    folded = []
    for line in text.splitlines():
        while len(line) > 70:
            folded.append(line[:70] + "\\e")
            line = line[70:]
        folded.append(line)
    return "\n".join(folded).replace("\u2014", "\\(em") + "\n"


def lines(data, base=None):
    for at in range(0, len(data), 16):
        text = " ".join(f"{b:02x}" for b in data[at:at + 16])
        yield f"{base + at:04x}  {text}" if base is not None else text


def shard(frame):
    head = bytearray(4096)
    head[0:8] = b"\x89HNSEG\r\n"
    struct.pack_into("<HHII", head, 8, 1, 0, 7, 1)
    head[20:36] = UUID
    head[36:40] = b"mail"
    head[68:75] = b"2026-11"
    struct.pack_into("<q", head, 76, TIME)
    head[84:100] = NONCE
    head[100:108] = b"hanaper1"
    struct.pack_into("<I", head, 4092, crc32c(head[:4092]))
    return bytes(head) + frame


def main():
    frame, c_meta, c_body = build()
    if sys.argv[1:] == ["--segment"]:
        sys.stdout.buffer.write(shard(frame))
        return 0
    parts = build_proof(frame, c_meta, c_body)
    if sys.argv[1:] == ["--print"]:
        for part in parts:
            print(as_page(part))
        for part in ("\n".join(lines(frame, 0)), "\n".join(lines(c_meta)),
                     "\n".join(lines(c_body))):
            print(part, end="\n\n")
        return 0
    page = os.path.join(os.environ.get("SRCDIR", "."), "man",
                        "archive-format.5")
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed", text.read(),
                            re.M | re.S)
    want = ["\n".join(lines(frame, 0)) + "\n", "\n".join(lines(c_meta)) + "\n",
            "\n".join(lines(c_body)) + "\n", *map(as_page, parts)]
    results = [(blocks == want, "the page prints the bytes it describes"),
               (crc32c(b"123456789") == 0xE3069283, "the CRC is the named one")]
    results.append(read_by_zstd(frame))
    results.append(read_by_hanaper(frame))
    hanaper = os.environ.get("HANAPER", "./hanaper")
    results.append((check(parts, hanaper, "archive", "prove", "--check"),
                    "Hanaper believes the proof, with key and message"))
    foreign = os.path.join(os.environ.get("SRCDIR", "."), "contrib",
                           "hanaper-proof")
    results.append((shutil.which("openssl") and
                    check(parts, sys.executable, foreign, "check"),
                    "hanaper-proof believes it"))
    for parts in ("one-part", "two-parts"):
        results.append((shutil.which("zstd") and read_packed(foreign, parts),
                        f"hanaper-proof reads with a dictionary of {parts}"))
    print(f"1..{len(results)}")
    failed = 0
    for number, (ok, name) in enumerate(results, 1):
        print("ok" if ok or ok is None else "not ok", number, "-", name,
              "" if ok is not None else "# SKIP no such command")
        failed += ok is False
    return 1 if failed else 0


def check(parts, *command):
    key, note, proof = parts
    with tempfile.TemporaryDirectory() as top:
        paths = [os.path.join(top, name) for name in ("proof", "message")]
        for path, data in zip(paths, ((proof + note).encode(), MESSAGE)):
            with open(path, "wb") as file:
                file.write(data)
        done = subprocess.run([*command, paths[0], "--key", key, "--message",
                               paths[1]], capture_output=True, check=False)
    if done.returncode != 0:
        print("#", done.stdout, done.stderr)
    return done.returncode == 0


def read_packed(foreign, parts):
    path = os.path.join(os.environ.get("SRCDIR", "."), "tests", "archive",
                        f"segment-{parts}")
    with tempfile.TemporaryDirectory() as top:
        body = os.path.join(top, "body")
        done = subprocess.run([sys.executable, foreign, "frame", path, "1",
                               "--body", body], capture_output=True,
                              check=False)
        if done.returncode != 0:
            print("#", done.stdout, done.stderr)
            return False
        with open(body, "rb") as file:
            message = file.read()
    sender = b"a@b" if parts == "one-part" else b"p12@d12.example"
    return (b"META 3 b'" + sender in done.stdout and
            b"\r\nSubject: message 1012\r\n" in message)


def read_by_zstd(frame):
    name = "the zstd command reads the body"
    at = 128 + (struct.unpack_from("<I", frame, 40)[0] + 7) // 8 * 8
    length = struct.unpack_from("<Q", frame, 56)[0]
    try:
        done = subprocess.run(["zstd", "-dc"], capture_output=True,
                              input=frame[at + 48:at + length], check=False)
    except FileNotFoundError:
        return None, name
    return done.stdout == MESSAGE, name


def read_by_hanaper(frame):
    """A helper program linked to the archive reads it as we do."""
    helper = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "archive",
                          "read_segment")
    done = subprocess.run([helper], input=shard(frame), capture_output=True,
                          check=False)
    want = (f"frame 0 type 1 time {TIME} meta 01010002000000696e "
            f"body {MESSAGE.hex()}\n").encode()
    if done.stdout != want:
        print("#", done.stdout, done.stderr)
    return done.stdout == want, "Hanaper reads the frame, leaf and all"


if __name__ == "__main__":
    sys.exit(main())
