"""TAP for the tests written in Python: a case is a function that raises.

    from tap import Skip, check, run
    run([("name", function), ...], why_not=None or "reason")

`check(got, wanted, what)` compares; `Skip("reason")` skips one case. With a
`why_not` the whole program is skipped, visibly."""
import sys
import traceback


class Skip(Exception):
    pass


class Cases(list):
    """Collects functions for run(), named by their names:

        cases = Cases()
        @cases.add
        def keys_are_listed(): ...
        run(cases)
    """

    def add(self, function):
        self.append((function.__name__.replace("_", " "), function))
        return function


def check(got, wanted, what="value"):
    if got != wanted:
        raise AssertionError(f"{what} is {got!r}, not {wanted!r}")


def check_in(needle, haystack, what="text"):
    if needle not in haystack:
        raise AssertionError(f"{what} lacks {needle!r}: {haystack!r}")


def note(text):
    for line in str(text).splitlines():
        print("#", line)


def run(cases, why_not=None, cleanup=None):
    """Run the cases in order and exit. `cleanup` is called at the end."""
    if why_not:
        print(f"1..0 # SKIP {why_not}")
        sys.exit(0)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    try:
        for number, (name, function) in enumerate(cases, 1):
            try:
                function()
                print(f"ok {number} - {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}", flush=True)
            except BaseException as e:
                failed += 1
                print(f"not ok {number} - {name}")
                note(traceback.format_exc())
                sys.stdout.flush()
                if isinstance(e, KeyboardInterrupt):
                    raise
    finally:
        if cleanup:
            cleanup()
    sys.exit(1 if failed else 0)
