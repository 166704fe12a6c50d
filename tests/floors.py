#!/usr/bin/env python3
"""The include rule: a folder of src/ includes itself and folders below it,
and each foreign library is included from one folder only. Prints TAP."""
import os
import re
import sys

SRC = os.path.join(os.environ.get("SRCDIR", "."), "src")
FLOORS = {"base": 0, "mail": 1, "dns": 1, "keys": 1, "config": 1, "auth": 2,
          "archive": 2, "flow": 3, "milter": 4, "daemon": 5, "cli": 5}
# Only these folders may see the configuration: lower floors get structs.
CONFIG_READERS = {"config", "flow", "daemon", "cli"}
FOREIGN = {
    r"libmilter/": {"milter"},
    r"openssl/": {"keys"},
    r"sqlite3\.h": {"archive"},
    r"zstd|zdict": {"archive"},
    r"zlib\.h": {"archive"},
    r"unbound|event2?[/.]|libpsl": {"dns"},
    r"idn2\.h|iconv\.h": {"mail"},
    r"spf2/|opendmarc/": {"auth"},
}
# Several foreign libraries are kept behind a single file.
ONE_FILE = {r"spf2/": "auth", r"opendmarc/": "auth", r"libpsl": "dns",
            r"zlib\.h": "archive"}


def main():
    bad, files, holders = [], 0, {}
    for top, _, names in os.walk(SRC):
        folder = os.path.relpath(top, SRC).split(os.sep)[0]
        for name in sorted(names):
            if not name.endswith((".c", ".h")):
                continue
            files += 1
            path = os.path.join(top, name)
            with open(path, encoding="utf-8") as text:
                for number, line in enumerate(text, 1):
                    m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
                    if m:
                        check(folder, path, number, m, bad, holders)
    for pattern, paths in holders.items():
        if len(paths) > 1:
            bad.append(f"{pattern} is included by {sorted(paths)}")
    for line in bad:
        print("#", line)
    if files == 0:
        print("# no source file found below", SRC)
    ok = files > 0 and not bad
    print("1..1")
    print("ok" if ok else "not ok", "1 - include rule of the floors")
    return 0 if ok else 1


def check(folder, path, number, m, bad, holders):
    where = f"{path}:{number}"
    if m[1] == '"':
        target = m[2].split("/")[0]
        if "/" not in m[2] or target not in FLOORS:
            bad.append(f"{where}: write \"FOLDER/file.h\", not {m[2]}")
        elif target != folder and FLOORS[target] >= FLOORS[folder]:
            bad.append(f"{where}: {folder} must not include {m[2]}")
        elif target == "config" and folder not in CONFIG_READERS:
            bad.append(f"{where}: {folder} must not see the configuration")
        return
    for pattern, folders in FOREIGN.items():
        if re.match(pattern, m[2]) and folder not in folders:
            bad.append(f"{where}: <{m[2]}> belongs to {sorted(folders)}")
    for pattern in ONE_FILE:
        if re.match(pattern, m[2]):
            holders.setdefault(pattern, set()).add(path)


if __name__ == "__main__":
    sys.exit(main())
