"""The real binary and real tools against aimock: calls and results, messages of every kind, a cut stream, errors.

Every scenario plays in all three protocols. Of a scenario's replies aimock takes the first whose `match` holds: by
the call whose result comes last, by what the last user message says, or by how many requests there were.
"""

import contextlib
import json
import os
import pathlib
import signal

from lib import agent as agents
from lib import events, pairing, processes, streams, tap
from lib.aimock import serving

FEEDBACK = "Leave that and write nothing more."
SKIPPED = "[Skipped: message received from the user before this ran]"
INJECTED = f"[User feedback: {FEEDBACK}]"
LONG_REPLY = " ".join(f"word{number}" for number in range(400))
NAP = f"600.{os.getpid():07}"  # seconds; longer than any run may take, and ours alone


def check(report, folder):
    """Every scenario in every protocol, with one aimock."""
    pairing.self_check(report)
    with serving(folder) as aimock:
        for protocol in agents.PROTOCOLS:
            for scenario in SCENARIOS:
                name = f"aimock {protocol} {scenario.__name__.strip('_').replace('_', ' ')}"
                report.guarded(name, scenario, report, name, aimock, protocol)


class Session:
    """One run against aimock, with the tap between."""

    def __init__(self, aimock, protocol, files, replies):
        """`replies` gives aimock's fixtures for a working folder."""
        self.model = f"peer-{protocol}"
        self.aimock, self.protocol, self.files, self.replies = aimock, protocol, files, replies

    def play(self, report, name, meanwhile=lambda agent, folder: None, outcome="finished"):
        """Runs a task to its end, with something done meanwhile; checks what every run must hold."""
        with tap.Tap(self.aimock.url) as self.tap, agents.workspace(self.files) as folder:
            model = {"model": self.model}
            self.aimock.load([{**reply, "match": {**model, **reply["match"]}} for reply in self.replies(folder)])
            with agents.working(folder, f"{self.protocol}/{self.model}", "Do the task.", self.tap.url) as self.agent:
                meanwhile(self.agent, folder)
                status = self.agent.wait()
            self.after = {p.name: p.read_text("utf-8") for p in folder.iterdir() if p.is_file()}
        events.check(report, name, self.agent, status, outcome)
        self._requests(report, name)
        streams.check(report, name, self.protocol, self.requests, self.agent.of("model_finished"))

    def _requests(self, report, name):
        """The requests, as they came and as aimock saw them."""
        self.journal, self.requests = self.aimock.journal(), self.tap.models()
        endpoint = agents.PROTOCOLS[self.protocol]
        paths = {entry["path"] for entry in self.journal}
        report.equal(f"{name}: requests went to", sorted(paths), [endpoint])
        problems = [p for p in map(pairing.journal_problem, self.journal) if p]
        report.check(f"{name}: calls and results are paired in aimock's journal", not problems, problems)
        problems = [p for p in map(pairing.problem_on_wire, self.requests) if p]
        report.check(f"{name}: calls and results are paired on the wire", not problems, problems)
        report.check(f"{name}: the prompt only grows", not _shrunk(self.requests), _shrunk(self.requests))
        calls = len(self.agent.of("model_started"))
        report.equal(f"{name}: every model call is one request", calls, len(self.requests))

    def last_of(self, task="Do the task."):
        """The last request of the agent that was given this task."""
        return [r for r in self.requests if task in pairing.first_user_text(r.path, r.body)][-1]


def _shrunk(requests):
    """The first request whose blocks aren't a prefix of the same agent's next one, as a text."""
    prompts = {}
    for request in requests:
        after = pairing.blocks(request.path, request.body)
        before = prompts.get(pairing.first_user_text(request.path, request.body), [])
        if after[: len(before)] != before:
            return f"before {before}\nafter  {after}"
        prompts[pairing.first_user_text(request.path, request.body)] = after
    return ""


def _reply(text, *calls, after=None, says=None):
    """A fixture: a text and calls, given when the result of call `after` comes last, when the last user message has
    the text `says`, or always."""
    match = {"toolCallId": after} if after else {"userMessage": says} if says else {}
    response = {"content": text, **({"toolCalls": list(calls)} if calls else {})}
    return {"match": match, "chunkSize": 6, "response": response}


def _call(identity, tool, /, **arguments):
    """A tool call in a fixture."""
    return {"id": identity, "name": tool, "arguments": arguments}


