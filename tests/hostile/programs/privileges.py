"""Wants to be somebody else: programs with the setuid bit, capabilities, other users' ids, its
cgroup's parent."""

import glob
import os
import subprocess

from common import MARK, TARGETS, attempt, escaped, quietly, refused, say

tell = lambda what: escaped(what)
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
if status.get("NoNewPrivs") != "1":
    escaped("new privileges may be had")
else:
    refused("new privileges", "NoNewPrivs is set")
for program in TARGETS["setuid"]:
    said = quietly(lambda: subprocess.run([program, "-u"], capture_output=True, timeout=5).stdout.decode().strip())
    if said == "0" and os.geteuid() != 0:
        escaped(f"{program} ran as root")
    else:
        refused(f"{program} as root", f"it ran as {said}")
if os.geteuid() != 0:
    attempt("become root", lambda: os.setuid(0), tell)
else:
    # Root in here: is it root out there? A file of another user tells.
    for path in TARGETS["secrets"]:
        attempt(f"give {path} away", lambda: os.chown(path, 12345, 12345))
mine = quietly(lambda: open("/proc/self/cgroup").read().split()) or []
tasks = glob.glob("/sys/fs/cgroup/cgroup.procs") + glob.glob("/sys/fs/cgroup/*/cgroup.procs")
for path in tasks:
    attempt(f"leave my cgroup for that of {path}", lambda: open(path, "w").write(str(os.getpid())), tell)
for path in glob.glob("/sys/fs/cgroup/release_agent") + glob.glob("/sys/fs/cgroup/*/release_agent"):
    attempt(f"open {path} for writing", lambda: os.close(os.open(path, os.O_WRONLY)), tell)
for path in glob.glob("/sys/fs/cgroup/*"):
    if os.path.isdir(path):
        new = f"{path}/hostile-{MARK}"
        attempt(f"make {new}", lambda: os.mkdir(new), tell)
        quietly(lambda: os.rmdir(new))
say("done")
