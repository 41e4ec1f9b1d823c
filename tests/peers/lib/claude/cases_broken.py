"""With us, when something of ours is broken: the spool not to be used, our program gone.

Whatever is wrong with us, a session goes on as it would without us: every call runs, and it ends well.
"""

import os
import pathlib
import stat

from lib import agent as program
from lib import processes
from lib.claude import checks, session
from lib.claude.cases_idle import AGAIN, PATIENCE, state_of
from lib.claude.cases_killed import SOON, answers, returned
from lib.claude.cases_soft import DONE, TEXT, played
from lib.claude.scripts import names
from lib.claude.server import Server, bash
from lib.claude.world import World, marked

MANY = 12  # prompts until the program has read its settings


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
        answers(result, "read-only, and not any more", world, "ps")
        result.equal("read-only, and not any more: given back", returned(world), ["closed"])


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
            answers(result, name, world, "ps")


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


def _goes_on_until(world, server, running, is_deaf):
    """Prompts until the session is known to look no more, or again: the program reads its settings a moment later."""
    for turn in range(len(server.of("main")), len(server.of("main")) + MANY):
        running.type(f"Go on, {turn}.")
        server.wait_turn("main", turn, PATIENCE)
        running.see(f"Reply {turn}.")
        if (state_of(world, "main") == "deaf") == is_deaf:
            return True
    return False


def uninstalled_while_it_is_open(result, claude):
    """A session that goes on without our hooks: `send` refuses, `ps` says why, and installed again it is as before."""
    replies = ["I am idle.", *(f"Reply {turn}." for turn in range(1, 2 * MANY))]
    with played(claude, lambda _world: {"main": replies}, start=session.terminal) as (world, server, running):
        running.type(marked("main"))
        running.see("I am idle.")
        world.midturn("hooks", "uninstall")
        result.check("uninstalled: deaf", _goes_on_until(world, server, running, True))
        refused = world.midturn("send", "main", TEXT, check=False)
        result.check("uninstalled: refused", refused.returncode == 1 and "look any more" in refused.stderr, refused.stderr)
        world.midturn("hooks", "install")
        result.check("installed again: not deaf", _goes_on_until(world, server, running, False))
        world.send("main", AGAIN)
        processes.wait_until("it is told", lambda: any(request.count(AGAIN) for request in list(server.requests)), PATIENCE)
        running.type("/exit")
        checks.ended(result, "uninstalled", running)
        checks.never_told(result, "uninstalled", server, "main", TEXT)
        checks.told_once(result, "installed again", server, "main", AGAIN)


def uninstalled_in_the_middle(result, claude):
    """`hooks uninstall` while commands run, in a session that knows our prefix: they and those behind them run on."""
    with played(claude, lambda world: {"main": [_short(world), DONE]}) as (world, server, running):
        world.wait("main0.start")
        world.midturn("hooks", "uninstall")
        _as_without_us(result, "uninstalled in the middle", world, server, running)


CASES = (
    spool_made_read_only, spool_is_a_link, no_home, program_is_gone, uninstalled_in_the_middle, uninstalled_while_it_is_open,
)
