"""Takes memory and writes to all of it, 4 GiB at most, in $1 processes; with `shared` such as could be
shared with others; with `headless` in a thread whose process has lost its first one."""

import mmap
import ctypes
import os
import sys
import threading
import time

from common import bounded, libc, number, refused, say

ALL = 4 << 30
CHUNK = 32 << 20
KIND = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if "shared" in sys.argv else mmap.MAP_PRIVATE)


def take(amount, told):
    """Takes memory, chunk after chunk, and says so."""
    held = []
    for _ in range(amount // CHUNK):
        chunk = mmap.mmap(-1, CHUNK, flags=KIND)
        # All of it at once: whoever looks now and then has to look in time.
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(chunk)), 1, CHUNK)
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

    def all_of_it():
        try:
            take(ALL, told)
            # Until whoever looks has looked.
            time.sleep(3)
        except (OSError, MemoryError) as error:
            refused("more memory", error)
        os._exit(0)

    if "headless" in sys.argv:
        threading.Thread(target=all_of_it).start()
        # This thread alone; the process is a corpse that works on.
        libc.syscall(ctypes.c_long(number(60, 93)), 0)
    all_of_it()

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
