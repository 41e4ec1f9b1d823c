"""Takes memory and writes to all of it, 4 GiB at most, in $1 processes; with $2 `shared` such as could
be shared with others."""

import mmap
import os
import sys
import time

from common import bounded, refused, say

ALL = 4 << 30
CHUNK = 32 << 20
KIND = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if "shared" in sys.argv else mmap.MAP_PRIVATE)


def take(amount, told):
    """Takes memory, chunk after chunk, and says so."""
    held = []
    for _ in range(amount // CHUNK):
        chunk = mmap.mmap(-1, CHUNK, flags=KIND)
        for at in range(0, CHUNK, mmap.PAGESIZE):
            chunk[at] = 1
        held.append(chunk)
        told()
    return held


say("done")
processes = int(sys.argv[1])
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
children = {}
for _ in range(processes):
    child = os.fork()
    if child == 0:
        bounded()
        try:
            own = str(os.getpid()).encode() + b"\n"
            held = take(ALL // processes, lambda: os.write(tell, own))
            # Until all have what they want; who is killed meanwhile has nothing any more.
            os.close(tell)
            time.sleep(3)
        except (OSError, MemoryError):
            pass
        os._exit(0)
    children[child] = 0
os.close(tell)
reached = 0
while chunk := os.read(counter, 1 << 12):
    for word in chunk.split():
        if int(word) in children:
            children[int(word)] += CHUNK >> 20
    while children:
        child, _ = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            break
        children.pop(child, None)
    if sum(children.values()) > reached:
        reached = sum(children.values())
        say(f"reached: {reached}")
    if not children:
        break
