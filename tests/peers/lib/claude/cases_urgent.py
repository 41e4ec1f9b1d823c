"""With us: an urgent message ends the whole tree of the command that runs, and only that.

A tree is known by a mark in its environment, which every process that it starts inherits, and in the command's own line:
parents and process groups say nothing of a process that has left both.
"""

import contextlib
import os
import pathlib
import re
import threading
import time

from lib import processes
from lib.claude import checks, scripts, session
from lib.claude.cases_soft import DONE, TEXT, played
from lib.claude.scripts import coordinator, five_steps, names, send_message
from lib.claude.server import Server, Text, agent, bash
from lib.claude.world import World, marked

AT_ONCE = checks.bound(1.0)  # seconds from the send until the tree is dead, and until the next request
PATIENCE = 20  # until a check fails for never having come true
DELIVERED = "The coordinator sent a message while you were working:\nURGENT: {}"  # Claude Code's own words
TREE = "sleep 300 & setsid sleep 300 & (setsid setsid sleep 300 &); wait"
KEPT = r"before\n\[Interrupted after \d+\.\d s: message received from {}\. It may have taken effect in part\.\]"


def _mark(world, what):
    return f"MIDTURN_PEER_{what}={world.session}"


def _tree(world):
    """A command that starts three processes, two of them in sessions of their own and one of these an orphan.

    The flag comes last but for `wait`: when it is there, all of the tree is.
    """
    started = f"touch {world.flag('tree')}.start"
    return bash(f"export {_mark(world, 'TREE')}; echo before; {TREE.replace('; wait', f'; {started}; wait')}")


def _background(world):
    """A run beside the agent's calls, which ends by itself once it is told to: a session waits for those it has."""
    stop = world.flag("stop")
    loop = f"while ! test -e {stop}; do sleep 0.1; done"
    return bash(f"export {_mark(world, 'BESIDE')}; {world.step('beside', 0, loop)}", run_in_background=True)


def _marked(mark):
    """The ids of the processes with this mark in their environment or command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.joinpath("cmdline").read_bytes() + path.joinpath("environ").read_bytes():
                found.append(int(path.name))
    return found


def _dead_by(mark):
    """When the last process with this mark was gone."""
    processes.wait_until(f"end of {mark}", lambda: not _marked(mark), PATIENCE)
    return time.time()


def _steps(world):
    """A worker's replies: something beside it, the tree with two calls behind it, one more, an end.

    The end waits for what is beside it, which Claude Code would kill with a subagent that ends.
    """
    behind = [bash(world.step(name, 0)) for name in ("behind0", "behind1")]
    return [[_background(world)], [_tree(world), *behind], [bash(world.step("after", 0))], world.after("beside.end", 0, DONE)]


def _measured(result, name, what, seconds):
    """A duration: printed, since it is what is promised, and held to its limit."""
    print(f"        {name}: {what} {seconds:.3f} s after the send, load {os.getloadavg()[0]:.1f}", flush=True)
    result.check(f"{name}: {what} within {AT_ONCE} s", seconds <= AT_ONCE, f"after {seconds} s")


def _cuts(result, name, case, sent, sender, form):
    """All that an urgent message promises; `sent()` sends and says when. Leaves the session ended."""
    world, server, running, script = case
    world.wait("tree.start", scripts.LATER)
    result.check(f"{name}: the tree is there", len(_marked(_mark(world, "TREE"))) >= 4, _marked(_mark(world, "TREE")))
    at = sent()
    dead = _dead_by(_mark(world, "TREE"))
    world.wait("after.end")
    result.check(f"{name}: what ran beside lives on", _marked(_mark(world, "BESIDE")) and not world.when("beside.end"))
    world.flag("stop").touch()
    world.wait("beside.end")
    checks.ended(result, name, running)
    _measured(result, name, "tree dead", dead - at)
    request = checks.told_once(result, name, server, script, TEXT, form)
    if request is None:
        return
    result.equal(f"{name}: told behind the call that was cut", request.turn, 2)
    _measured(result, name, "next request", request.wall - at)
    result.equal(f"{name}: cut and skipped", checks.outcomes(request, script, 1, 3), ["cut", "skipped", "skipped"])
    result.equal(f"{name}: nothing behind it ran", world.ran("behind0", "behind1"), [])
    text, _is_error = request.results()[f"toolu_{script}_1_0"]
    result.check(f"{name}: what it wrote is kept", re.search(KEPT.format(re.escape(sender)), text), text)


def _person(result, claude, script):
    """A person's urgent message to the main agent, or to a subagent that works in the foreground."""
    name = f"urgent to {script}"

    def scripts_of(world):
        if script == "main":
            return {"main": _steps(world)}
        return {"main": [[agent("worker", "Go.")], DONE], "worker": _steps(world)}

    with played(claude, scripts_of) as (world, server, running):
        def sent():
            begun = time.time()
            _said, at = world.send(script, TEXT, "--urgent")
            print(f"        {name}: `midturn send` took {at - begun:.3f} s", flush=True)
            return at
        _cuts(result, name, (world, server, running, script), sent, checks.PERSON, checks.FEEDBACK)


