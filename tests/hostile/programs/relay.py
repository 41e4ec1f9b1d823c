"""A process that is never there: it forks, the child goes on, the parent ends, without a pause."""

import os
import signal
import time

from common import LIFETIME, bounded, say

FORKS = 20_000
RELAYS = 3

began = time.monotonic()
say("done")
for _ in range(RELAYS):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for _ in range(FORKS):
            bounded()
            if time.monotonic() - began > LIFETIME:
                break
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
        os._exit(0)
time.sleep(LIFETIME)
