"""Becomes the daemon as a person's shell would start it: with a terminal, and with descriptors that
somebody forgot to close: 8 is a file outside, 9 a folder, one more the terminal's other side.
With `--without-namespaces` on a machine that has none for ordinary users: in a user namespace of
its own that allows no further one."""

import ctypes
import fcntl
import os
import pty
import sys
import termios

NEWUSER = 0x10000000


def without_namespaces():
    """Its limits are its own; who is not its root loses all privileges when something is executed."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "no user namespace to begin with")
    for file, text in [
        ("/proc/self/setgroups", "deny"),
        ("/proc/self/uid_map", f"1000 {user} 1"),
        ("/proc/self/gid_map", f"1000 {group} 1"),
        ("/proc/sys/user/max_user_namespaces", "0"),
    ]:
        with open(file, "w") as limit:
            limit.write(text)


outside, words = sys.argv[1], sys.argv[2:]
if words[0] == "--without-namespaces":
    words = words[1:]
    without_namespaces()
other, terminal = pty.openpty()
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.dup2(terminal, 0)
os.dup2(os.open(outside + "/canary.txt", os.O_RDWR), 8)
os.dup2(os.open(outside, os.O_RDONLY | os.O_DIRECTORY), 9)
os.set_inheritable(other, True)
os.execv(words[0], words)
