"""Takes memory and writes to all of it, 4 GiB at most; with an argument in so many processes,
none of which takes much."""

import mmap
import os
import sys
import time

from common import bounded, refused, say

ALL = 4 << 30
CHUNK = 32 << 20


def take(amount, told):
    """Takes memory, chunk after chunk, and says so."""
    held = []
    for _ in range(amount // CHUNK):
        chunk = mmap.mmap(-1, CHUNK)
        for at in range(0, CHUNK, mmap.PAGESIZE):
            chunk[at] = 1
        held.append(chunk)
        told()
    return held


say("done")
processes = int(sys.argv[1]) if len(sys.argv) > 1 else 1
if processes == 1:
    reached = 0

    def told():
        global reached
        reached += CHUNK >> 20
        say(f"reached: {reached}")

    try:
        take(ALL, told)
    except (OSError, MemoryError) as error:
        refused("more memory", error)
    sys.exit(0)

counter, tell = os.pipe()
children = []
for _ in range(processes):
    child = os.fork()
    if child == 0:
        bounded()
        try:
            held = take(ALL // processes, lambda: os.write(tell, b"x"))
            # Until all have what they want.
            os.close(tell)
            time.sleep(3)
        except (OSError, MemoryError):
            pass
        os._exit(0)
    children.append(child)
os.close(tell)
reached = 0
while chunk := os.read(counter, 1 << 12):
    reached += len(chunk) * (CHUNK >> 20)
    say(f"reached: {reached}")
