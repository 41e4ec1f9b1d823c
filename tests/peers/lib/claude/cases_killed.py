"""With us, when Claude Code is killed in the middle: mail is never lost in silence, and never told twice."""

import contextlib
import re
import time

from lib import processes
from lib.claude import checks, scripts, session
from lib.claude.cases_idle import shown_in
from lib.claude.cases_soft import DONE, TEXT, played
from lib.claude.scripts import names
from lib.claude.server import Text, agent, bash, text_of

AGAIN = "And the file is b.txt."
SOON = ("--urgency", "next_boundary")
GO_ON = "Go on with it."
LOOK = 5  # seconds in which a command line of ours has answered, whatever has become of the session
PATIENCE = 30
MOMENTS = (0.0, 0.04, 0.08, 0.12, 0.2, 0.4)  # seconds: the next request comes after about 0.1


def _five(world):
    return [bash(world.step(name, scripts.SECONDS)) for name in names("main")]


def _going_on(*replies):
    """For a script: replies by their place behind the resume. Claude Code puts messages of its own before that."""
    def due(request):
        behind = 0
        for message in request.messages:
            text = text_of(message.get("content"))
            behind = 0 if GO_ON in text else behind + (message.get("role") == "assistant")
        return replies[behind] if behind < len(replies) else DONE
    return [due] * (len(replies) + 4)


def answers(result, name, world, *arguments):
    """A command line of ours answers soon, if only that there is nobody."""
    begun = time.monotonic()
    done = world.midturn(*arguments, check=False)
    took = time.monotonic() - begun
    is_well = took < LOOK and done.returncode in (0, 1, 2)
    result.check(f"{name}: `midturn {arguments[0]}` answers", is_well, (took, done.returncode, done.stderr))
    return done


@contextlib.contextmanager
def _resumed(result, name, world, server):
    """Goes on with the session that was killed, to its end."""
    before = len(server.of("main"))
    with session.printing(world, server, GO_ON, resume=world.session) as running:
        yield
        checks.ended(result, name, running)
    requests = server.of("main")[before:]
    result.check(f"{name}: it goes on", len(requests) > 1, server.summary())


def _once_more(result, name, server, since, text):
    """In the resumed conversation a text is told, and is in each request from then on once."""
    requests = server.of("main")[since:]
    counts = [request.count(text) for request in requests]
    told = counts[counts.index(1):] if 1 in counts else []
    result.check(f"{name}: told exactly once", told and told == [1] * len(told) and max(counts) == 1, counts)


