"""Starts other programs and makes sure that none outlives the run.

Every process is the leader of a group of its own; the groups are killed when their `with` block is left, and the
kernel kills the leaders if this process dies first (Linux). Waiting is polling with a deadline.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

POLL_SECONDS = 0.02
LOG_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1
PRCTL = getattr(ctypes.CDLL(None), "prctl", None)  # looked up here: between fork and exec one may only call


@contextlib.contextmanager
def running(command, **options):
    """A process in a group of its own, killed with its group when the block is left."""
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with_parent, **options)
    try:
        yield process
    finally:
        kill(process)


def kill(process):
    """Kills the group of a process we started, and reaps the process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            if pipe:
                pipe.close()


def _die_with_parent():
    """Between fork and exec: asks for a SIGKILL when the parent dies."""
    if PRCTL:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(what, condition, seconds, process=None):
    """Polls until `condition()` is true and returns its value; fails at the deadline, or when the process has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = process is not None and process.poll() is not None
        value = condition()
        if value:
            return value
        if ended:
            raise RuntimeError(f"the process ended with {process.returncode} before {what}")
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"no {what} within {seconds} s")


def written(log):
    """What a process has written so far to a file it shares with us. (Reading moves no offset, which it shares too.)"""
    return os.pread(log.fileno(), LOG_BYTES, 0).decode(errors="replace")


def address(log, pattern, process, seconds):
    """The first group of `pattern` in a server's log, once it is there; what the server said, if it ends instead."""
    try:
        found = wait_until("address of the server", lambda: pattern.search(written(log)), seconds, process)
    except (RuntimeError, TimeoutError) as error:
        raise RuntimeError(f"{error}; it said: {written(log)[-2000:]}") from error
    return found.group(1)


def healthy(url, process, seconds):
    """Waits until a server answers a GET of /health."""
    wait_until("answer of the server", lambda: _answers(f"{url}/health"), seconds, process)


def _answers(url):
    """Whether a GET of the URL is answered with a success."""
    with contextlib.suppress(OSError, urllib.error.URLError):
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    return False


def stop_on_signals():
    """Turns SIGTERM and SIGHUP into an exit that runs every `finally`, so that a cancelled run leaves no server."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))


def repository():
    """The top folder of this repository."""
    return pathlib.Path(__file__).resolve().parents[3]


def target_folder():
    """Where cargo builds."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or repository() / "target")
