"""Forks and forks again, in every process: 2,048 of them at most, and none ends by itself."""

import os
import signal
import time

from common import LIFETIME, bounded, say

DOUBLINGS = 11

counter, told = os.pipe2(os.O_NONBLOCK)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + LIFETIME
say("done")
first = os.getpid()
done = 0
refused = False
while done < DOUBLINGS and time.monotonic() < end:
    try:
        if os.fork() == 0:
            bounded()
            os.write(told, b"x")
        done += 1
    except OSError:
        refused = True
        if os.getpid() == first:
            break
        time.sleep(0.05)
if os.getpid() == first:
    time.sleep(1)
    try:
        reached = 1 + len(os.read(counter, 1 << 16))
    except OSError:
        reached = 1
    say(f"reached: {reached}")
    say("refused: another process" if refused else f"did: {reached} processes")
time.sleep(max(0.0, end - time.monotonic()))
