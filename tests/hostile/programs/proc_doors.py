"""The doors that /proc has to other roots, other folders and other processes' files."""

import os

from common import MARK, TARGETS, attempt, daemons, quietly, read, say

NEW = f"hostile-{MARK}"


def write(path):
    with open(path, "w") as file:
        file.write("hostile\n")


pids = ["self", "1", str(os.getppid())] + [str(pid) for pid in daemons()]
for pid in pids:
    for door in ("root", "cwd"):
        base = f"/proc/{pid}/{door}"
        attempt(f"list {base}", lambda: os.listdir(base))
    for folder in TARGETS["folders"]:
        attempt(f"write through /proc/{pid}/root{folder}", lambda: write(f"/proc/{pid}/root{folder}/{NEW}.proc"))
    for secret in TARGETS["secrets"]:
        read(f"/proc/{pid}/root{secret}")
    attempt(f"write to /proc/{pid}/cwd", lambda: write(f"/proc/{pid}/cwd/{NEW}.proc") if pid != "self" else None)
for pid in [str(pid) for pid in daemons()]:
    for file in ("environ", "cmdline", "maps", "mem", "auxv", "stack"):
        if file != "cmdline":
            read(f"/proc/{pid}/{file}")
    for number in quietly(lambda: os.listdir(f"/proc/{pid}/fd")) or []:
        read(f"/proc/{pid}/fd/{number}")
    for name in ("comm", "oom_score_adj", "coredump_filter", "clear_refs", "timerslack_ns", "loginuid"):
        path = f"/proc/{pid}/{name}"
        attempt(f"open {path} for writing", lambda: os.close(os.open(path, os.O_WRONLY)), lambda what: say(f"escaped: {what}"))
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches",
             "/sys/kernel/uevent_helper", "/sys/power/state", "/proc/sys/fs/binfmt_misc/register"):
    # Only opened: what is written there would hit the machine.
    attempt(f"open {path} for writing", lambda: os.close(os.open(path, os.O_WRONLY)), lambda what: say(f"escaped: {what}"))
say("done")
