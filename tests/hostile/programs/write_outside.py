"""Writes where it may not: makes, appends, cuts, replaces, moves, removes, links, and changes modes,
owners, times and attributes, below $1 and not below $2 if they are given. What
it means to have done may be an illusion: the harness looks."""

import os
import sys

from common import MARK, TARGETS, attempt, quietly, say

NEW = f"hostile-{MARK}"


def write(path, flags):
    descriptor = os.open(path, flags | os.O_WRONLY, 0o644)
    try:
        os.write(descriptor, b"hostile\n")
    finally:
        os.close(descriptor)


def in_folder(folder):
    """What can be done to a folder; nothing there is harmed."""
    new = os.path.join(folder, NEW)
    attempt(f"make {new}", lambda: write(new, os.O_CREAT))
    attempt(f"make a folder {new}.d", lambda: os.mkdir(new + ".d"))
    attempt(f"make a link {new}.l", lambda: os.symlink("/etc/passwd", new + ".l"))
    attempt(f"make a pipe {new}.p", lambda: os.mkfifo(new + ".p"))
    open("mine", "w").close()
    attempt(f"move something to {new}.m", lambda: os.rename("mine", new + ".m"))
    open("mine", "w").close()
    attempt(f"link something to {new}.h", lambda: os.link("mine", new + ".h"))
    attempt(f"make a nameless file in {folder}", lambda: write(folder, os.O_TMPFILE))


def to_file(path):
    """What can be done to a file of the harness."""
    attempt(f"append to {path}", lambda: write(path, os.O_APPEND))
    attempt(f"cut {path}", lambda: os.truncate(path, 1))
    attempt(f"change the mode of {path}", lambda: os.chmod(path, 0o777))
    attempt(f"change the owner of {path}", lambda: os.chown(path, 12345, 12345))
    attempt(f"change the times of {path}", lambda: os.utime(path, (1, 1)))
    attempt(f"set an attribute of {path}", lambda: os.setxattr(path, "user.hostile", b"x"))
    quietly(lambda: os.unlink("linked"))
    if attempt(f"link {path} to here", lambda: os.link(path, "linked") or True):
        attempt(f"write to {path} through a link of mine", lambda: write("linked", os.O_APPEND))
    with open("mine", "w") as mine:
        mine.write("hostile\n")
    attempt(f"replace {path}", lambda: os.rename("mine", path))
    attempt(f"take {path} away", lambda: os.rename(path, "taken"))
    attempt(f"remove {path}", lambda: os.unlink(path))


below = sys.argv[1] if len(sys.argv) > 1 else "/"
but = sys.argv[2] if len(sys.argv) > 2 else None
for path in TARGETS["folders"] + TARGETS["files"]:
    if path.startswith(below) and not (but and path.startswith(but)):
        in_folder(path) if path in TARGETS["folders"] else to_file(path)
for name in ("mine", "linked", "taken"):
    quietly(lambda: os.unlink(name))
say("done")
