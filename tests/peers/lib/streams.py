"""What the servers streamed, once more through our decoders, in pieces of other sizes than the network's."""

from lib.decoder import decode

CHUNK_SIZES = (1, 2, 3, 7, None)


def check(report, name, protocol, exchanges, events):
    """Every whole reply decodes to the same at every chunk size, and to what the run's events say of it."""
    whole = [e.reply for e in exchanges if e.whole and e.status == 200]
    decoded = [[decode(protocol, reply, size) for size in CHUNK_SIZES] for reply in whole]
    differing = [replies for replies in decoded if any(reply != replies[0] for reply in replies)]
    report.check(f"{name}: replies decode the same at every chunk size", not differing, differing)
    found = sorted(_gist(replies[0]) for replies in decoded)
    told = sorted((event["text"], [call["id"] for call in event["tools"]]) for event in events)
    report.equal(f"{name}: replies are what the events say", found, told)


def _gist(reply):
    """The text and the call ids of a decoded reply."""
    blocks = reply.get("blocks", [])
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return text, [block["id"] for block in blocks if block["type"] == "tool_use"]
