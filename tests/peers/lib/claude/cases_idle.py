"""With us: sessions that rest, and what is known of a message from outside.

An interactive session has a process of ours that waits behind it: that it wakes is one half of what is promised, that it
costs nobody anything and is gone with its session the other.
"""

import json
import os
import time

from lib import processes
from lib.claude import checks, scripts, session
from lib.claude.cases_soft import DONE, TEXT, played
from lib.claude.server import Text, agent, bash
from lib.claude.world import marked

AGAIN = "And the file is b.txt."
AT_ONCE = checks.bound(1.0)  # seconds from the send to the request that tells
PATIENCE = 30
GONE = 5  # seconds for a waiter to notice the end of its session
HELD = 3.0  # seconds from the last reply under -p to the end: more is being held


def state_of(world, name):
    """What `midturn ps` says of an agent of the one session that has joined, or nothing."""
    said = world.midturn("ps", "--json", check=False).stdout
    joined = (json.loads(said) if said.strip() else {}).get("joined") or []
    found = [one["state"] for session_of in joined for one in session_of["agents"] if one["name"] == name]
    return found[0] if found else None


def _is(world, name, state):
    """Waits for a state: the hook that notes it runs beside what the screen shows."""
    def seen():
        return state_of(world, name) == state
    processes.wait_until(f"{name} {state}", seen, PATIENCE)
    return True


def _no_waiter(result, name, world):
    """Nothing of ours is left of a session that has ended."""
    try:
        processes.wait_until("end of the waiters", lambda: not world.living("hook"), GONE)
    except TimeoutError:
        result.check(f"{name}: no waiter is left", False, world.living("hook"))
        return
    result.check(f"{name}: no waiter is left", True)


def _wakes(result, name, server, turn, sent):
    """The request that a message has woken the session for."""
    request = server.wait_turn("main", turn, PATIENCE)
    took = request.wall - sent
    print(f"        {name}: woken {took:.3f} s after the send, load {os.getloadavg()[0]:.1f}", flush=True)
    result.check(f"{name}: woken within {AT_ONCE} s", took <= AT_ONCE, took)


def woken_again_and_again(result, claude):
    """Each message wakes it once, and is told once; one waiter at most is there in between."""
    def scripts_of(_world):
        return {"main": ["I am idle.", "Woken once.", "Woken twice.", DONE]}

    with played(claude, scripts_of, start=session.terminal) as (world, server, running):
        running.type(marked("main"))
        running.see("I am idle.")
        result.check("woken: idle before", _is(world, "main", "idle"))
        _wakes(result, "woken, first", server, 1, world.send("main", TEXT)[1])
        running.see("Woken once.")
        _is(world, "main", "idle")
        _wakes(result, "woken, second", server, 2, world.send("main", AGAIN)[1])
        running.see("Woken twice.")
        _is(world, "main", "idle")
        processes.wait_until("one waiter", lambda: len(world.living("wait")) == 1, PATIENCE)
        running.type("Go on.")
        running.see(DONE)
        running.type("/exit")
        checks.ended(result, "woken", running)
        for text in (TEXT, AGAIN):
            checks.told_once(result, f"woken, {text!r}", server, "main", text)
        result.equal("woken: no turn but these", [request.turn for request in server.of("main")], [0, 1, 2, 3])
        _no_waiter(result, "woken", world)


def resting_before_the_first_prompt(result, claude):
    """A session that nobody has given a task yet rests, and is woken."""
    with played(claude, lambda _world: {"main": ["I begin.", DONE]}, start=session.terminal) as (world, server, running):
        state = processes.wait_until("the session has joined", lambda: state_of(world, "main"), PATIENCE)
        result.equal("fresh: rests", state, "idle")
        # The server tells scripts by their marker, and this is the session's first word.
        world.send("main", f"{marked('main')} {TEXT}")
        running.see("I begin.")
        running.type("/exit")
        checks.ended(result, "fresh", running)
        checks.told_once(result, "fresh", server, "main", TEXT)


def resting_after_an_interruption(result, claude):
    """A person has ended the turn with Escape, at which no hook runs: it is woken, or the receipt says that it waits."""
    def scripts_of(world):
        return {"main": ["I am idle.", [bash(world.step("long", 20))], DONE, DONE]}

    with played(claude, scripts_of, start=session.terminal) as (world, server, running):
        running.type(marked("main"))
        running.see("I am idle.")
        running.type("Go on.")
        world.wait("long.start", scripts.LATER)
        running.key("Escape")
        running.see("Interrupted")
        said, _sent = world.send("main", TEXT)
        try:
            server.wait_for("a turn of its own", lambda _: any(r.count(TEXT) for r in list(server.requests)), GONE)
        except TimeoutError:
            result.check("interrupted: not woken, and the receipt says so", "next prompt" in said, said)
        running.type("And now?")
        running.see(DONE)
        running.type("/exit")
        checks.ended(result, "interrupted", running)
        checks.told_once(result, "interrupted", server, "main", TEXT)
        _no_waiter(result, "interrupted", world)


