"""Ends or stops whoever watches over it, with an heir that would outlive it."""

import os
import signal
import sys
import time

from common import ancestors, attempt, bounded, did, say

how = signal.SIGKILL if sys.argv[1] == "kill" else signal.SIGSTOP
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        bounded()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
say("done")
for pid in ancestors():
    attempt(f"signal {int(how)} to {pid}, which watches over me", lambda: os.kill(pid, how))
time.sleep(60)