def _files(report, name, aimock, protocol):
    """Calls that run side by side, calls that run one after another, one that fails: real files come of it."""

    def replies(_folder):
        join = "cat alpha.txt beta.txt gamma.txt > joined.txt; echo joined"
        return [
            _reply("All is in place.", after="c6"),
            _reply("One is missing.", _call("c5", "read", path="no-such-file.txt"),
                   _call("c7", "edit", path="gamma.txt", old="third", new="3rd"),
                   _call("c6", "bash", command="rm beta.txt; echo removed"), after="c4"),
            _reply("I will look first.", _call("c1", "read", path="alpha.txt"), _call("c2", "read", path="beta.txt"),
                   _call("c3", "write", path="gamma.txt", content="third\n"), _call("c4", "bash", command=join)),
        ]

    session = Session(aimock, protocol, {"alpha.txt": "first\n", "beta.txt": "second\n"}, replies)
    session.play(report, name)
    done = dict.fromkeys(["c1", "c2", "c3", "c4", "c6", "c7"], "completed")
    report.equal(f"{name}: how the calls ended", events.statuses(session.agent), {**done, "c5": "failed"})
    wanted = {"alpha.txt": "first\n", "gamma.txt": "3rd\n", "joined.txt": "first\nsecond\nthird\n"}
    report.equal(f"{name}: the files", session.after, wanted)
    texts = dict(pairing.results_of(session.last_of()))
    report.check(f"{name}: results carry what was read", "first" in texts["c1"] and "second" in texts["c2"], texts)
    report.check(f"{name}: results carry what was printed", "joined" in texts["c4"] and "removed" in texts["c6"], texts)
    report.equal(f"{name}: aimock was asked", len(session.journal), 3)
    report.equal(f"{name}: the last reply", session.agent.of("model_finished")[-1].get("text"), "All is in place.")


def _plain_message(report, name, aimock, protocol):
    """A message to the lead skips nothing: it goes in behind all results of the turn."""

    def replies(folder):
        return [
            _reply("I have read it.", says=FEEDBACK),
            _reply("Working.", _call("c1", "bash", command=_until_told(folder)),
                   _call("c2", "write", path="late.txt", content="late\n")),
        ]

    session = Session(aimock, protocol, {}, replies)
    session.play(report, name, _say_while_working(f"lead: {FEEDBACK}", "lead"))
    statuses = {"c1": "completed", "c2": "completed"}
    report.equal(f"{name}: how the calls ended", events.statuses(session.agent), statuses)
    report.equal(f"{name}: the files", sorted(session.after), ["begun", "go", "late.txt"])
    report.equal(f"{name}: injected at D", _injections(session.agent, "lead"), [("D", [], [])])
    _comes_last(report, name, session.last_of())


def _subagent_corrected(report, name, aimock, protocol):
    """A message to a subagent acts between two of its tools: the running one ends, the next one is skipped."""
    task = "Build the shed."

    def replies(folder):
        return [
            _reply("Corrected.", says=FEEDBACK),
            _reply("Building.", _call("w1", "bash", command=_until_told(folder)),
                   _call("w2", "write", path="late.txt", content="late\n"), says=task),
            _reply("The worker is done.", after="c2"),
            _reply("You said so before.", says="[worker finished"),
            _reply("Somebody else shall do it.", _call("c1", "spawn_agent", name="worker", prompt=task),
                   _call("c2", "wait_agents", names=["worker"])),
        ]

    session = Session(aimock, protocol, {}, replies)
    session.play(report, name, _say_while_working(f"worker: {FEEDBACK}", "worker"))
    statuses = {"c1": "completed", "c2": "completed", "w1": "completed", "w2": "skipped"}
    report.equal(f"{name}: how the calls ended", events.statuses(session.agent), statuses)
    report.equal(f"{name}: injected at C", _injections(session.agent, "worker"), [("C", ["w2"], [])])
    results = pairing.results_of(session.last_of(task))
    report.equal(f"{name}: what the worker sees of the skipped call", results[1:], [("w2", SKIPPED)])
    _comes_last(report, name, session.last_of(task))
    prompt = "\n".join(pairing.blocks(session.last_of().path, session.last_of().body))
    told = prompt.count("[worker finished: Corrected.")
    report.check(f"{name}: the lead is given the worker's answer once", told == 1, prompt)
    report.check(f"{name}: nothing was written", "late.txt" not in session.after, session.after)