def shown_idle_and_working(result, claude):
    """`midturn ps` by Claude Code's names: the main agent and a subagent, while they work and when they rest."""
    def scripts_of(world):
        return {
            "main": [[agent("worker", "Go.", background=True)], [bash(world.step("main", 3))], "I wait.", "Now I rest."],
            "worker": [[bash(world.step("worker", 3))], DONE],
        }

    with played(claude, scripts_of, start=session.terminal) as (world, _server, running):
        running.type(marked("main"))
        world.wait("main.start")
        world.wait("worker.start")
        result.equal("ps: both work", [state_of(world, name) for name in ("main", "worker")], ["working", "working"])
        table = world.midturn("ps").stdout
        result.check("ps: both in the table", f"{world.session[:8]}/worker" in table and "working" in table, table)
        result.check("ps: the subagent rests", _is(world, "worker", "idle"))
        result.check("ps: the main agent rests", _is(world, "main", "idle"))
        running.type("/exit")
        checks.ended(result, "ps", running)
        result.equal("ps: gone when it has ended", state_of(world, "main"), None)
        _no_waiter(result, "ps", world)


def printing_is_not_held(result, claude):
    """Under -p nobody can be woken: the session ends as soon as it is done, and nobody waits behind it."""
    with played(claude, lambda world: {"main": [[bash(world.step("one", 0))], DONE]}) as (world, server, running):
        checks.ended(result, "-p", running)
        took = time.monotonic() - server.of("main")[-1].answered_at
        print(f"        -p: ended {took:.3f} s after the last reply", flush=True)
        result.check(f"-p: ended within {HELD} s of its last reply", took <= HELD, took)
        _no_waiter(result, "-p", world)


def shown_in(world, text, agent_id=None):
    """Whether a transcript shows a text as given to the model (and not just in the model's own words)."""
    given = [line for line in world.transcript(agent_id) if line.get("type") in ("attachment", "user")]
    return any(text in json.dumps(line) for line in given)


def waits_until_injected(result, claude):
    """`send --wait injected` says so when the transcript shows it: to one that works, and to one that rests."""
    def scripts_of(world):
        slow = Text("I have read it. " * 10, pieces=10, every=0.1)
        return {"main": [[bash(world.step("one", 1))], [slow, bash(world.step("two", 0))], "I am idle.", "I was woken."]}

    with played(claude, scripts_of, start=session.terminal) as (world, server, running):
        running.type(marked("main"))
        world.wait("one.start")
        _sent_and_shown(result, "injected, working", world, TEXT)
        running.see("I am idle.")
        _is(world, "main", "idle")
        _sent_and_shown(result, "injected, idle", world, AGAIN)
        running.see("I was woken.")
        running.type("/exit")
        checks.ended(result, "injected", running)
        checks.told_once(result, "injected, working", server, "main", TEXT)
        checks.told_once(result, "injected, idle", server, "main", AGAIN)


def _sent_and_shown(result, name, world, text):
    begun = time.monotonic()
    done = world.midturn("send", "main", text, "--wait", "injected", "--timeout", "15s", "--json", check=False)
    print(f"        {name}: said after {time.monotonic() - begun:.3f} s", flush=True)
    result.equal(f"{name}: the exit status", done.returncode, 0)
    receipt = json.loads(done.stdout) if done.stdout.strip() else {}
    result.equal(f"{name}: the receipt", receipt.get("state"), "injected")
    result.check(f"{name}: the transcript shows it by then", shown_in(world, text), done.stdout + done.stderr)


def withdrawn_before_the_end(result, claude):
    """A `follow_up` that is taken back before the end of the run was never there; the one beside it is told."""
    def scripts_of(world):
        return {"main": [[bash(world.step("one", 1))], [bash(world.step("two", 0))], "I would end.", DONE]}

    with played(claude, scripts_of) as (world, server, running):
        world.wait("one.start", scripts.LATER)
        world.send("main", TEXT, "--urgency", "follow_up", "--id", "first")
        world.send("main", AGAIN, "--urgency", "follow_up", "--id", "second")
        taken = world.midturn("withdraw", "first", check=False)
        result.equal("withdraw: accepted", taken.returncode, 0)
        checks.ended(result, "withdraw", running)
        checks.never_told(result, "withdraw", server, "main", TEXT)
        checks.told_once(result, "withdraw, the other", server, "main", AGAIN)
        late = world.midturn("withdraw", "second", check=False)
        result.check("withdraw: too late for what was told", late.returncode == 1 and "too late" in late.stderr, late.stderr)


CASES = (
    woken_again_and_again, resting_before_the_first_prompt, resting_after_an_interruption,
    shown_idle_and_working, printing_is_not_held, waits_until_injected, withdrawn_before_the_end,
)
