"""Everything that one process can do to another, done to the daemon: traces it, reads its memory,
takes its descriptors, changes its limits, and at last ends it."""

import ctypes
import os
import resource
import signal
import struct

from common import attempt, called, daemons, did, escaped, libc, number, refused, say, system_call

PTRACE_SEIZE, PTRACE_ATTACH, PTRACE_DETACH = 0x4206, 16, 17


class Piece(ctypes.Structure):
    """struct iovec"""
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def look(pid):
    """What can be had of it while it lives."""
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    if called(f"trace {pid}", libc.ptrace(PTRACE_SEIZE, pid, 0, 0)):
        libc.ptrace(PTRACE_DETACH, pid, 0, 0)
    into = ctypes.create_string_buffer(64)
    ours = Piece(ctypes.addressof(into), 64)
    theirs = Piece(0x400000, 64)
    result = libc.syscall(ctypes.c_long(number(310, 270)), pid,
                          ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    # EFAULT says that it was allowed and that nothing lies there.
    allowed = result >= 0 or ctypes.get_errno() == 14
    escaped(f"read the memory of {pid}") if allowed else refused(f"read the memory of {pid}", os.strerror(ctypes.get_errno()))
    handle = libc.syscall(ctypes.c_long(434), pid, 0)
    if handle >= 0:
        for theirs in range(3, 24):
            system_call(f"take descriptor {theirs} of {pid}", (438, 438), handle, theirs, 0)
    for what, action in [
        ("lower the limits", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (777, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))),
        ("lower the priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        ("narrow the processors", lambda: os.sched_setaffinity(pid, {0})),
        ("change the scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))),
    ]:
        attempt(f"{what} of {pid}", action, escaped)
    nothing = ctypes.create_string_buffer(64)
    system_call(f"set the scheduler's numbers of {pid}", (142, 118), pid, nothing)
    system_call(f"lower the disk priority of {pid}", (251, 30), 1, pid, 3 << 13)
    size_idle = ctypes.create_string_buffer(struct.pack("II", 48, os.SCHED_IDLE), 64)
    system_call(f"change the scheduler and more of {pid}", (314, 274), pid, size_idle, 0)
    for name in ("user", "mnt", "net", "pid"):
        try:
            descriptor = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
            if os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"):
                called(f"enter the {name} namespace of {pid}", libc.setns(descriptor, 0))
            os.close(descriptor)
        except OSError as error:
            refused(f"find the {name} namespace of {pid}", error)


for pid in daemons():
    look(pid)
# Who is in a process namespace lowers its own with it: the harness looks at the daemon's.
attempt("lower the priority of all that is this user's", lambda: os.setpriority(os.PRIO_USER, 0, 5))
USERS, LOWEST = 3, (2 << 13) | 7
system_call("lower the disk priority of all that is this user's", (251, 30), USERS, os.getuid(), LOWEST, tell=did)
say("done")
for ends in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
    for pid in daemons():
        attempt(f"signal {int(ends)} to {pid}", lambda: os.kill(pid, ends), escaped)
