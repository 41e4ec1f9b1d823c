"""Fills the file system below it, 2 GiB at most, and leaves it full."""

from common import refused, say

ALL = 2 << 30
CHUNK = b"\0" * (1 << 20)

reached = 0
try:
    with open("fills-the-disk", "wb", buffering=0) as file:
        while reached < ALL:
            wrote = file.write(CHUNK)
            reached += wrote
except OSError as error:
    refused("more on the disk", error)
say(f"reached: {reached >> 20}")
say("done")
