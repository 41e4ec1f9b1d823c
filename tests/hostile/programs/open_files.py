"""Opens files until it is refused one: 20,000 at most."""

import os

from common import refused, say

COUNT = 20_000

reached = 0
held = []
for _ in range(COUNT):
    try:
        held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        refused("another open file", error)
        break
    reached += 1
for number in held:
    os.close(number)
say(f"reached: {reached}")
say("done")
