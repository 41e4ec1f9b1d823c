"""Counts checks: one line for each on standard output, a detail where one fails, and the closing line."""

import json
import traceback

DETAIL_CHARACTERS = 4000


class Report:
    """What held and what didn't."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, name, holds, detail=""):
        """Records one check. `detail` (a text, or a value to be shown as JSON) is printed only if it fails."""
        if holds:
            self.passed += 1
            print(f"ok      {name}", flush=True)
            return True
        self.failed += 1
        print(f"FAILED  {name}", flush=True)
        text = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False, default=str)
        for line in text[:DETAIL_CHARACTERS].splitlines():
            print(f"        {line}", flush=True)
        return False

    def equal(self, name, found, expected):
        """Records whether two values are the same, and shows both if they aren't."""
        return self.check(name, found == expected, f"expected {_shown(expected)}\nfound    {_shown(found)}")

    def guarded(self, name, work, *arguments):
        """Runs a group of checks; an exception in it is one failed check, not the end of the run."""
        try:
            work(*arguments)
        except Exception:  # a broken server must not hide what the other servers say
            self.check(name, False, traceback.format_exc(limit=-4))

    def close(self):
        """Prints the closing line; the exit status of the run."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


def _shown(value):
    return json.dumps(value, ensure_ascii=False, default=str)
