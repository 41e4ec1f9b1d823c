"""A scripted Anthropic Messages server on loopback, for the real Claude Code.

Every agent has a script of its own: a list of replies, chosen by the marker `[[NAME]]` in the first user text that has
one. A main agent's task carries its marker, and so does the prompt of each `Agent` call, so one server plays a
coordinator and its subagents at once. Which reply is due is counted from the request itself (its assistant messages),
not from a counter here: a request that Claude Code sends again, or after a resume, gets the same reply again.

Everything that arrives is kept whole, with the time it arrived.
"""

import json
import re
import socket
import threading
import time
import urllib.parse

from lib import loopback

MARKER = re.compile(r"\[\[([A-Za-z0-9_-]+)\]\]")
MODEL = "claude-opus-4-5"
AFTER_THE_SCRIPT = "Noted."
UTILITY_TEXT = "Scripted"


class Text:
    """A text block; with `every` it is streamed in `pieces` pieces that many seconds apart."""

    def __init__(self, text, pieces=1, every=0.0):
        self.text = text
        self.pieces = pieces
        self.every = every


class Call:
    """A tool_use block. Its id says whose and which it is: `toolu_SCRIPT_TURN_NUMBER`."""

    def __init__(self, name, /, **arguments):
        self.name = name
        self.input = arguments


def bash(command, **more):
    """A Bash call; `run_in_background=True` and `timeout=` are its other arguments."""
    return Call("Bash", command=command, description="scripted", **more)


def agent(name, prompt, background=False, **more):
    """An `Agent` call that starts a subagent with the script named after it, if the prompt has no other marker."""
    marked = prompt if MARKER.search(prompt) else f"[[{name}]] {prompt}"
    return Call(
        "Agent", description=f"run {name}", prompt=marked, subagent_type="general-purpose", name=name,
        run_in_background=background, **more,
    )


def mark(script, text):
    """A task for the main agent that is played by the script named."""
    return f"[[{script}]] {text}"


class Request:
    """One request as it came: when, what, whose, and how its reply went."""

    def __init__(self, path, headers, raw):
        self.at = time.monotonic()
        self.wall = time.time()
        self.path = path
        self.headers = headers
        self.raw = raw
        self.body = _decoded(raw)
        self.script = None  # the marker's name, or None for a utility request
        self.turn = None  # how many assistant messages it holds: the index of the reply that is due
        self.failed = None  # why the script could not answer
        self.hung_up = False  # the client went away in the middle of the reply
        self.answered_at = None  # when the last byte of the reply was written

    @property
    def messages(self):
        return self.body.get("messages", [])

    def blocks(self, role=None):
        """All content blocks (a plain text as a block), with the role of their message, in order."""
        for message in self.messages:
            if role in (None, message.get("role")):
                for block in as_blocks(message.get("content")):
                    yield message.get("role"), block

    def results(self):
        """The tool results: call id → (text, is_error)."""
        return {
            block["tool_use_id"]: (text_of(block.get("content")), bool(block.get("is_error")))
            for _, block in self.blocks("user") if block.get("type") == "tool_result"
        }

    def count(self, needle):
        """How often a text stands in the whole of what the model reads, assistant messages left out.

        A coordinator's own `SendMessage` call is an assistant message that holds the text, so those don't count.
        """
        read = [text for role, block in self.blocks() if role != "assistant" for text in _texts(block)]
        return sum(text.count(needle) for text in [*read, text_of(self.body.get("system"))])


def as_blocks(content):
    """Content as a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, dict)]


def text_of(content):
    """The text of content, results and all, joined."""
    return "\n".join(text for block in as_blocks(content) for text in _texts(block))


def _texts(block):
    if block.get("type") == "tool_result":
        return [text for inner in as_blocks(block.get("content")) for text in _texts(inner)]
    return [block["text"]] if isinstance(block.get("text"), str) else []


def _decoded(raw):
    try:
        value = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Server(loopback.Server):
    """The server; `requests` in the order they came. Use it in a `with` block."""

    def __init__(self, scripts):
        super().__init__(Handler)
        self.scripts = scripts
        self.requests = []
        self._changed = threading.Condition()

    def of(self, script):
        """The requests of a script so far, in order."""
        return [request for request in list(self.requests) if request.script == script]

    def wait_for(self, what, condition, seconds):
        """Waits for requests: the first true value of `condition(self)`, asked anew at every arrival."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (value := condition(self)):
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    value = condition(self)
                    if value:
                        return value
                    raise TimeoutError(f"no {what} within {seconds} s; {self.summary()}")
            return value

    def wait_turn(self, script, turn, seconds):
        """Waits for the first request of a script at a turn."""
        found = self.wait_for(
            f"turn {turn} of {script}", lambda _: [r for r in self.of(script) if r.turn == turn], seconds
        )
        return found[0]

    def summary(self):
        """One line that says which requests came, for a failed check."""
        came = ", ".join(f"{r.script or r.path}#{r.turn}" for r in list(self.requests))
        return f"requests: {came}" + "".join(f"; {r.script} failed: {r.failed}" for r in self.requests if r.failed)

    def arrived(self, request):
        """Records a request and finds out whose it is, then wakes who waits for it."""
        if request.path.endswith("/v1/messages"):
            request.script, request.turn = self._whose(request)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def _whose(self, request):
        """(script, turn); (None, None) for what isn't an agent: titles, topics and the like bring no tools."""
        if not request.body.get("tools"):
            return None, None
        for _, block in request.blocks("user"):
            for text in _texts(block):
                for found in MARKER.finditer(text):
                    if found.group(1) in self.scripts:
                        return found.group(1), sum(m.get("role") == "assistant" for m in request.messages)
        return None, None

    def reply(self, request):
        """The blocks of the reply that is due."""
        if request.script is None:
            return [Text(_harmless(request.body))]
        script = self.scripts[request.script]
        due = script[request.turn] if request.turn < len(script) else AFTER_THE_SCRIPT
        due = due(request) if callable(due) else due
        due = due if isinstance(due, list) else [due]
        return [Text(block) if isinstance(block, str) else block for block in due]


