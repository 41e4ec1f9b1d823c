"""Looks for secrets: in its environment, in its parents' and in the files where people keep them."""

import glob
import os

from common import TARGETS, ancestors, daemons, got, quietly, read, say

got("my environment", repr(dict(os.environ)).encode())
for pid in [1, os.getppid()] + ancestors() + daemons():
    read(f"/proc/{pid}/environ")
for path in TARGETS["secrets"]:
    read(path)
for folder in TARGETS["hidden"]:
    for path in quietly(lambda: sorted(glob.glob(folder + "/**", recursive=True, include_hidden=True))) or []:
        if os.path.isfile(path):
            read(path)
say("done")
