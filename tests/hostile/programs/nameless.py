"""Gives itself and an heir a name that is no text, and does not want to end."""

import os
import signal
import time

from common import libc, say

NAME = 15
LIFETIME = 90
"""Longer than the harness waits for a call that has to be over after a second."""

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
signal.alarm(LIFETIME)
libc.prctl(NAME, b"\xff\xfe) Z 1")
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.alarm(LIFETIME)
    time.sleep(LIFETIME)
    os._exit(0)
say("done")
time.sleep(LIFETIME)
