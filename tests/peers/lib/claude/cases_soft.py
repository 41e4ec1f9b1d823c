"""With us: a message that skips what has not begun, in every way it can be sent, received and installed.

A case is a function of the report and of Claude Code's path. It makes a world, installs us, writes scripts, starts a
session, sends something at a flag, waits for the session's end, and asserts on the recorded requests: only then is it
known that nothing was told twice.
"""

import contextlib
import tempfile
import time

from lib import agent as midturn
from lib import processes
from lib.claude import checks, scripts, session
from lib.claude.scripts import coordinator, five_steps, names, send_message
from lib.claude.server import Call, Server, Text, agent, bash
from lib.claude.world import HOW, World, marked

TEXT = "The name is load_from, not load."
DONE = "All five taken."


@contextlib.contextmanager
def played(claude, scripts_of, how="hooks", start=session.printing, task=True, more=()):
    """World, server and session of a case with us installed; `scripts_of(world)` gives the scripts by name."""
    with World(claude) as world:
        arguments = [*world.install(how), *(more(world) if callable(more) else more)]
        with Server(scripts_of(world)) as server:
            given = [marked("main")] if start is session.printing and task else []
            with start(world, server, *given, arguments=arguments) as running:
                yield world, server, running


def _own_message(result, claude, how, to="worker"):
    """A coordinator's SendMessage into call 1 of 5: calls 2 to 5 are skipped, its text comes once, soon, and by itself."""
    name = f"SendMessage, {how}"

    def scripts_of(world):
        def reply(_request):
            return send_message(world.agent_id("worker") if to == "id" else to, TEXT)
        return {
            "main": coordinator(world, ["worker"], [("worker0.start", reply)]),
            "worker": [five_steps(world, "worker", bash), [bash(world.step("after", 0))], DONE],
        }

    with played(claude, scripts_of, how) as (world, server, running):
        checks.ended(result, name, running)
        request = checks.skips(result, name, (world, server, "worker"), TEXT, steps=names("worker"))
        if request:
            checks.sender_named(result, name, request, checks.SKIPPED, checks.COORDINATOR)
        result.equal(f"{name}: the subagent goes on", world.ran("after"), ["after"])


def send_message_installed(result, claude):
    """By name, installed in each way."""
    for how in HOW:
        result.guarded(how, _own_message, result, claude, how)


def send_message_by_id(result, claude):
    """By the agent's id."""
    _own_message(result, claude, "hooks", to="id")


def _person(result, claude, receiver, options=(), how="hooks", start=session.printing):
    """`midturn send` 0.5 s into call 1 of 5 of the main agent or of a subagent, which works in the foreground."""
    name = f"send {receiver}, {how}, {start.__name__}"
    script = "main" if receiver == "main" else "worker"

    def scripts_of(world):
        steps = [five_steps(world, script, bash), DONE]
        return {"main": steps} if receiver == "main" else {"main": [[agent("worker", "Go.")], DONE], "worker": steps}

    with played(claude, scripts_of, how, start) as (world, server, running):
        if start is session.terminal:
            running.type(marked("main"))
        world.wait(f"{script}0.start", scripts.LATER)
        world.send(world.agent_id("worker") if receiver == "id" else receiver, TEXT, *options)
        if start is session.terminal:
            running.see(DONE)
            running.type("/exit")
        checks.ended(result, name, running)
        request = checks.skips(result, name, (world, server, script), TEXT, steps=names(script), form=checks.FEEDBACK)
        if request:
            checks.sender_named(result, name, request, checks.SKIPPED, checks.PERSON)


def send_to_a_subagent(result, claude):
    """A person's message to a subagent, by name and by id: the default is `next_boundary`."""
    _person(result, claude, "worker")
    _person(result, claude, "id")


def send_to_main(result, claude):
    """A person's message to the main agent as `next_boundary`, under -p and in a terminal, and from a plugin."""
    soon = ("--urgency", "next_boundary")
    _person(result, claude, "main", soon)
    _person(result, claude, "main", soon, how="plugin")
    _person(result, claude, "main", soon, start=session.terminal)


