"""Starts the real Claude Code in a world: `-p`, `-p` with stream-json both ways, or interactive in a tmux of its own."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile

from lib import processes

ALLOWED = ("--dangerously-skip-permissions",)
SESSION_SECONDS = 60
SCREEN = ("-x", "120", "-y", "40")
READY = "bypass permissions"  # in the last line of the screen once it takes keys


class Session:
    """A running Claude Code; its process id is what hooks see as CLAUDE_PID."""

    def __init__(self, pid, process, output):
        self.pid = pid
        self._process = process
        self._output = output

    def finish(self, seconds=SESSION_SECONDS):
        """Waits for its end; the exit status."""
        return self._process.wait(timeout=seconds)

    def said(self):
        """What it has written so far, errors too."""
        return processes.written(self._output)

    def kill9(self):
        """`kill -9` of Claude Code alone: what it had started is left to whoever looks after it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._gone()

    def _gone(self):
        self._process.wait(timeout=SESSION_SECONDS)


class Stream(Session):
    """`-p` with stream-json: messages in, events out."""

    def send(self, text, **more):
        """Sends a user message; `priority=` and `uuid=` are the protocol's own."""
        self.write({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, **more})

    def write(self, message):
        """Writes one message of the protocol."""
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def close(self):
        """No more messages: it ends when its work is done."""
        self._process.stdin.close()

    def events(self):
        """The events so far."""
        lines = self.said().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


class Terminal(Session):
    """An interactive session; it ends with `/exit`, or with its tmux."""

    def __init__(self, pid, process, tmux):
        super().__init__(pid, process, None)
        self._tmux = tmux

    def type(self, text):
        """Types a line; Enter goes when the line stands on the screen, which a paste would swallow."""
        self._tmux("send-keys", "-l", text)
        shown = text.split("\n")[-1][-40:]
        processes.wait_until("the typed line", lambda: shown in self.screen(), SESSION_SECONDS)
        self._tmux("send-keys", "Enter")

    def key(self, *names):
        """Presses keys, by tmux's names."""
        self._tmux("send-keys", *names)

    def screen(self):
        """The screen as text."""
        return self._tmux("capture-pane", "-p")

    def said(self):
        return self.screen()

    def see(self, text, seconds=SESSION_SECONDS):
        """Waits until the screen shows a text."""
        try:
            processes.wait_until(f"{text!r} on the screen", lambda: text in self.screen(), seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it shows:\n{self.screen()}") from error

    def finish(self, seconds=SESSION_SECONDS):
        processes.wait_until("end of the session", lambda: not _alive(self.pid), seconds)

    def _gone(self):
        self.finish()


def _alive(pid):
    """Whether a process runs: a zombie doesn't."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _command(world, arguments, permissions, session=True):
    return [str(world.claude), *permissions, *(("--session-id", world.session) if session else ()), *arguments]


def _environment(world, server, more):
    return world.environment({"ANTHROPIC_BASE_URL": server.url, **(more or {})})


@contextlib.contextmanager
def printing(world, server, task, arguments=(), permissions=ALLOWED, environment=None, resume=None):
    """`claude -p TASK`; `resume=ID` goes on with a session instead of beginning this world's."""
    more = ["--resume", resume] if resume else []
    command = _command(world, [*more, *arguments, "-p", task], permissions, session=not resume)
    with tempfile.TemporaryFile("w+") as output:
        with processes.running(
            command, cwd=world.project, env=_environment(world, server, environment), stdin=subprocess.DEVNULL, stdout=output,
            stderr=output,
        ) as process:
            yield Session(process.pid, process, output)


@contextlib.contextmanager
def streaming(world, server, arguments=(), permissions=ALLOWED, environment=None):
    """`claude -p` with stream-json both ways, in whose hands nothing is yet: `send` what there is to do."""
    formats = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command = _command(world, [*arguments, *formats, "--replay-user-messages"], permissions)
    with tempfile.TemporaryFile("w+") as output:
        with processes.running(
            command, cwd=world.project, env=_environment(world, server, environment), stdin=subprocess.PIPE, stdout=output,
            stderr=output,
        ) as process:
            yield Stream(process.pid, process, output)


@contextlib.contextmanager
def terminal(world, server, arguments=(), permissions=ALLOWED, environment=None):
    """An interactive `claude` in a tmux server of its own, which ends with this process."""
    socket = str(world.folder / "tmux")

    def tmux(*words):
        done = subprocess.run(["tmux", "-S", socket, *words], capture_output=True, text=True, timeout=20, check=False)
        return done.stdout

    everything = _environment(world, server, environment)
    with processes.running(["tmux", "-S", socket, "-f", "/dev/null", "-D"], cwd=world.project, env=everything) as process:
        processes.wait_until("tmux", lambda: os.path.exists(socket), SESSION_SECONDS, process)
        tmux("new-session", "-d", "-c", str(world.project), *SCREEN, *_command(world, arguments, permissions))
        pid = processes.wait_until("a pane", lambda: tmux("list-panes", "-F", "#{pane_pid}").strip(), SESSION_SECONDS)
        session = Terminal(int(pid), process, tmux)
        session.see(READY)
        yield session
