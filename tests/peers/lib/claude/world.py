"""What one case sees: a home folder, a project under git, a spool, and nothing of the machine's.

A case tells the time by flags: files that its commands touch. The file's own time says when a call began and ended, on
the clock of the requests, and an action is tied to a flag instead of to a guess how long things take.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import uuid

from lib import agent, processes
from lib.claude import server as scripted

KEPT = ("PATH", "LANG", "LC_ALL", "RUST_BACKTRACE")
KEY = "sk-ant-a-key-that-opens-nothing"
COMMAND_SECONDS = 20
FLAG_SECONDS = 30
FILES = {"a.txt": "alpha\n", "b.txt": "beta\n", "c.txt": "gamma\n"}
HOW = ("hooks", "project", "plugin", "both")  # the ways to install: `both` is hooks and plugin together


class World:
    """The folders of a case. Use it in a `with` block: at its end every process that has this home is killed."""

    def __init__(self, claude):
        self.claude = claude
        self.session = str(uuid.uuid4())
        self._base = tempfile.TemporaryDirectory(prefix="mt-", ignore_cleanup_errors=True)  # short: sockets go below it
        self.folder = pathlib.Path(self._base.name)
        self.home, self.project, self.state, self.temporary, self.flags = (
            self.folder / name for name in ("home", "project", "state", "tmp", "flags")
        )

    def __enter__(self):
        for folder in (self.home / ".claude", self.project, self.state, self.temporary, self.flags):
            folder.mkdir(parents=True, mode=0o700)
        for name, text in FILES.items():
            self.project.joinpath(name).write_text(text, encoding="utf-8")
        identity = ["-c", "user.name=peers", "-c", "user.email=peers@localhost", "-c", "commit.gpgsign=false"]
        for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "start"]):
            self.run(["git", *identity, *arguments])
        self._answer_first_questions()
        return self

    def __exit__(self, *_):
        self.end_all()
        self._base.cleanup()

    def _answer_first_questions(self):
        """What an interactive start would ask: theme, trust in the folder, use of the key, the mode without questions."""
        self.home.joinpath(".claude.json").write_text(json.dumps({
            "hasCompletedOnboarding": True, "theme": "dark", "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }), encoding="utf-8")

    def environment(self, more=None):
        """Nothing of the machine's settings or keys: a home of its own, and what is said here."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        own = {
            "HOME": str(self.home), "XDG_STATE_HOME": str(self.state), "CLAUDE_CODE_TMPDIR": str(self.temporary),
            "TMPDIR": str(self.temporary), "SHELL": "/bin/bash", "TERM": "xterm-256color", "GIT_CONFIG_NOSYSTEM": "1",
            "ANTHROPIC_API_KEY": KEY, "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1", "NO_PROXY": "127.0.0.1",
        }
        return {**kept, **own, **(more or {})}

    def settings(self, value, project=False):
        """Writes settings, the user's or the project's."""
        path = (self.project if project else self.home) / ".claude" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=2), encoding="utf-8")

    def run(self, command, check=True, seconds=COMMAND_SECONDS, **options):
        """Runs a command in the project, with this world's environment."""
        done = subprocess.run(
            command, cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds, check=False, **options,
        )
        if check and done.returncode:
            raise RuntimeError(f"{command[:4]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    # --- midturn

    def midturn(self, *arguments, check=True):
        """Runs a command line of ours, as a person in another terminal would."""
        return self.run([str(agent.binary()), *arguments], check=check)

    def install(self, how):
        """Installs the bridge in one of the ways of `HOW`; the arguments that Claude Code is then started with."""
        if how in ("hooks", "both"):
            self.midturn("hooks", "install")
        if how == "project":
            self.midturn("hooks", "install", "--project")
        if how not in ("plugin", "both"):
            return []
        plugin = self.folder / "plugin"
        self.midturn("hooks", "plugin", str(plugin))
        return ["--plugin-dir", str(plugin)]

    def send(self, receiver, text, *options):
        """`midturn send`; returns what it said, and when it had returned."""
        done = self.midturn("send", self.address(receiver), text, *options)
        return done.stdout, time.time()

    def address(self, receiver, session=None):
        """How a receiver of a joined session is written: a name, an agent id or `main`, behind SESSION/ if asked for."""
        return f"{session}/{receiver}" if session else receiver

    # --- flags

    def flag(self, name):
        """The file that stands for something that happened."""
        return self.flags / name

    def step(self, name, seconds, command="sleep {seconds}"):
        """A command that says when it begins and when it ends: flags NAME.start and NAME.end.

        It writes, so Claude Code runs it alone: commands that only read (`sleep 2`) of one reply start all at once.
        """
        work = command.format(seconds=seconds)
        return f": > {self.flag(name)}.start; {work}; : > {self.flag(name)}.end"

    def when(self, name):
        """When a flag was raised, or None."""
        try:
            return self.flag(name).stat().st_mtime
        except OSError:
            return None

    def ran(self, *names):
        """Of these steps, those that began."""
        return [name for name in names if self.when(f"{name}.start")]

    def wait(self, name, later=0.0, seconds=FLAG_SECONDS):
        """Waits until `later` seconds after a flag was raised."""
        def due():
            raised = self.when(name)
            return raised is not None and time.time() >= raised + later
        processes.wait_until(f"flag {name}", due, seconds + later)

    def after(self, name, later, reply):
        """For a script: this reply, held back until `later` seconds after a flag was raised."""
        def held(request):
            self.wait(name, later)
            return reply(request) if callable(reply) else reply
        return held

    def after_count(self, pattern, count, later, reply):
        """For a script: this reply, held back until `later` seconds after so many flags match a pattern."""
        def due():
            raised = sorted(path.stat().st_mtime for path in self.flags.glob(pattern))
            return len(raised) >= count and time.time() >= raised[count - 1] + later

        def held(_request):
            processes.wait_until(f"{count} flags {pattern}", due, FLAG_SECONDS + later)
            return reply
        return held

    # --- what Claude Code keeps

    def transcripts(self):
        """The folder of this session's project: SESSION.jsonl, SESSION/subagents/agent-ID.jsonl."""
        return self.home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(self.project))

    def transcript(self, agent_id=None):
        """The lines of the main agent's transcript, or of a subagent's."""
        folder = self.transcripts()
        below = f"{self.session}/subagents/agent-{agent_id}.jsonl" if agent_id else f"{self.session}.jsonl"
        path = folder / below
        with contextlib.suppress(OSError):
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
        return []

    def agent_id(self, name, seconds=FLAG_SECONDS):
        """The id of a subagent, once Claude Code has written it down (by its first call, not at its start)."""
        def found():
            for path in self.transcripts().glob("*/subagents/agent-*.meta.json"):
                with contextlib.suppress(OSError, ValueError):
                    if json.loads(path.read_text(encoding="utf-8")).get("name") == name:
                        return path.name.removeprefix("agent-").removesuffix(".meta.json")
            return None
        return processes.wait_until(f"id of {name}", found, seconds)

    # --- processes

    def living(self, word=""):
        """The ids of the processes that have this home, ours left out, whose command line holds a word."""
        mark = f"HOME={self.home}\0".encode()
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = mark in path.joinpath("environ").read_bytes() + b"\0"
                if ours and word.encode() in path.joinpath("cmdline").read_bytes():
                    found.append(int(path.name))
        return found

    def end_all(self):
        """Kills what still has this home: commands that outlive their session are part of some cases."""
        def gone():
            for pid in self.living():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return not self.living()
        processes.wait_until("end of every process of the case", gone, COMMAND_SECONDS)


def marked(script, text="Do it."):
    """The task of a main agent with a script."""
    return scripted.mark(script, text)