def send_to_main_by_default(result, claude):
    """The default to a main agent is `after_tools`: nothing is skipped, and it is told with the results, once."""
    def scripts_of(world):
        return {"main": [five_steps(world, "main", bash), DONE]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("main0.start", scripts.LATER)
        world.send("main", TEXT)
        checks.ended(result, "send main", running)
        checks.all_ran(result, "send main", world, server, "main", TEXT, names("main"), form=checks.FEEDBACK)


def follow_up(result, claude):
    """`follow_up` waits for the end of the run (B), where the text stands as it is, and the agent goes on."""
    def scripts_of(world):
        return {"main": [[bash(world.step("one", 1))], [bash(world.step("two", 1))], "I am done.", DONE]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("one.start")
        world.send("main", TEXT, "--urgency", "follow_up")
        checks.ended(result, "follow_up", running)
        request = checks.told_once(result, "follow_up", server, "main", TEXT)
        result.equal("follow_up: at the end", request and request.turn, 3)


def at_the_last_word(result, claude):
    """A message during the reply that would be the last is told at B."""
    def scripts_of(world):
        return {"main": [[bash(world.step("one", 0))], [Text("I write for a while. " * 20, pieces=20, every=0.1)], DONE]}

    with played(claude, scripts_of) as (world, server, running):
        server.wait_turn("main", 1, 30)
        world.send("main", TEXT)
        checks.ended(result, "at B", running)
        request = checks.told_once(result, "at B", server, "main", TEXT)
        result.equal("at B: in the request after", request and request.turn, 2)


def mcp_calls(result, claude):
    """Calls of an MCP server are skipped as commands are."""
    def steps(world, worker):
        return [Call(scripts.MCP_STEP, name=name, seconds=scripts.SECONDS) for name in names(worker)]

    def scripts_of(world):
        return {
            "main": coordinator(world, ["worker"], [("worker0.start", send_message("worker", TEXT))]),
            "worker": [steps(world, "worker"), DONE],
        }

    with played(claude, scripts_of, more=scripts.with_mcp) as (world, server, running):
        checks.ended(result, "MCP", running)
        checks.skips(result, "MCP", (world, server, "worker"), TEXT, steps=names("worker"))


def reads_that_have_not_begun(result, claude):
    """Behind the call that runs stands a concurrent batch of reads: all of them are skipped."""
    def scripts_of(world):
        reads = [Call("Read", file_path=str(world.project / f"{name}.txt")) for name in "abc"]
        return {
            "main": coordinator(world, ["worker"], [("worker0.start", send_message("worker", TEXT))]),
            "worker": [[bash(world.step("worker0", scripts.SECONDS)), *reads], DONE],
        }

    with played(claude, scripts_of) as (world, server, running):
        checks.ended(result, "reads behind", running)
        checks.skips(result, "reads behind", (world, server, "worker"), TEXT, calls=4, steps=["worker0"])


def reads_that_run(result, claude):
    """A concurrent batch that runs is let run, whole; the serial calls behind it are skipped."""
    def scripts_of(world):
        # A command that only reads can raise no flag, so the message goes by the request's own time.
        reads = [bash(f"sleep {scripts.SECONDS}") for _ in range(3)]
        return {"main": [[*reads, bash(world.step("late0", 1)), bash(world.step("late1", 1))], DONE]}

    with played(claude, scripts_of) as (world, server, running):
        first = server.wait_turn("main", 0, 30)
        processes.wait_until("the middle of the reads", lambda: first.answered_at and _past(first, 1.0), 30)
        world.send("main", TEXT, "--urgency", "next_boundary")
        checks.ended(result, "reads that run", running)
        checks.skips(result, "reads that run", (world, server, "main"), TEXT, ran=3, form=checks.FEEDBACK)
        result.equal("reads that run: what stood behind did not", world.ran("late0", "late1"), [])


def _past(request, seconds):
    return time.monotonic() >= request.answered_at + seconds


def two_subagents(result, claude):
    """Two at once, each told something else at another time: each skips its own, and hears only its own."""
    other = "The file is b.txt."

    def scripts_of(world):
        sends = [("one0.start", send_message("one", TEXT)), ("two1.start", send_message("two", other))]
        return {
            "main": coordinator(world, ["one", "two"], sends),
            "one": [five_steps(world, "one", bash), DONE],
            "two": [five_steps(world, "two", bash), DONE],
        }

    with played(claude, scripts_of) as (world, server, running):
        checks.ended(result, "two", running)
        checks.skips(result, "two, one", (world, server, "one"), TEXT, steps=names("one"))
        checks.skips(result, "two, two", (world, server, "two"), other, ran=2, steps=names("two"))
        checks.never_told(result, "two, one", server, "one", other)
        checks.never_told(result, "two, two", server, "two", TEXT)


def same_commands(result, claude):
    """Two whose commands are the same to the letter: the one that is told skips, the other runs all of its own."""
    def scripts_of(world):
        command = f"mktemp {world.flags}/same.XXXXXX; sleep {scripts.SECONDS}"
        calls = [bash(command) for _ in range(scripts.STEPS)]
        return {
            "main": [
                [agent("one", "Go.", background=True), agent("two", "Go.", background=True)],
                world.after_count("same.*", 2, scripts.LATER, send_message("one", TEXT)), "I wait.",
            ],
            "one": [calls, DONE], "two": [calls, DONE],
        }

    with played(claude, scripts_of) as (world, server, running):
        checks.ended(result, "same commands", running)
        checks.skips(result, "same commands, one", (world, server, "one"), TEXT)
        last = server.of("two")[-1]
        result.equal("same commands, two: all ran", checks.outcomes(last, "two", 0, scripts.STEPS), ["ran"] * scripts.STEPS)
        checks.never_told(result, "same commands, two", server, "two", TEXT)


def idle_is_woken(result, claude):
    """A message to an idle interactive session starts a turn, and stays told once; the waiter ends with its session."""
    def scripts_of(_world):
        return {"main": ["I am idle.", "I was woken.", DONE]}

    with played(claude, scripts_of, start=session.terminal) as (world, server, running):
        running.type(marked("main"))
        running.see("I am idle.")
        _said, sent = world.send("main", TEXT)
        request = server.wait_turn("main", 1, 30)
        limit = checks.bound(1.0)
        result.check(f"idle: woken within {limit} s", request.wall - sent < limit, request.wall - sent)
        running.see("I was woken.")
        running.type("And now?")
        server.wait_turn("main", 2, 30)
        running.see(DONE)
        running.type("/exit")
        checks.ended(result, "idle", running)
        checks.told_once(result, "idle", server, "main", TEXT)
        processes.wait_until("the end of the waiting hook", lambda: not world.living("hook"), 5)


def watched(result, claude):
    """What `midturn watch` tells is what the requests show: the calls skipped, where the text was read, and each end."""
    def scripts_of(world):
        waits = f"while ! test -e {world.flag('go')}; do sleep 0.1; done"
        calls = [bash(world.step("worker0", 0, waits)), *(bash(world.step(name, 0)) for name in names("worker")[1:])]
        return {"main": coordinator(world, ["worker"], [("watched", send_message("worker", TEXT))], later=0), "worker": [calls, DONE]}

    with played(claude, scripts_of) as (world, server, running), tempfile.TemporaryFile("w+") as output:
        world.wait("worker0.start")
        command = [str(midturn.binary()), "watch"]
        with processes.running(command, cwd=world.project, env=world.environment(), stdout=output, stderr=output) as watching:
            def told(line):
                return line in processes.written(output).splitlines()

            processes.wait_until("somebody who watches", lambda: told(f"watching {world.session} (Ctrl-C ends)"), 30)
            world.flag("watched").touch()
            processes.wait_until("the message", lambda: told(f"worker: message from main (next_boundary): {TEXT}"), 30)
            world.flag("go").touch()
            checks.ended(result, "watched", running)
            result.equal("watched: it ends with the session", watching.wait(30), 0)
        checks.skips(result, "watched", (world, server, "worker"), TEXT, steps=names("worker"))
        lines = processes.written(output).splitlines()
        skipped = "worker: Bash skipped: [Skipped: message received from main before this ran]"
        result.equal("watched: calls skipped", lines.count(skipped), scripts.STEPS - 1)
        result.equal("watched: read once", [line for line in lines if "mail read" in line], ["worker: mail read at C, 4 skipped"])
        ends = [line for line in lines if line.startswith(("worker: finished", "worker: stopped", "worker: failed"))]
        result.equal("watched: the end of the subagent's run", ends, ["worker: finished after 2 turns"])


def uninstalled(result, claude):
    """`uninstall` gives the settings back byte for byte, and a session then is as it was without us."""
    with World(claude) as world:
        path = world.home / ".claude" / "settings.json"
        before = '{\n  "env": {"A": "b"},   "hooks": {}\n}\n'
        path.write_text(before, encoding="utf-8")
        world.midturn("hooks", "install")
        world.midturn("hooks", "uninstall")
        result.equal("uninstalled: the same bytes", path.read_text(encoding="utf-8"), before)
        played_by = {
            "main": coordinator(world, ["worker"], [("worker0.start", send_message("worker", TEXT))]),
            "worker": [five_steps(world, "worker", bash), DONE],
        }
        with Server(played_by) as server, session.printing(world, server, marked("main")) as running:
            checks.ended(result, "uninstalled", running)
            checks.all_ran(result, "uninstalled", world, server, "worker", TEXT, names("worker"))


CASES = (
    send_message_installed, send_message_by_id, send_to_a_subagent, send_to_main, send_to_main_by_default, follow_up,
    at_the_last_word, mcp_calls, reads_that_have_not_begun, reads_that_run, two_subagents, same_commands, idle_is_woken,
    watched, uninstalled,
)
