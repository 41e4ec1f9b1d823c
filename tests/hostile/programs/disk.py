"""Makes one file longer and longer, 2 GiB at most; it holds no data and goes at the end."""

import os
import sys

from common import refused, say

ALL = 2 << 30
STEP = 64 << 20

path = "as-long-as-may-be"
descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
reached = 0
try:
    while reached < ALL:
        os.ftruncate(descriptor, reached + STEP)
        reached += STEP
except OSError as error:
    refused("a longer file", error)
say(f"reached: {reached >> 20}")
try:
    os.lseek(descriptor, ALL - 1, os.SEEK_SET)
    os.write(descriptor, b"x")
    say(f"reached: {ALL >> 20}")
except OSError as error:
    refused("a byte far out", error)
os.unlink(path)
say("done")
