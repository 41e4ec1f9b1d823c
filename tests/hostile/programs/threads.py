"""Starts threads until it is refused one: 2,000 at most."""

import os
import threading
import time

from common import LIFETIME, refused, say

COUNT = 2_000

threading.stack_size(64 << 10)
reached = 0
for _ in range(COUNT):
    try:
        threading.Thread(target=time.sleep, args=(LIFETIME,), daemon=True).start()
    except (RuntimeError, MemoryError) as error:
        refused("another thread", error)
        break
    reached += 1
say(f"reached: {reached}")
say("done")
os._exit(0)
