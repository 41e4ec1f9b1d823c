"""With us, when something is broken: Claude Code killed, the spool not to be used, our program gone.

Two claims. Mail is never lost in silence and never told twice. And whatever is wrong with us, a session goes on as it
would without us: every call runs, and it ends well.
"""

import contextlib
import os
import pathlib
import stat
import time

from lib import agent as program
from lib import processes
from lib.claude import checks, scripts, session
from lib.claude.cases_idle import shown_in
from lib.claude.cases_soft import DONE, TEXT, played
from lib.claude.scripts import names
from lib.claude.server import Server, Text, bash, text_of
from lib.claude.world import World, marked

AGAIN = "And the file is b.txt."
SOON = ("--urgency", "next_boundary")
GO_ON = "Go on with it."
LOOK = 5  # seconds in which a command line of ours has answered, whatever has become of the session
PATIENCE = 30
MOMENTS = (0.0, 0.04, 0.08, 0.12, 0.2, 0.4)  # seconds: the next request comes after about 0.1


# --- killed

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


def _answers(result, name, world, *arguments):
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
        shown = _answers(result, "killed", world, "ps")
        result.check("killed: not shown any more", world.session[:8] not in shown.stdout, shown.stdout)
        refused = _answers(result, "killed", world, "send", "main", AGAIN)
        said = refused.stdout + refused.stderr
        result.check("killed: a send is refused", refused.returncode in (1, 2) and refused.stderr, said)
        result.equal("killed: given back as closed", _returned(world), ["closed"])
        taken = _answers(result, "killed", world, "withdraw", "lost")
        said = taken.stdout + taken.stderr
        result.check("killed: who asks is told that nobody read it", "nobody has read it" in taken.stdout, said)
        with _resumed(result, "killed, resumed", world, server):
            world.wait("two.start", scripts.LATER)
            world.send("main", AGAIN, *SOON)
        _once_more(result, "killed, resumed, a new one", server, since, AGAIN)
        result.equal("killed, resumed: the new one acts", world.ran("two", "behind", "after"), ["two", "after"])
        checks.never_told(result, "killed, resumed, the old one", server, "main", TEXT)


def _returned(world):
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


# --- a session that is to go on as without us

def _short(world):
    return [bash(world.step(name, 1)) for name in names("main", 3)]


def _as_without_us(result, name, world, server, running):
    """Every call ran, and the session ended well."""
    checks.ended(result, name, running)
    last = server.of("main")[-1]
    result.equal(f"{name}: all ran", checks.outcomes(last, "main", 0, 3), ["ran"] * 3)
    result.equal(f"{name}: one request, and the end", [request.turn for request in server.of("main")], [0, 1])
    result.equal(f"{name}: all began", world.ran(*names("main", 3)), names("main", 3))


def _without_privilege(world):
    """Claude Code as somebody who is bound by the modes of files: root isn't."""
    if os.geteuid() == 0:
        path = world.folder / "claude"
        path.write_text(f'#!/bin/sh\nexec setpriv --bounding-set -dac_override,-dac_read_search "{world.claude}" "$@"\n')
        path.chmod(0o755)
        world.claude = path


def _every_folder(top, mode):
    for folder, _folders, _files in list(os.walk(top, topdown=False)):
        os.chmod(folder, mode)


def spool_made_read_only(result, claude):
    """In the middle, with mail in it: nothing acts, since nothing could be written down; given back when it can be."""
    with World(claude) as world:
        world.install("hooks")
        _without_privilege(world)
        spool = world.state / "midturn" / "joined"
        with Server({"main": [_short(world), DONE]}) as server, session.printing(world, server, marked("main")) as running:
            world.wait("main0.start")
            world.send("main", TEXT, *SOON)
            _every_folder(spool, 0o500)
            _as_without_us(result, "read-only", world, server, running)
            checks.never_told(result, "read-only", server, "main", TEXT)
        _every_folder(spool, stat.S_IRWXU)
        _answers(result, "read-only, and not any more", world, "ps")
        result.equal("read-only, and not any more: given back", _returned(world), ["closed"])


def spool_is_a_link(result, claude):
    """The spool, or the session's folder in it, leads elsewhere: nothing is written there."""
    for name, place in (("linked spool", lambda world: "joined"), ("linked session", lambda world: f"joined/{world.session}")):
        with World(claude) as world:
            world.install("hooks")
            elsewhere = world.folder / "elsewhere"
            elsewhere.mkdir(mode=0o700)
            link = world.state / "midturn" / place(world)
            link.parent.mkdir(mode=0o700, exist_ok=True)
            link.symlink_to(elsewhere)
            with Server({"main": [_short(world), DONE]}) as server, session.printing(world, server, marked("main")) as running:
                _as_without_us(result, name, world, server, running)
            result.equal(f"{name}: nothing is written there", sorted(path.name for path in elsewhere.rglob("*")), [])
            _answers(result, name, world, "ps")


def no_home(result, claude):
    """Neither a home nor a state folder is named: there is no spool."""
    with World(claude) as world:
        world.install("hooks")
        config = world.home / ".claude"
        config.joinpath(".claude.json").write_bytes(world.home.joinpath(".claude.json").read_bytes())
        nothing = {"HOME": "", "XDG_STATE_HOME": "", "CLAUDE_CONFIG_DIR": str(config)}
        with Server({"main": [_short(world), DONE]}) as server:
            with session.printing(world, server, marked("main"), environment=nothing) as running:
                _as_without_us(result, "no home", world, server, running)


def program_is_gone(result, claude):
    """Our program is removed without an uninstall: before a session, and in the middle of one."""
    for name, before in (("gone before", True), ("gone in the middle", False)):
        with World(claude) as world:
            copy = world.folder / "midturn"
            _link_or_copy(program.binary(), copy)
            world.run([str(copy), "hooks", "install"])
            if before:
                copy.unlink()
            with Server({"main": [_short(world), DONE]}) as server, session.printing(world, server, marked("main")) as running:
                world.wait("main0.start")
                copy.unlink(missing_ok=True)
                _as_without_us(result, name, world, server, running)


def _link_or_copy(program_file, copy):
    try:
        os.link(program_file, copy)
    except OSError:  # another file system
        copy.write_bytes(pathlib.Path(program_file).read_bytes())
        copy.chmod(0o755)


def uninstalled_in_the_middle(result, claude):
    """`hooks uninstall` while commands run, in a session that knows our prefix: they and those behind them run on."""
    with played(claude, lambda world: {"main": [_short(world), DONE]}) as (world, server, running):
        world.wait("main0.start")
        world.midturn("hooks", "uninstall")
        _as_without_us(result, "uninstalled in the middle", world, server, running)


CASES = (
    killed_and_looked_at, killed_and_resumed_at_once, killed_when_it_was_told, killed_around_the_boundary,
    spool_made_read_only, spool_is_a_link, no_home, program_is_gone, uninstalled_in_the_middle,
)