def _urgent_in_tools(report, name, aimock, protocol):
    """An urgent message ends a running command and skips the calls behind it; the model sees both, then the message."""

    def replies(_folder):
        command = f"echo begun; touch begun; sleep {NAP}; touch never"
        return [
            _reply("As you say.", says=FEEDBACK),
            _reply("Working.", _call("c1", "bash", command=command),
                   _call("c2", "write", path="late.txt", content="late\n"), _call("c3", "read", path="alpha.txt")),
        ]

    def interrupt(agent, folder):
        agent.until("command at work", folder.joinpath("begun").exists)
        agent.say(f"lead! {FEEDBACK}")

    session = Session(aimock, protocol, {"alpha.txt": "first\n"}, replies)
    try:
        session.play(report, name, interrupt)
    finally:
        left = _end_sleepers()
    report.equal(f"{name}: no process of the command is left", left, [])
    statuses = {"c1": "interrupted", "c2": "skipped", "c3": "skipped"}
    report.equal(f"{name}: how the calls ended", events.statuses(session.agent), statuses)
    report.equal(f"{name}: the files", session.after, {"alpha.txt": "first\n", "begun": ""})
    report.equal(f"{name}: injected at C", _injections(session.agent, "lead"), [("C", ["c2", "c3"], ["c1"])])
    results = pairing.results_of(session.last_of())
    report.equal(f"{name}: what the model sees of the skipped calls", results[1:], [("c2", SKIPPED), ("c3", SKIPPED)])
    text = results[0][1]
    cut = text.startswith("[Interrupted after ") and ": message received from the user. " in text
    report.check(f"{name}: what the model sees of the interrupted call", cut and "begun" in text, text)
    _comes_last(report, name, session.last_of())


def _end_sleepers():
    """The ids of processes that still run the long command (Linux), which are ended here."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if NAP.encode() in path.read_bytes():
                found.append(path.parent.name)
                os.kill(int(path.parent.name), signal.SIGKILL)
    return found


def _until_told(folder):
    """A command that says it has begun and goes on until the file `go` is there (at most a minute)."""
    return f"touch {folder}/begun; for i in $(seq 1200); do [ -e {folder}/go ] && exit 0; sleep 0.05; done; exit 1"


def _say_while_working(line, receiver):
    """Writes the line while the command of `_until_told` runs, and lets that go on once the message is queued."""

    def meanwhile(agent, folder):
        agent.until("command at work", folder.joinpath("begun").exists)
        agent.say(line)
        agent.until("message in the mailbox", lambda: agent.of("message_queued", agent=receiver, text=FEEDBACK))
        folder.joinpath("go").touch()

    return meanwhile


def _injections(agent, name):
    """Where messages were injected into an agent's turns, with the calls they skipped and interrupted."""
    injected = [e for e in agent.of("message_injected", agent=name) if e["point"] != "start"]
    return [(e["point"], e.get("skipped", []), e.get("interrupted", [])) for e in injected]


def _comes_last(report, name, request):
    """The message is in the user message that carries the results, behind them."""
    text = pairing.last_user_text(request.path, request.body)
    report.check(f"{name}: the message comes last", text.endswith(INJECTED), text)


def _urgent_in_stream(report, name, aimock, protocol):
    """An urgent message cuts a reply that is being streamed; what came of it is recorded, and in no later prompt."""

    def replies(_folder):
        return [_reply("Stopped there.", says=FEEDBACK), {**_reply(LONG_REPLY), "latency": 15, "chunkSize": 9}]

    def interrupt(agent, _folder):
        agent.until("text", lambda: len(agent.of("text_delta")) >= 5)
        agent.say(f"lead! {FEEDBACK}")

    session = Session(aimock, protocol, {}, replies)
    session.play(report, name, interrupt)
    check_cut(report, name, session.agent, session.requests, FEEDBACK)
    partial = "".join(events.partial_text(e) for e in session.agent.of("model_interrupted"))
    begins = LONG_REPLY.startswith(partial) and len(partial) < len(LONG_REPLY)
    report.check(f"{name}: the partial is how the reply began", begins, partial)
    sent = session.journal[-1]["body"]["messages"]
    report.check(f"{name}: the partial is not in aimock's journal", "assistant" not in [m["role"] for m in sent], sent)


