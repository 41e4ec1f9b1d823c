"""Fills a folder in memory, as far as it goes."""

import os
import sys

from common import MARK, bounded, refused, say

bounded()
folder = sys.argv[1]
block = b"x" * (1 << 20)
written = 0
try:
    with open(os.path.join(folder, MARK), "wb", buffering=0) as file:
        while written < 4 << 30:
            written += file.write(block)
except OSError as error:
    refused(folder, error)
say(f"reached: {written >> 20}")
say("done")
