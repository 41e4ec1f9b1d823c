"""System calls that no build needs and that lead past a sandbox: rings, keys, traces, modules. All are
called so that they do no harm where they are allowed."""

import ctypes
import os

from common import MARK, escaped, libc, number, refused, say, system_call

room = ctypes.create_string_buffer(256)
ring = system_call("io_uring_setup", (425, 425), 4, room)
if ring >= 0:
    os.close(ring)
name = ctypes.create_string_buffer(f"hostile-{MARK}".encode())
kind = ctypes.create_string_buffer(b"user")
SESSION, USER, USER_SESSION = -3, -4, -5
for ring, what in ((SESSION, "session"), (USER, "user"), (USER_SESSION, "user session")):
    system_call(f"add_key to the {what} keyring", (248, 217), kind, name, name, 8, ring)
    system_call(f"keyctl: read the {what} keyring", (250, 219), 11, ring, room, 256)
system_call("request_key", (249, 218), kind, name, None, SESSION)
system_call("bpf", (321, 280), 0, room, 48)
system_call("perf_event_open", (298, 241), room, 0, -1, -1, 0)
system_call("userfaultfd", (323, 282), 0)


def only_allowed(what, numbers, arguments, fine):
    """Called with nonsense: an error of `fine` says that it was looked at."""
    result = libc.syscall(ctypes.c_long(number(*numbers)), *arguments)
    error = ctypes.get_errno()
    if result != -1 or error in fine:
        escaped(what)
    else:
        refused(what, os.strerror(error))


EFAULT, EINVAL, ENOEXEC, ENOENT, EBADF, ENOTBLK = 14, 22, 8, 2, 9, 15
zero = ctypes.c_long(0)
only_allowed("init_module", (175, 105), [None, zero, None], (EFAULT, EINVAL, ENOEXEC))
only_allowed("finit_module", (313, 273), [ctypes.c_long(-1), None, zero], (EFAULT, EBADF))
only_allowed("kexec_load", (246, 104), [zero, zero, None, ctypes.c_long(0x7fff)], (EINVAL, EFAULT))
only_allowed("swapon", (167, 224), [ctypes.create_string_buffer(b"/no/such/file"), zero], (ENOENT, EINVAL))
only_allowed("acct", (163, 89), [ctypes.create_string_buffer(b"/no/such/file")], (ENOENT,))
only_allowed("quotactl", (179, 60), [ctypes.c_long(0x800002 << 8), None, zero, None], (EFAULT, EINVAL, ENOTBLK))
say("done")
