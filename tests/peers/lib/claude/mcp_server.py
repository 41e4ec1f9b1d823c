"""A stdio MCP server with one slow tool, which says by flags when a call began and ended. Started by Claude Code.

    mcp_server.py FOLDER-OF-THE-FLAGS
"""

import json
import pathlib
import sys
import time

STEP = {
    "name": "step", "description": "Takes its time.",
    "inputSchema": {
        "type": "object", "required": ["name", "seconds"],
        "properties": {"name": {"type": "string"}, "seconds": {"type": "number"}},
    },
}


def _answer(flags, method, params):
    """The result of a request, or None for a method that we don't have."""
    if method == "initialize":
        known = {"name": "slow", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": known}
    if method == "tools/list":
        return {"tools": [STEP]}
    if method == "tools/call":
        arguments = params["arguments"]
        flags.joinpath(f"{arguments['name']}.start").touch()
        time.sleep(arguments["seconds"])  # this is the work
        flags.joinpath(f"{arguments['name']}.end").touch()
        return {"content": [{"type": "text", "text": f"{arguments['name']} done"}]}
    return {} if method == "ping" else None


def main():
    """Answers until its input ends."""
    flags = pathlib.Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = _answer(flags, message["method"], message.get("params") or {})
            missing = {"error": {"code": -32601, "message": "no such method"}}
            answer = missing if result is None else {"result": result}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
