"""Wants a program in its folder that runs with its owner's rights whoever starts it: by every call
that gives a file its mode."""

import ctypes
import os
import socket
import stat

from common import attempt, escaped, libc, quietly, say, system_call

HERE, AT_SYMLINK_FOLLOW, O_TMPFILE = -100, 0x400, 0o20000000 | os.O_DIRECTORY
BITS = stat.S_ISUID | stat.S_ISGID


def looked_at(what, path="new"):
    """The mode that came of it tells."""
    mode = quietly(lambda: os.stat(path).st_mode)
    if mode is not None and mode & BITS:
        escaped(f"{what}: mode {stat.S_IMODE(mode):04o}")
    quietly(lambda: os.unlink(path))


def linked(nameless):
    libc.linkat(HERE, f"/proc/self/fd/{nameless}".encode(), HERE, b"new", AT_SYMLINK_FOLLOW)


def plain():
    open("new", "w").write("#!/bin/sh\nid\n")


for bits in (0o4755, 0o2755, 0o6711):
    name = ctypes.create_string_buffer(b"new")
    for what, change in (
        ("chmod", lambda: os.chmod("new", bits)),
        ("fchmod", lambda: os.fchmod(os.open("new", os.O_RDONLY), bits)),
        ("fchmodat", lambda: os.chmod("new", bits, dir_fd=os.open(".", os.O_RDONLY))),
        ("chmod by /proc", lambda: os.chmod(f"/proc/self/fd/{os.open('new', os.O_RDONLY)}", bits)),
    ):
        plain()
        attempt(f"{what} to {bits:o}", change)
        looked_at(what)
    plain()
    system_call("fchmodat2", (452, 452), HERE, name, bits, 0, tell=say)
    looked_at("fchmodat2")
    for what, make in (
        ("open", lambda: os.open("new", os.O_CREAT | os.O_RDWR, bits)),
        ("mknod", lambda: os.mknod("new", stat.S_IFREG | bits)),
        ("link of a nameless file", lambda: linked(os.open(".", O_TMPFILE | os.O_RDWR, bits))),
    ):
        attempt(f"{what} with {bits:o}", make)
        looked_at(what)
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_RDWR, bits, 0)
    system_call("openat2", (437, 437), HERE, name, how, 24, tell=say)
    looked_at("openat2")
    listener = socket.socket(socket.AF_UNIX) if quietly(lambda: socket.socket(socket.AF_UNIX)) else None
    if listener:
        attempt("fchmod of a socket", lambda: os.fchmod(listener.fileno(), bits))
        attempt("bind", lambda: listener.bind("new"))
        looked_at("bind of a socket")
# What builds do goes on.
plain()
os.chmod("new", 0o755)
os.close(os.open("made", os.O_CREAT | os.O_RDWR, 0o711))
if os.stat("new").st_mode & 0o777 == 0o755:
    say("done")
