"""What Claude Code does without us: the facts that the bridge is built on, and what it improves.

A failure here after a new pin says that Claude Code has changed, not that we are wrong.
"""

from lib.claude import checks, scripts, session
from lib.claude.scripts import coordinator, five_steps, names, send_message
from lib.claude.server import Call, Server, bash
from lib.claude.world import World, marked

TEXT = "The name is load_from, not load."
WHOLE = scripts.STEPS * scripts.SECONDS


def send_message_waits_for_the_batch(result, claude):
    """A coordinator's `SendMessage` 0.5 s into call 1 of 5 of its background subagent: all run, told after 10 s."""
    with World(claude) as world:
        played = {
            "main": coordinator(world, ["worker"], [("worker0.start", send_message("worker", TEXT))]),
            "worker": [five_steps(world, "worker", bash), "All five taken."],
        }
        with Server(played) as server, session.printing(world, server, marked("main")) as running:
            checks.ended(result, "SendMessage", running)
            request = checks.all_ran(result, "SendMessage", world, server, "worker", TEXT, names("worker"))
            if request:
                took = request.wall - world.when("worker0.start")
                result.check(f"SendMessage: told after {took:.1f} s, not before {WHOLE}", took >= WHOLE, took)


def a_typed_line_waits_for_the_batch(result, claude):
    """A person's line 0.5 s into call 1 of 5 of the main agent: all run, told after 10 s, in the same turn."""
    with World(claude) as world:
        played = {"main": [five_steps(world, "main", bash), "All five taken."]}
        with Server(played) as server, session.terminal(world, server) as running:
            running.type(marked("main"))
            world.wait("main0.start", scripts.LATER)
            running.type(TEXT)
            server.wait_turn("main", 1, WHOLE + 20)
            running.see("All five taken.")
            running.type("/exit")
            checks.ended(result, "a typed line", running)
            checks.all_ran(result, "a typed line", world, server, "main", TEXT, names("main"))


def a_message_of_the_stream_waits_for_the_batch(result, claude):
    """The same by stream-json, with the urgency `next`."""
    with World(claude) as world:
        played = {"main": [five_steps(world, "main", bash), "All five taken."]}
        with Server(played) as server, session.streaming(world, server) as running:
            running.send(marked("main"))
            world.wait("main0.start", scripts.LATER)
            running.send(TEXT, priority="next")
            server.wait_turn("main", 1, WHOLE + 20)
            running.close()
            checks.ended(result, "stream-json", running)
            checks.all_ran(result, "stream-json", world, server, "main", TEXT, names("main"))


def reading_commands_run_at_once(result, claude):
    """Commands that only read start together, those that write one by one: a case must know what it has."""
    with World(claude) as world:
        at_once, serial = [bash("sleep 1") for _ in range(4)], [bash(world.step(f"s{n}", 1)) for n in range(2)]
        with Server({"main": [at_once, serial, "Done."]}) as server, session.printing(world, server, marked("main")) as running:
            checks.ended(result, "reading commands", running)
            first, second, third = server.of("main")[:3]
            result.equal("reading commands: all ran", checks.outcomes(third, "main", 0, 4), ["ran"] * 4)
            result.check("reading commands: at once", second.wall - first.wall < 3, second.wall - first.wall)
            result.check("writing commands: one by one", third.wall - second.wall > 2, third.wall - second.wall)


def mcp_calls_run_one_by_one(result, claude):
    """Calls of an MCP server that doesn't say that it only reads are serial: they too can be skipped in the middle."""
    with World(claude) as world:
        played = {"main": [[Call(scripts.MCP_STEP, name=f"m{number}", seconds=1) for number in range(3)], "Done."]}
        with Server(played) as server:
            with session.printing(world, server, marked("main"), arguments=scripts.with_mcp(world)) as running:
                checks.ended(result, "MCP", running)
            first, second = server.of("main")
            result.equal("MCP: all ran", checks.outcomes(second, "main", 0, 3), ["ran"] * 3)
            result.check("MCP: one by one", second.wall - first.wall > 3, second.wall - first.wall)


def killed_and_resumed(result, claude):
    """`kill -9` in a call, then `--resume`: the call's command lives on, the next request says it was interrupted."""
    with World(claude) as world:
        with Server({"main": [[bash(world.step("long", 3))], "I go on."]}) as server:
            with session.printing(world, server, marked("main")) as running:
                world.wait("long.start", scripts.LATER)
                running.kill9()
            result.check("killed: its command lives on", world.living("sleep"), world.living())
            with session.printing(world, server, "Go on.", resume=world.session) as running:
                checks.ended(result, "resumed", running)
            last = server.of("main")[-1]
            result.equal("resumed: told", last.count("Go on."), 1)
            world.wait("long.end")


CASES = (
    send_message_waits_for_the_batch,
    a_typed_line_waits_for_the_batch,
    a_message_of_the_stream_waits_for_the_batch,
    reading_commands_run_at_once,
    mcp_calls_run_one_by_one,
    killed_and_resumed,
)
