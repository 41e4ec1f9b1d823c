"""Waits until somebody outside replaces a file that can't be written here, and writes the new one: the mount
that kept the old one went with it."""

import os
import sys
import time

from common import CASE, attempt, quietly, say

path = sys.argv[1]
EVIL = "[core]\n\tfsmonitor = ./hostile\n"


def number():
    return quietly(lambda: os.stat(path).st_ino)


def append():
    with open(path, "a") as file:
        file.write(EVIL)


before = number()
with open(f"ready-{CASE}", "w") as file:
    file.write("")
end = time.monotonic() + 15
while number() in (None, before) and time.monotonic() < end:
    time.sleep(0.005)
attempt("write the new one", append)
os.unlink(f"ready-{CASE}")
say("done")
