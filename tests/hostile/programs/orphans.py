"""Double forks, sessions of their own, a cleared environment, other names, no open files: what is
left has nothing by which it could be recognised."""

import os
import signal
import sys

from common import bounded, did, say

COUNT = 8


def vanish():
    """The process that nobody should find."""
    os.setsid()
    if os.fork():
        os._exit(0)
    bounded()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    os.umask(0)
    os.closerange(0, 1024)
    os.execve("/bin/sleep", ["kworker/0:1"[:15], "60"], {})


for _ in range(COUNT):
    child = os.fork()
    if child == 0:
        try:
            vanish()
        finally:
            os._exit(1)
    os.waitpid(child, 0)
did(f"{COUNT} orphans")
say("done")
sys.stdout.flush()
os._exit(0)
