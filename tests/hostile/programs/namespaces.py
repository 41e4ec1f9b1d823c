"""Makes namespaces of its own, in which it is root, and there tries what root may: mounts over, makes
writable again, takes covers away; then writes outside and reads what was hidden."""

import ctypes
import os

from common import MARK, TARGETS, attempt, bounded, called, did, libc, read, say

NEWUSER, NEWNS, NEWPID, NEWNET, NEWCGROUP, NEWIPC = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x02000000, 0x08000000
REMOUNT, BIND, REC, PRIVATE = 32, 4096, 16384, 1 << 18
DETACH = 2
NEW = f"hostile-{MARK}"


def mount(source, target, kind, flags):
    texts = [text.encode() if text is not None else None for text in (source, target, kind)]
    return libc.mount(*texts, ctypes.c_ulong(flags), None)


def as_root(own_user):
    """What root of a namespace might do. Nothing of it reaches the machine's own mounts: those
    here are cut off from them first, and go with this process."""
    if not called("cut the mounts off", mount(None, "/", None, PRIVATE | REC), did):
        return
    for path in ["/", "/etc", "/usr", "/tmp", "/var/tmp"] + TARGETS["folders"]:
        called(f"make {path} writable", mount(None, path, None, REMOUNT | BIND), did)
        # Of a file system itself only where its root is not the machine's.
        if own_user:
            called(f"make the file system of {path} writable", mount(None, path, None, REMOUNT), did)
    for path in TARGETS["covered"]:
        called(f"uncover {path}", libc.umount2(path.encode(), DETACH), did)
    os.makedirs("inside", exist_ok=True)
    called("mount a file system", mount("tmpfs", "inside", "tmpfs", 0), did)
    called("see / a second time", mount("/", "inside", None, BIND | REC), did)
    called("see /proc anew", mount("proc", "inside/proc", "proc", 0), did)
    called("see /sys anew", mount("sysfs", "inside/sys", "sysfs", 0), did)
    for folder in TARGETS["folders"]:
        for base in ("", os.path.abspath("inside")):
            path = f"{base}{folder}/{NEW}.ns"
            attempt(f"make {path}", lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)))
    for secret in TARGETS["secrets"]:
        read(secret)
        read(os.path.abspath("inside") + secret)


def inside(flags, name):
    """In a process of its own: a namespace is not left again."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        bounded()
        uid, gid = os.getuid(), os.getgid()
        if not called(f"{name}", libc.unshare(flags), did):
            return
        if flags & NEWUSER:
            attempt("refuse groups", lambda: open("/proc/self/setgroups", "w").write("deny"), None)
            attempt("be root", lambda: open("/proc/self/uid_map", "w").write(f"0 {uid} 1"))
            attempt("be root's group", lambda: open("/proc/self/gid_map", "w").write(f"0 {gid} 1"), None)
        as_root(flags & NEWUSER)
    finally:
        os._exit(0)


# Here as it is: taken away at once, so that nobody finds it.
os.makedirs("mounted", exist_ok=True)
if called("mount a file system where I am", mount("tmpfs", "mounted", "tmpfs", 0), did):
    called("unmount it", libc.umount2(b"mounted", DETACH), did)
inside(NEWNS, "a mount namespace")
inside(NEWUSER | NEWNS, "a user and a mount namespace")
inside(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC | NEWCGROUP, "all namespaces")
say("done")
