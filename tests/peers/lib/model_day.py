"""A day's work with a real, small model, as far as it goes (issue 14; tests/terminal/day.rs has all of it, scripted).

So small a model calls no tools: a person spawns the worker and leaves the file in its folder that it would have
written. What it says is its own, and goes where an agent's words go: into conversations, reports and commits.
"""

import contextlib
import http.client
import json
import socket

from lib import agent as agents
from lib import events, tap

NAME = "model day"
MODEL = "openai-chat/smollm2"
RUN_SECONDS = 300  # as in against_model.py
REPLY_TOKENS = 40
TASK = "Tell me a long story about a sailor and the sea."
CORRECTION = "Not the sea. Say one short sentence about a mountain."
SECOND = "Thank you. Now say one short sentence about a river."


def check(report, url):
    """From the first word to a clean repository. Each step stands on the one before it."""
    with tap.Tap(url) as line, agents.workspace({"README.md": "A story.\n"}) as work:
        configured = work.parent / ".config" / "midturn"
        configured.mkdir(parents=True)
        text = f'model = "{MODEL}"\n[providers.openai-chat]\nmax_output_tokens = {REPLY_TOKENS}\n'
        configured.joinpath("midturn.toml").write_text(text, encoding="utf-8")
        day = Day(report, line, work)
        said = day.runs_and_is_corrected()
        day.takes_what_was_made(said)
        day.says_a_second_word()
        day.cleans_up()


class Day:
    """The steps. `midturn` runs in the folder `work` and asks the model through the tap `line`."""

    def __init__(self, report, line, work):
        self.report = report
        self.line = line
        self.work = work

    def runs_and_is_corrected(self):
        """A worker is spawned while the lead speaks, and the lead corrected; what the worker said last."""
        with agents.working(self.work, MODEL, TASK, self.line.url) as agent:
            agent.until("a word of the lead", lambda: agent.of("text_delta", agent="lead"), RUN_SECONDS)
            added = self._post("sessions/current/agents", {"name": "worker", "prompt": "Say one short sentence about a boat."})
            self.report.equal(f"{NAME}: the worker has a folder of its own", (added.get("name"), "shared" in added), ("worker", False))
            agent.say(f"lead! {CORRECTION}")
            agent.until("the worker's call", lambda: agent.of("model_started", agent="worker"), RUN_SECONDS)
            (folder,) = self.work.parent.glob(".local/state/midturn/worktrees/*/worker")
            folder.joinpath("boat.txt").write_text("A boat.\n", encoding="utf-8")
            status = agent.wait(RUN_SECONDS)
        lead = [e["outcome"] for e in agent.of("run_finished", agent="lead")][-1:]
        self.report.equal(f"{NAME}: the status says how the lead ended", status, events.EXIT[lead[0]] if lead else "an end")
        injected = [e["text"] for e in agent.of("message_injected", agent="lead")]
        self.report.check(f"{NAME}: the lead read the correction", any(CORRECTION in text for text in injected), injected)
        said = [e["text"] for e in agent.of("model_finished", agent="worker")]
        self.report.check(f"{NAME}: the worker spoke", said and said[-1], said)
        return said[-1] if said else ""

    def takes_what_was_made(self, said):
        """The worker's branch is looked at and merged, though no Midturn runs; its commit has the worker's words."""
        diff = self._does("diff", "worker")
        self.report.check(f"{NAME}: the branch has the file", "+A boat." in diff, diff)
        self._does("merge", "worker")
        self.report.check(f"{NAME}: the file is there", self.work.joinpath("boat.txt").is_file())
        commit = self._does("git", "log", "-1", "--format=%s%n%b", "--", "boat.txt")
        subject = commit.partition("\n")[0].rstrip("…. ")
        words = "".join(mark for mark in said if mark not in "*#`")
        self.report.check(f"{NAME}: a commit begins with the worker's words", subject and subject in words, [subject, said])
        self.report.check(f"{NAME}: and names the worker", "Midturn-Agent: worker" in commit, commit)

    def says_a_second_word(self):
        """The session goes on: the model reads what was said before, and answers."""
        before = len(self.line.models())
        resumed = self._run("resume", "last", "--once", "--json", SECOND)
        told = [json.loads(line) for line in resumed.stdout.splitlines()]
        replies = [e["text"] for e in told if e["type"] == "model_finished"]
        self.report.check(f"{NAME}: the second word is answered", replies and replies[-1], resumed.stderr)
        asked = json.dumps(self.line.models()[before].body)
        order = [asked.find(text) for text in (TASK, CORRECTION, SECOND)]
        self.report.check(f"{NAME}: with all that was said before it", -1 < order[0] < order[1] < order[2], order)
        shown = self._does("show", "lead")
        self.report.check(f"{NAME}: and stands in the conversation", all(text.strip() in shown for text in replies), shown)

    def cleans_up(self):
        """What is merged is not needed any more."""
        self._does("prune", "--yes")
        branches = self._does("git", "branch", "--list", "midturn/*")
        self.report.equal(f"{NAME}: a merged branch is gone", branches, "")

    def _does(self, *words):
        """What a command prints that has to succeed."""
        done = self._run(*words)
        self.report.check(f"{NAME}: {' '.join(words[:2])}", done.returncode == 0, done.stdout + done.stderr)
        return done.stdout

    def _run(self, *words):
        """`midturn` with these words, or git with those after it."""
        command = words if words[0] == "git" else [str(agents.binary()), *words]
        return agents.ended(self.work, self.line.url, command, RUN_SECONDS)

    def _post(self, path, body):
        """Asks the process that carries the session, as a program on this machine does."""
        (place,) = self.work.parent.glob(".local/state/midturn/projects/*/interface.json")
        found = json.loads(place.read_text(encoding="utf-8"))
        with contextlib.closing(OnSocket(found["socket"])) as connection:
            headers = {"Authorization": f"Bearer {found['token']}", "Content-Type": "application/json"}
            connection.request("POST", f"/v1/{path}", json.dumps(body), headers)
            return json.loads(connection.getresponse().read())


class OnSocket(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path):
        super().__init__("midturn")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)
