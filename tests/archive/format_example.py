#!/usr/bin/env python3
"""The worked example of archive-format(5), built here from the page's words
alone, must be what the page prints; and what Hanaper reads from those bytes.
Prints TAP."""
import hashlib
import os
import re
import struct
import subprocess
import sys

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
    if sys.argv[1:] == ["--print"]:
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
            "\n".join(lines(c_body)) + "\n"]
    results = [(blocks == want, "the page prints the bytes it describes"),
               (crc32c(b"123456789") == 0xE3069283, "the CRC is the named one")]
    results.append(read_by_zstd(frame))
    results.append(read_by_hanaper(frame))
    print(f"1..{len(results)}")
    failed = 0
    for number, (ok, name) in enumerate(results, 1):
        print("ok" if ok or ok is None else "not ok", number, "-", name,
              "" if ok is not None else "# SKIP no zstd command")
        failed += ok is False
    return 1 if failed else 0


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