def _harmless(body):
    """What a utility request gets: a text, or JSON of the shape it asks for, with a word for every text."""
    shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    if shape.get("type") != "json_schema":
        return UTILITY_TEXT
    return json.dumps(_of_schema(shape.get("schema") or {}))


def _of_schema(schema):
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: _of_schema(inner) for name, inner in (schema.get("properties") or {}).items()}
    return {"array": [], "boolean": False, "integer": 0, "number": 0}.get(kind, UTILITY_TEXT)


class Handler(loopback.Handler):
    """One connection of Claude Code; `server.owner` is the server it belongs to."""

    def setup(self):
        super().setup()
        # Without it the small events of a reply wait for the acknowledgement of the one before: 40 ms each.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = Request(urllib.parse.urlsplit(self.path).path, dict(self.headers.items()), raw)
        self.server.owner.arrived(request)
        if request.path.endswith("/count_tokens"):
            return self._json(200, {"input_tokens": max(1, len(raw) // 4)})
        if not request.path.endswith("/v1/messages"):
            return self._error(404, "not_found_error", "not scripted")
        try:
            blocks = self.server.owner.reply(request)
        except Exception as error:  # a script that waited in vain: refused for good, or Claude Code would ask ten times
            request.failed = str(error)
            return self._error(400, "invalid_request_error", request.failed)
        try:
            self._answer(request, blocks)
        except OSError:  # the client hung up: that is something a case may want to know
            request.hung_up = True
            self.close_connection = True
        request.answered_at = time.monotonic()

    def do_GET(self):
        self._error(404, "not_found_error", "not scripted")

    def do_HEAD(self):
        self._json(200, {})

    def _error(self, status, kind, message):
        self._json(status, {"type": "error", "error": {"type": kind, "message": message}})

    def _json(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self, request, blocks):
        if not request.body.get("stream"):
            return self._json(200, _whole(request, blocks))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event, wait in events(request, blocks):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            time.sleep(wait)  # the pace of a scripted stream, zero but for a slow Text
        self.wfile.write(b"0\r\n\r\n")


def _message(request, content, stop):
    tokens = {"input_tokens": len(request.raw) // 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": f"msg_{request.script or 'utility'}_{request.turn or 0}_{time.monotonic_ns()}", "type": "message",
        "role": "assistant", "model": request.body.get("model") or MODEL, "content": content, "stop_reason": stop,
        "stop_sequence": None, "usage": {**tokens, "output_tokens": 1 if stop is None else 20},
    }


def _stop(blocks):
    return "tool_use" if any(isinstance(block, Call) for block in blocks) else "end_turn"


def call_id(script, turn, number):
    """The id of a scripted call, by which its result is found in later requests."""
    return f"toolu_{script}_{turn}_{number}"


def _head(request, block, number):
    if isinstance(block, Text):
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": call_id(request.script, request.turn, number), "name": block.name, "input": {}}


def _numbered(blocks):
    """Each block with its number among the calls (texts don't count)."""
    number = 0
    for block in blocks:
        yield block, number
        number += isinstance(block, Call)


def _whole(request, blocks):
    """The reply to a request that doesn't want a stream."""
    content = []
    for block, number in _numbered(blocks):
        filled = {"text": block.text} if isinstance(block, Text) else {"input": block.input}
        content.append({**_head(request, block, number), **filled})
    return _message(request, content, _stop(blocks))


def events(request, blocks):
    """The events of a streamed reply, each with the seconds to wait after it."""
    yield {"type": "message_start", "message": _message(request, [], None)}, 0
    for index, (block, number) in enumerate(_numbered(blocks)):
        yield {"type": "content_block_start", "index": index, "content_block": _head(request, block, number)}, 0
        for delta, wait in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}, wait
        yield {"type": "content_block_stop", "index": index}, 0
    delta = {"stop_reason": _stop(blocks), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}, 0
    yield {"type": "message_stop"}, 0


def _deltas(block):
    if isinstance(block, Call):
        return [({"type": "input_json_delta", "partial_json": json.dumps(block.input)}, 0)]
    size = -(-len(block.text) // block.pieces) or 1
    pieces = [block.text[at:at + size] for at in range(0, len(block.text), size)] or [""]
    return [({"type": "text_delta", "text": piece}, block.every) for piece in pieces]