def urgent_to_a_subagent(result, claude):
    """`midturn send worker --urgent` into a command of a subagent."""
    _person(result, claude, "worker")


def urgent_to_main(result, claude):
    """`midturn send main --urgent` into a command of the main agent."""
    _person(result, claude, "main")


def urgent_by_the_coordinator(result, claude):
    """A coordinator's `SendMessage` that begins with URGENT: its text comes once, by Claude Code's own delivery."""
    def scripts_of(world):
        sends = [("tree.start", send_message("worker", f"URGENT: {TEXT}"))]
        return {"main": coordinator(world, ["worker"], sends, later=2 * scripts.LATER), "worker": _steps(world)}

    with played(claude, scripts_of) as (world, server, running):
        def sent():
            request = server.wait_turn("main", 1, PATIENCE)
            processes.wait_until("the reply that sends", lambda: request.answered_at, PATIENCE)
            return request.wall + request.answered_at - request.at
        _cuts(result, "URGENT by SendMessage", (world, server, running, "worker"), sent, checks.COORDINATOR, DELIVERED)


def urgent_among_equals(result, claude):
    """Two that begin the same text at once: which process is whose is not known, so none is cut, and calls are skipped."""
    ready = threading.Event()

    def scripts_of(world):
        command = f"mktemp {world.flags}/same.XXXXXX; sleep {scripts.SECONDS}"

        def both(_request):
            # Neither has its reply before the other has asked: they begin as near to each other as they can.
            ready.wait(PATIENCE)
            return [bash(command) for _ in range(scripts.STEPS)]
        start = [agent("one", "Go.", background=True), agent("two", "Go.", background=True)]
        return {"main": [start, "I wait."], "one": [both, DONE], "two": [both, DONE]}

    with played(claude, scripts_of) as (world, server, running):
        for script in ("one", "two"):
            server.wait_turn(script, 0, PATIENCE)
        ready.set()
        processes.wait_until("both commands", lambda: len(list(world.flags.glob("same.*"))) >= 2, PATIENCE)
        world.send(world.agent_id("one"), TEXT, "--urgent")
        checks.ended(result, "equal", running)
        checks.skips(result, "equal, one", (world, server, "one"), TEXT, form=checks.FEEDBACK)
        last = server.of("two")[-1]
        result.equal("equal, two: all ran", checks.outcomes(last, "two", 0, scripts.STEPS), ["ran"] * scripts.STEPS)
        checks.never_told(result, "equal, two", server, "two", TEXT)


def urgent_while_a_reply_streams(result, claude):
    """Nothing runs: the reply is let come to its end, its call is skipped, and the message is told behind it."""
    def scripts_of(world):
        slow = Text("I write for a while. " * 20, pieces=20, every=0.1)
        one, two, after = (bash(world.step(name, 0)) for name in ("one", "two", "after"))
        return {"main": [[one], [slow, two], [after], DONE]}

    with played(claude, scripts_of) as (world, server, running):
        streaming = server.wait_turn("main", 1, PATIENCE)
        world.send("main", TEXT, "--urgent")
        result.check("in a stream: sent while it streamed", streaming.answered_at is None, server.summary())
        checks.ended(result, "in a stream", running)
        result.check("in a stream: the reply was not cut", not streaming.hung_up)
        request = checks.skips(
            result, "in a stream", (world, server, "main"), TEXT, ran=0, calls=1, turn=1, form=checks.FEEDBACK)
        result.equal("in a stream: told behind it", request and request.turn, 2)
        result.equal("in a stream: the agent goes on", world.ran("two", "after"), ["after"])


def urgent_without_the_prefix(result, claude):
    """Installed without the prefix nothing can be cut: it acts as `next_boundary` does."""
    with World(claude) as world:
        world.midturn("hooks", "install", "--no-prefix")
        steps = [five_steps(world, "worker", bash), DONE]
        played_by = {"main": [[agent("worker", "Go.")], DONE], "worker": steps}
        with Server(played_by) as server, session.printing(world, server, marked("main")) as running:
            world.wait("worker0.start", scripts.LATER)
            world.send("worker", TEXT, "--urgent")
            checks.ended(result, "no prefix", running)
            checks.skips(
                result, "no prefix", (world, server, "worker"), TEXT, steps=names("worker"), form=checks.FEEDBACK)


CASES = (
    urgent_to_a_subagent, urgent_to_main, urgent_by_the_coordinator, urgent_among_equals, urgent_while_a_reply_streams,
    urgent_without_the_prefix,
)
