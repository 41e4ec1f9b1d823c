"""Runs the real binary on a task in a temporary git repository, and reads its events as they come."""

import contextlib
import functools
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading

from lib import processes

BUILD_SECONDS = 3600
RUN_SECONDS = 60
LIVE = ("text_delta", "thinking_delta", "call_delta", "tool_output", "setup_output")
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "RUST_BACKTRACE")
DUMMY_KEY = "a-key-that-opens-nothing"
PROTOCOLS = {"anthropic": "/v1/messages", "openai-chat": "/v1/chat/completions", "openai": "/v1/responses"}


@functools.cache
def binary():
    """The program under test: MIDTURN_BIN if set, else built here once."""
    if "MIDTURN_BIN" in os.environ:
        return pathlib.Path(os.environ["MIDTURN_BIN"]).resolve()
    command = ["cargo", "build", "--quiet", "--package", "midturn"]
    subprocess.run(command, cwd=processes.repository(), check=True, timeout=BUILD_SECONDS)
    return processes.target_folder() / "debug" / "midturn"


@contextlib.contextmanager
def workspace(files):
    """A temporary git repository with these files committed."""
    with tempfile.TemporaryDirectory(prefix="midturn-peers-") as base:
        folder = pathlib.Path(base, "work")
        folder.mkdir()
        for name, text in files.items():
            folder.joinpath(name).write_text(text, encoding="utf-8")
        identity = ["-c", "user.name=peers", "-c", "user.email=peers@localhost", "-c", "commit.gpgsign=false"]
        for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--allow-empty", "-m", "start"]):
            subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, env=_environment(base), timeout=60)
        yield folder


def _environment(base, more=None):
    """Nothing of the machine's settings or keys reaches the program: a home of its own, and what is said here."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1", **(more or {})}


def _asking(folder, server):
    """The environment in which models are asked at `server`."""
    keys = {"ANTHROPIC_API_KEY": DUMMY_KEY, "OPENAI_API_KEY": DUMMY_KEY}
    addresses = {"ANTHROPIC_BASE_URL": server, "OPENAI_BASE_URL": f"{server}/v1", "NO_PROXY": "127.0.0.1"}
    return _environment(folder.parent, {**keys, **addresses})


def ended(folder, server, command, seconds=RUN_SECONDS):
    """A command that runs in the folder and that nobody types to, once it has ended."""
    return subprocess.run(
        command, cwd=folder, env=_asking(folder, server), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=seconds, check=False,
    )


@contextlib.contextmanager
def working(folder, model, task, server, *settings):
    """The binary at work on a task; `model` is PROTOCOL/NAME, `server` the address of whoever answers for it, and
    `settings` are configuration, KEY=VALUE."""
    # Commands say in the project folder, also from a worktree, how far they are.
    command = [str(binary()), "run", "--json", "--steer-stdin", "--model", model, "--set", f"sandbox.writable={folder}"]
    command += [argument for setting in settings for argument in ("--set", setting)] + [task]
    with tempfile.TemporaryFile("w+") as log:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        with processes.running(command, cwd=folder, env=_asking(folder, server), **pipes) as process:
            yield Agent(process, log)


class Agent:
    """A running binary: its events so far, and a way to write to it."""

    def __init__(self, process, log):
        self.events = []
        self.noise = []  # lines on standard output that are no events
        self._process = process
        self._log = log
        self._complaints = ""  # what it said on standard error, kept when it has ended
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def say(self, line):
        """Writes a line to its standard input."""
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def until(self, what, condition, seconds=RUN_SECONDS):
        """Reads events until `condition()` holds; fails at the deadline or when the program has ended."""
        return self._wait_until(what, condition, seconds, self._process)

    def wait(self, seconds=RUN_SECONDS):
        """Waits for the program's end, its standard input left open; its exit status."""
        status = self._wait_until("end of the run", self._ended, seconds)
        self._reader.join(timeout=5)
        self._drain()
        self._complaints = processes.written(self._log)
        return int(status)

    def _wait_until(self, what, condition, *limits):
        try:
            return processes.wait_until(what, lambda: self._drain() or condition(), *limits)
        except (RuntimeError, TimeoutError) as error:
            raise RuntimeError(f"{error}; its last words:\n{self.last()}") from None

    def _ended(self):
        """The exit status as a text, which is true even when it is 0; nothing while it runs."""
        status = self._process.poll()
        return None if status is None else str(status)

    def _drain(self):
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get_nowait()) is not None:
                self._take(line)

    def _take(self, line):
        event = None
        with contextlib.suppress(ValueError):
            event = json.loads(line)
        if isinstance(event, dict) and "type" in event:
            self.events.append(event)
        else:
            self.noise.append(line.decode(errors="replace"))

    def of(self, kind, **fields):
        """The events of a type with these fields."""
        matching = [e for e in self.events if e.get("type") == kind]
        return [e for e in matching if all(e.get(name) == value for name, value in fields.items())]

    def last(self):
        """The last few events and what it said on standard error, for a failed check."""
        complaints = self._complaints or processes.written(self._log)
        return "\n".join(map(json.dumps, self.events[-12:])) + "\nstderr: " + complaints[-1500:]