def killed_and_looked_at(result, claude):
    """Mail for a program that has ended is given back when somebody looks, and a resumed session never hears it."""
    def scripts_of(world):
        two = [bash(world.step("two", 2)), bash(world.step("behind", 0))]
        return {"main": [_five(world), *_going_on(two, [bash(world.step("after", 0))])]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("main0.start", scripts.LATER)
        world.send("main", TEXT, *SOON, "--id", "lost")
        running.kill9()
        since = len(server.of("main"))
        shown = answers(result, "killed", world, "ps")
        result.check("killed: not shown any more", world.session[:8] not in shown.stdout, shown.stdout)
        refused = answers(result, "killed", world, "send", "main", AGAIN)
        said = refused.stdout + refused.stderr
        result.check("killed: a send is refused", refused.returncode in (1, 2) and refused.stderr, said)
        result.equal("killed: given back as closed", returned(world), ["closed"])
        taken = answers(result, "killed", world, "withdraw", "lost")
        said = taken.stdout + taken.stderr
        result.check("killed: who asks is told that nobody read it", "nobody has read it" in taken.stdout, said)
        with _resumed(result, "killed, resumed", world, server):
            world.wait("two.start", scripts.LATER)
            world.send("main", AGAIN, *SOON)
        _once_more(result, "killed, resumed, a new one", server, since, AGAIN)
        result.equal("killed, resumed: the new one acts", world.ran("two", "behind", "after"), ["two", "after"])
        checks.never_told(result, "killed, resumed, the old one", server, "main", TEXT)


def returned(world):
    """Why messages to the main agent were given back, by their files."""
    folder = world.state / "midturn" / "joined" / world.session / "main" / "returned"
    return sorted(path.suffix[1:] for path in folder.glob("*")) if folder.is_dir() else []


def killed_and_resumed_at_once(result, claude):
    """Nobody looks between the kill and the resume: the resumed session is told, once."""
    def scripts_of(world):
        return {"main": [_five(world), *_going_on([bash(world.step("two", 0))], [bash(world.step("three", 0))])]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("main0.start", scripts.LATER)
        world.send("main", TEXT, *SOON)
        running.kill9()
        since = len(server.of("main"))
        with _resumed(result, "killed with mail", world, server):
            pass
        _once_more(result, "killed with mail", server, since, TEXT)
        result.equal("killed with mail: what it did before stays skipped", world.ran(*names("main")), ["main0"])


def _killed_when_handed(result, claude, name, due):
    """Killed in the reply to the request that told: the resumed conversation holds it once, whoever wrote it down."""
    def scripts_of(world):
        slow = Text("I have read it. " * 40, pieces=40, every=0.1)
        more = _going_on([bash(world.step("three", 1))], [bash(world.step("four", 1))])
        return {"main": [[bash(world.step("one", 1))], [slow, bash(world.step("two", 0))], *more]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("one.start")
        world.send("main", TEXT, *SOON)
        request = server.wait_turn("main", 1, PATIENCE)
        result.equal(f"{name}: told before", request.count(TEXT), 1)
        processes.wait_until("the time to kill", lambda: due(world), PATIENCE)
        running.kill9()
        since = len(server.of("main"))
        with _resumed(result, name, world, server):
            pass
        _once_more(result, name, server, since, TEXT)


def killed_when_it_was_told(result, claude):
    """At once, before the transcript has it; and when the transcript has it."""
    _killed_when_handed(result, claude, "killed when told", lambda _world: True)
    _killed_when_handed(result, claude, "killed when written down", lambda world: shown_in(world, TEXT))


def killed_around_the_boundary(result, claude):
    """Killed while calls are being skipped and the next request is made, at several moments of it."""
    def scripts_of(world):
        slow = Text("I have read it. " * 20, pieces=20, every=0.1)
        more = _going_on([bash(world.step("three", 1))], [bash(world.step("four", 1))])
        return {"main": [[bash(world.step(name, 0.5)) for name in names("main")], [slow, bash(world.step("two", 0))], *more]}

    for later in MOMENTS:
        name = f"killed {later} s behind a call"
        with played(claude, scripts_of) as (world, server, running):
            world.wait("main0.start")
            world.send("main", TEXT, *SOON)
            world.wait("main0.end", later)
            running.kill9()
            since = len(server.of("main"))
            with _resumed(result, name, world, server):
                pass
            _once_more(result, name, server, since, TEXT)
            result.equal(f"{name}: what was skipped never ran", world.ran(*names("main"), "two"), ["main0"])


def killed_with_a_subagent(result, claude):
    """The subagent doesn't come back with its session: its mail is given back, or known to wait for whoever asks."""
    name = "killed with a subagent"

    def scripts_of(world):
        start = [agent("worker", "Go.", background=True)]
        return {"main": [start, "I wait.", *_going_on([bash(world.step("three", 2))])], "worker": [_five(world), DONE]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("main0.start", scripts.LATER)
        world.send("worker", TEXT, "--id", "lost")
        running.kill9()
        with _resumed(result, name, world, server):
            world.wait("three.start")
            table = world.midturn("ps").stdout
            result.check(f"{name}: it isn't shown at work", not re.search(r"/worker +working", table), table)
            receipt = answers(result, name, world, "send", "worker", AGAIN)
            is_said = receipt.returncode or "rests" in receipt.stdout
            result.check(f"{name}: a send is refused, or says that it waits", is_said, receipt.stdout)
            taken = answers(result, name, world, "withdraw", "lost")
            said = taken.stdout + taken.stderr
            result.check(f"{name}: it can be taken back", "nobody has read it" in taken.stdout, said)
        checks.never_told(result, name, server, "worker", TEXT)
        checks.never_told(result, name, server, "main", TEXT)


CASES = (
    killed_and_looked_at, killed_and_resumed_at_once, killed_when_it_was_told, killed_around_the_boundary,
    killed_with_a_subagent,
)
