#!/usr/bin/env python3
"""tests/tally.py BUILDDIR REPORT TEST...

Counts the test cases of the TAP logs that `make check` left in BUILDDIR and
prints "PASSED FAILED SKIPPED FORBIDDEN"; writes each failure (with the end of
its log) and each skip with its reason to REPORT. A test that left no log,
broke its plan or exited wrongly counts as one failure. FORBIDDEN are the
skips for any other reason than data that is not beside the checkout."""
import os
import re
import sys

CASE = re.compile(r"^(not )?ok\b[ \t]*(\d*)[ \t]*(?:- )?(.*)$")
DIRECTIVE = re.compile(r"(?:^|\s)#\s*(SKIP|TODO)\b\s*(.*)$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b\s*(.*))?$", re.I)
ALLOWED = "shared data absent"
TAIL = 40


def log_of(build, test):
    for extension in (".py", ".sh"):
        if test.endswith(extension):
            test = test[:-len(extension)]
    return os.path.join(build, test + ".log")


def count(lines):
    """(passed, failed, skip reasons) of one log."""
    passed, failed, skips = 0, 0, []
    for line in lines:
        plan, case = PLAN.match(line), CASE.match(line)
        if plan and plan[1] == "0":
            skips.append(plan[2] or "no reason given")
        elif line.startswith("Bail out!"):
            failed += 1
        elif case:
            directive = DIRECTIVE.search(case[3])
            if directive and directive[1].upper() == "SKIP":
                skips.append(directive[2] or "no reason given")
            elif case[1]:
                failed += 1
            else:
                passed += 1
    return passed, failed, skips


def verdict(log):
    """What automake made of it: PASS, SKIP, FAIL, ERROR or nothing."""
    try:
        with open(log[:-4] + ".trs", errors="replace") as text:
            found = re.search(r"^:global-test-result: (\w+)", text.read(),
                              re.M)
            return found[1] if found else "ERROR"
    except OSError:
        return "no result"


def main():
    build, report, tests = sys.argv[1], sys.argv[2], sys.argv[3:]
    total = [0, 0, 0, 0]
    with open(report, "w") as out:
        for test in tests:
            log = log_of(build, test)
            try:
                with open(log, errors="replace") as text:
                    lines = text.read().splitlines()
            except OSError:
                lines = []
            passed, failed, skips = count(lines)
            result = verdict(log)
            if failed == 0 and result not in ("PASS", "SKIP"):
                failed = 1
            if failed:
                out.write(f"FAILED {test} ({result})\n")
                out.writelines(f"  {line}\n" for line in lines[-TAIL:])
            for reason in skips:
                out.write(f"skipped in {test}: {reason}\n")
            total[0] += passed
            total[1] += failed
            total[2] += len(skips)
            total[3] += sum(ALLOWED not in reason for reason in skips)
    print(*total)


if __name__ == "__main__":
    main()
