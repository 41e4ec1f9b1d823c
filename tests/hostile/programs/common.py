"""What the hostile programs share. Each is bounded by an alarm, far above what it should be given.

A program says what it met: `refused: WHAT: WHY`, `did: WHAT` for what may be an illusion of the
sandbox (the harness looks at the world), `escaped: WHAT` for what only the program can see,
`got: HEX` for bytes it read (in hexadecimal, so that no redaction hides them), `reached: N` for
how far it came, and `done` at its end.
"""

import ctypes
import json
import os
import platform
import signal
import sys

LIFETIME = 60
"""Seconds after which everything here ends by itself."""

GOT_MAX = 320
"""Bytes from the beginning of a find that are told."""

PIECES_MAX = 12
"""Pieces that are told of one find."""

TARGETS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets.json")))
CASE = os.environ.get("HOSTILE_CASE", "nobody")
MARK = TARGETS["mark"] + "-" + CASE
EVIDENCE = TARGETS["evidence"] + "-" + CASE

libc = ctypes.CDLL(None, use_errno=True)

_ARM = platform.machine() in ("aarch64", "arm64")


def number(x86_64, aarch64):
    """A system call's number on this machine."""
    return aarch64 if _ARM else x86_64


def bounded():
    """Ends this process when its time is over: a fork has to call it again."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIFETIME)


def say(line):
    """A line, at once and whole."""
    os.write(1, (line + "\n").encode("utf-8", "replace"))


def refused(what, why):
    say(f"refused: {what}: {why}")


def did(what):
    say(f"did: {what}")


def escaped(what):
    say(f"escaped: {what}")


def got(what, data):
    """Tells the beginning of what was read, and every place that looks like a planted secret."""
    say(f"found: {what}: {len(data)} bytes")
    pieces, at = [data[:GOT_MAX]], data.find(b"canary", GOT_MAX - 64)
    while at >= 0 and len(pieces) < PIECES_MAX:
        pieces.append(data[max(0, at - 32):at + 96])
        at = data.find(b"canary", at + 96)
    for piece in pieces:
        if piece:
            say("got: " + piece.hex())


def attempt(what, action, tell=did):
    """Tries something; tells what came of it."""
    try:
        result = action()
    except (OSError, ValueError) as error:
        refused(what, error)
        return None
    if tell is not None:
        tell(what)
    return result


def read(path, limit=1 << 16):
    """Tries to read a file, and hands over what is in it."""
    def action():
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.read(descriptor, limit)
        finally:
            os.close(descriptor)
    data = attempt(f"read {path}", action, None)
    if data is not None:
        got(path, data)
    return data


def called(what, result, tell=escaped):
    """What came of a system call that gives -1 for an error."""
    if result == -1:
        refused(what, os.strerror(ctypes.get_errno()))
        return False
    tell(what)
    return True


def system_call(what, numbers, *arguments, tell=escaped):
    """A system call by its numbers."""
    words = [argument if not isinstance(argument, int) else ctypes.c_long(argument) for argument in arguments]
    result = libc.syscall(ctypes.c_long(number(*numbers)), *words)
    called(what, result, tell)
    return result


def quietly(action):
    """What fails here is of no interest."""
    try:
        return action()
    except OSError:
        return None


def ancestors():
    """The processes above this one, as far as they are the coordinator's."""
    pid, found = os.getppid(), []
    while pid > 1 and len(found) < 8:
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read()
            parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            # Hidden, and a parent all the same.
            found += [pid] if not found else []
            break
        if b"midturn" not in words and b"bwrap" not in words and b"/proc/self/exe" not in words:
            break
        found.append(pid)
        # Who started the daemon has done no harm.
        if pid == TARGETS["daemon"]:
            break
        pid = parent
    return found


def daemons():
    """All numbers under which the daemon and another agent's command might be found."""
    found = [TARGETS["daemon"], *TARGETS["others"]]
    for name in os.listdir("/proc"):
        words = quietly(lambda: open(f"/proc/{name}/cmdline", "rb").read()) if name.isdigit() else None
        if words and b"midturn" in words and TARGETS["mark"].encode() in words and b"serve" in words:
            found.append(int(name))
    return sorted(set(found))


bounded()
