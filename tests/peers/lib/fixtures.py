"""The stream fixtures of Anthropic's Python SDK, through our decoder.

What a fixture means is worked out here a second time, from the fixture alone and by other code (a dictionary of
blocks filled by event), so that a new fixture in a new SDK version is covered without a line being written.
"""

import json

from lib.decoder import decode

CHUNK_SIZES = (1, 2, 3, 7, None)
OURS = ("text", "thinking", "tool_use")  # block types that an agent acts on; others go back as they came
PIECES = ("text", "thinking", "signature", "partial_json")  # fields of deltas that add to what came before


def check(report, folder):
    """One check per fixture: the same, right reply at every chunk size."""
    for path in sorted(folder.iterdir()):
        stream = path.read_bytes()
        ended = stream.rstrip(b"\n") + b"\n\n"  # some files end without the blank line that a server sends
        replies = [decode("anthropic", stream, size) for size in CHUNK_SIZES] + [decode("anthropic", ended)]
        name = f"anthropic fixture: {path.stem}"
        if report.check(f"{name}, same at every chunk size", all(r == replies[0] for r in replies), replies):
            problem = _difference(replies[0], expected(stream))
            report.check(f"{name}, as the events say", not problem, problem)


def expected(stream):
    """The reply that a stream of Anthropic events spells out."""
    message, blocks, closed = {}, {}, set()
    for event in _events(stream):
        kind = event["type"]
        if kind == "message_start":
            message = event["message"]
        elif kind == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "partial_json": ""}
        elif kind == "content_block_delta" and event["index"] in blocks:
            _grow(blocks[event["index"]], event["delta"])
        elif kind == "content_block_stop" and event["index"] in blocks:
            closed.add(event["index"])
        elif kind == "message_delta":
            message = {**message, **event["delta"], "usage": {**message["usage"], **event["usage"]}}
    whole = [_whole(blocks[index], index in closed) for index in sorted(blocks)]
    return {"blocks": [b for b in whole if b], "stop_reason": message["stop_reason"], "usage": message["usage"]}


def _events(stream):
    """The JSON values of a stream's `data` lines."""
    lines = stream.decode().splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def _grow(block, delta):
    """Applies one delta to a block: pieces are put together, what comes in one piece replaces what was there."""
    for field, value in delta.items():
        if field in PIECES:
            block[field] = block.get(field, "") + value
        elif field not in ("type", "citation"):
            block[field] = value


def _whole(block, closed):
    """A finished block in our words; None for what is empty."""
    kind = block["type"]
    if kind == "tool_use":
        return _call(block) if closed else _cut(block)
    if kind not in OURS:
        return {"type": "provider", "raw": _raw(block)}
    if not block.get(kind):
        return None
    return {"type": kind, "text": block[kind], **({"signature": block["signature"]} if "signature" in block else {})}


def _raw(block):
    """A block that goes back as it came."""
    pieces = block["partial_json"]
    raw = {key: value for key, value in block.items() if key != "partial_json"}
    return {**raw, "input": json.loads(pieces)} if pieces else raw


def _call(block):
    """A tool call; its input is None where the model wrote what isn't JSON."""
    try:
        value = json.loads(block["partial_json"] or "{}")
    except ValueError:
        value = None
    return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": value}


def _cut(block):
    """A tool call that never closed: it carries the text as it came, and is told to the model (decision 0038)."""
    return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["partial_json"]}


def _difference(reply, wanted):
    """What is wrong with our reply, or nothing."""
    unreadable = any(block.get("input", {}) is None for block in wanted["blocks"])
    if unreadable:
        return _made_up(reply)
    if "error" in reply:
        return f"refused: {reply['error']}"
    found = {"blocks": [b for b in map(_ours, reply["blocks"]) if b], "stop_reason": reply["stop_reason"]}
    if found != {"blocks": wanted["blocks"], "stop_reason": wanted["stop_reason"]}:
        return f"expected {json.dumps(wanted)}\nfound    {json.dumps(reply)}"
    return _usage_difference(reply["usage"], wanted["usage"])


def _made_up(reply):
    """A call whose input can't be read may be an error or carry the text as it came, but never an invented input."""
    for block in reply.get("blocks", []):
        if block["type"] == "tool_use" and isinstance(block["input"], dict) and "location" in block["input"]:
            return f"an input was made up: {json.dumps(block)}"
        if block["type"] == "tool_use" and block["input"] == {}:
            return f"an input was dropped: {json.dumps(block)}"
    return None


def _ours(block):
    """One of our blocks in the form that `expected` gives; None for what `expected` leaves out."""
    kind = block["type"]
    if kind == "tool_use":
        return {key: block[key] for key in ("type", "id", "name", "input")}
    if kind not in OURS:
        return block
    text = block["text"]
    if not text:
        return None
    signature = (block.get("replay") or {}).get("signature")
    return {"type": kind, "text": text, **({"signature": signature} if signature else {})}


def _usage_difference(found, wanted):
    """Compares tokens: ours count all that was read, and of that what came from the cache."""
    read = wanted.get("cache_read_input_tokens") or 0
    inputs = wanted["input_tokens"] + read + (wanted.get("cache_creation_input_tokens") or 0)
    ours = {"input": inputs, "output": wanted["output_tokens"], "cached": read}
    return None if found == ours else f"expected usage {json.dumps(ours)}\nfound          {json.dumps(found)}"
