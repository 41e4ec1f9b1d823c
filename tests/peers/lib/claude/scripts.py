"""The scripts that several cases share: a coordinator, and workers that take five two-second steps."""

import json
import pathlib
import sys

from lib.claude.server import Call, agent

STEPS = 5
SECONDS = 2
LATER = 0.5  # into the first call, a message is sent


def names(worker, steps=STEPS):
    """The flags' names of a worker's steps."""
    return [f"{worker}{number}" for number in range(steps)]


def five_steps(world, worker, bash):
    """One reply with five calls, one after the other; `bash` makes a call of a command."""
    return [bash(world.step(name, SECONDS)) for name in names(worker)]


def send_message(to, text, summary="a correction"):
    """A coordinator's own way to write to its subagent."""
    return Call("SendMessage", to=to, summary=summary, message=text)


def coordinator(world, workers, sends, later=LATER):
    """A main agent that starts background workers in one reply, then sends, each at its time.

    `sends` is a list of (flag, reply): what is sent, held back until `later` seconds after the flag.
    """
    start = [agent(worker, "Take five steps.", background=True) for worker in workers]
    return [start, *(world.after(flag, later, reply) for flag, reply in sends), "I wait for them."]


MCP_STEP = "mcp__slow__step"


def with_mcp(world):
    """Arguments that give Claude Code the slow MCP server, whose tool is `MCP_STEP`."""
    program = [sys.executable, str(pathlib.Path(__file__).with_name("mcp_server.py")), str(world.flags)]
    servers = {"mcpServers": {"slow": {"command": program[0], "args": program[1:]}}}
    return ["--strict-mcp-config", "--mcp-config", json.dumps(servers)]
