"""Uses what it was born with: descriptors beyond the three, and a terminal."""

import fcntl
import os
import termios

from common import MARK, attempt, escaped, quietly, refused, say

NEW = f"hostile-{MARK}.inherited"

for name in os.listdir("/proc/self/fd"):
    number = int(name)
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    # The listing's own.
    if number <= 2 or target == f"/proc/{os.getpid()}/fd":
        continue
    escaped(f"descriptor {number} is {target}")
    attempt(f"write through descriptor {number}", lambda: os.close(os.open(NEW, os.O_CREAT | os.O_WRONLY, dir_fd=number)))
terminals = ["/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0"]
terminals += [f"/dev/pts/{name}" for name in (quietly(lambda: os.listdir("/dev/pts")) or ["0"]) if name != "ptmx"]
for number in (0, 1, 2):
    (escaped if os.isatty(number) else lambda what: refused(what, "no terminal"))(f"descriptor {number} is a terminal")
for path in terminals:
    try:
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        refused(f"open {path}", error)
        continue
    try:
        fcntl.ioctl(terminal, termios.TIOCSTI, b" ")
        escaped(f"type into {path}")
    except OSError as error:
        refused(f"type into {path}", error)
    os.close(terminal)
say("done")