def check_cut(report, name, agent, requests, feedback):
    """What every cut stream has in common, whoever streamed it."""
    cuts = agent.of("model_interrupted", agent="lead")
    report.equal(f"{name}: one stream was cut, by the message", [c.get("reason") for c in cuts], ["message_interrupt"])
    partial = events.partial_text(cuts[0]) if cuts else ""
    report.check(f"{name}: the partial text is recorded", partial and cuts[0].get("partial_tokens", 0) > 0, cuts)
    texts = [event.get("text") for event in agent.of("message_injected", point="stream")]
    report.equal(f"{name}: the message was injected into the stream's place", texts, [f"[User feedback: {feedback}]"])
    steps = ["model_started", "model_interrupted", "message_injected", "model_started", "model_finished"]
    order = [event["type"] for event in agent.events if event["type"] in steps]
    cut = order.index("model_interrupted") if cuts else 0
    report.equal(f"{name}: then the model was asked again", order[cut - 1:][:5], steps)
    prompt = "\n".join(pairing.blocks(requests[-1].path, requests[-1].body))
    report.check(f"{name}: the partial is in no later prompt", partial and _in_json(partial) not in prompt, prompt)
    report.check(f"{name}: the message is in it once", prompt.count(feedback) == 1, prompt)
    closed = processes.wait_until("end of the cut exchange", lambda: requests[0].ended, 10)
    report.check(f"{name}: the connection of the cut stream was closed", closed and requests[0].hung_up)


def _in_json(text):
    """A text as it stands inside a JSON string."""
    return json.dumps(text)[1:-1]


def _retries(report, name, aimock, protocol):
    """An overloaded server, then a stream that breaks off, then the reply: one turn, three calls, the same prompt."""

    def replies(_folder):
        overloaded = {"error": {"message": "Overloaded", "type": "overloaded_error"}, "status": 529}
        return [
            {"match": {"sequenceIndex": 0}, "response": overloaded},
            {**_reply(LONG_REPLY), "match": {"sequenceIndex": 1}, "chunkSize": 9, "truncateAfterChunks": 6},
            {**_reply("Here now."), "match": {"sequenceIndex": 2}},
        ]

    session = Session(aimock, protocol, {}, replies)
    session.play(report, name)
    report.equal(f"{name}: retried", len(session.agent.of("model_retry")), 2)
    prompts = [entry["body"]["messages"] for entry in session.journal]
    same = len(prompts) == 3 and all(prompt == prompts[0] for prompt in prompts)
    report.check(f"{name}: the same prompt each time", same, prompts)
    turns = {event["turn"] for event in session.agent.of("model_started")}
    report.equal(f"{name}: attempts belong to one turn", sorted(turns), [1])
    finished = [event.get("text") for event in session.agent.of("model_finished")]
    report.equal(f"{name}: only the whole reply counts", finished, ["Here now."])


def _refused(report, name, aimock, protocol):
    """A request that the server won't have is not sent again: the run fails and says why."""

    def replies(_folder):
        refusal = {"error": {"message": "that key opens nothing", "type": "authentication_error"}, "status": 401}
        return [{"match": {}, "response": refusal}]

    session = Session(aimock, protocol, {}, replies)
    session.play(report, name, outcome="failed")
    report.equal(f"{name}: aimock was asked", len(session.journal), 1)
    errors = [event.get("error") or "" for event in session.agent.of("run_finished")]
    report.check(f"{name}: the reason is told", "that key opens nothing" in " ".join(errors), errors)


def _thinking(report, name, aimock, protocol):
    """Thinking before a call: it goes back byte for byte with its signature, or not at all."""

    def replies(_folder):
        thought = _reply("Reading.", _call("c1", "read", path="alpha.txt"))
        thought["response"]["reasoning"] = "The file will tell."
        return [_reply("It says first.", after="c1"), thought]

    session = Session(aimock, protocol, {"alpha.txt": "first\n"}, replies)
    session.play(report, name)
    report.equal(f"{name}: how the call ended", events.statuses(session.agent), {"c1": "completed"})
    if protocol == "anthropic":
        content = session.last_of().body["messages"][1]["content"]
        sent_back = [block for block in content if block["type"] == "thinking"]
        whole = {"type": "thinking", "thinking": "The file will tell.", "signature": "aimock-placeholder-signature"}
        report.check(f"{name}: whole or absent in the next prompt", sent_back in ([whole], []), sent_back)


SCENARIOS = (
    _files, _plain_message, _subagent_corrected, _urgent_in_tools, _urgent_in_stream, _retries, _refused, _thinking,
)
