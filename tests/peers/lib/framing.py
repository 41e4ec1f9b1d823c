"""The framing cases of OpenAI's Python SDK, judged by the SDK's own assertions but decoded by us.

The test file of the source package is run with stand-ins for what it imports. The stand-in for the SDK's decoder
joins the chunks of a case, has our decoder read them at some chunk size, and hands the events back, so that the
file's own assertions decide. What they say of the SDK's private state is not about us: it is answered by a value
that equals everything.
"""

import ast
import asyncio
import contextlib
import inspect
import itertools
import sys
import types

from lib.decoder import decode

CHUNK_SIZES = (1, 2, 3, 7, None, "as in the case")
HUGE = {"test_event_larger_than_64_mib"}  # only fed whole and as in the case

# Cases that aren't about what the bytes mean.
NOT_FRAMING = {
    "test_partial_line_uses_mutable_buffer": "the type of a private buffer",
    "test_sync_interruption_closes_response": "the SDK's HTTP client",
    "test_async_interruption_closes_response": "the SDK's HTTP client",
    "test_cancellation_clears_partial_event_and_closes_response": "the SDK's HTTP client",
    "test_context_exit_after_event": "the SDK's HTTP client",
}


class Anything:
    """Equals every value."""

    def __eq__(self, other):
        return True

    __hash__ = None


class Refused(Exception):
    """Our decoder refused the stream by name."""


def decoder_class(chunk_size):
    """A stand-in for the SDK's `SSEDecoder` that asks our decoder, at one chunk size."""

    class Decoder:
        _data = Anything()
        _last_event_id = None

        def iter_bytes(self, chunks):
            chunks = list(chunks)
            stream = b"".join(chunks)
            return iter([_event(frame) for frame in _frames(stream, _size(chunks))])

    def _size(chunks):
        if chunk_size == "as in the case":
            return max(len(chunk) for chunk in chunks[:2]) or None
        return chunk_size

    return Decoder


def _frames(stream, size):
    frames = decode("sse", stream, size)
    if isinstance(frames, dict):
        raise Refused(frames.get("error", str(frames)))
    return frames


def _event(frame):
    """An SDK event from one of our frames. We keep no `id`; where our decoder prints none, any is right."""
    return types.SimpleNamespace(event=frame.get("event"), data=frame["data"], id=frame.get("id", Anything()))


def _stand_ins(chunk_size):
    """The modules that the test file imports."""
    pytest = types.ModuleType("pytest")
    pytest.mark = types.SimpleNamespace(parametrize=_parametrize)
    pytest.raises = contextlib.nullcontext
    streaming = types.ModuleType("openai._streaming")
    streaming.SSEDecoder = decoder_class(chunk_size)
    for name in ("Stream", "AsyncStream", "ServerSentEvent", "_SSELineDecoder"):
        setattr(streaming, name, object)
    openai = types.ModuleType("openai")
    openai.OpenAI = openai.AsyncOpenAI = object
    httpx2 = types.ModuleType("httpx2")
    httpx2.SyncByteStream = httpx2.AsyncByteStream = object
    extensions = types.ModuleType("typing_extensions")
    extensions.override = lambda function: function
    return {m.__name__: m for m in (pytest, streaming, openai, httpx2, extensions)}


def _parametrize(name, values):
    """Stands in for pytest's decorator: remembers the values on the function."""

    def decorate(function):
        function.rows = {name: values, **getattr(function, "rows", {})}
        return function

    return decorate


@contextlib.contextmanager
def _modules(replacements):
    """Puts modules in place of what is, or isn't, installed; takes them back at the end."""
    before = {name: sys.modules.get(name) for name in replacements}
    sys.modules.update(replacements)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _load(path, chunk_size):
    """The test file's functions, with our decoder behind them."""
    module = types.ModuleType("sdk_framing_cases")
    with _modules(_stand_ins(chunk_size)):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return {name: function for name, function in vars(module).items() if name.startswith("test_")}


def names(path):
    """The names of the cases in the file, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in tree.body if isinstance(node, functions) and node.name.startswith("test_")]


def _variants(function):
    """Every combination of a case's parameters. `sync` only chooses between the SDK's two clients: one is enough."""
    rows = {**getattr(function, "rows", {}), "sync": [True]}
    wanted = list(inspect.signature(function).parameters)
    return [dict(zip(wanted, values)) for values in itertools.product(*(rows[name] for name in wanted))]


def check(report, path):
    """One check for each framing case and chunk size."""
    for size in CHUNK_SIZES:
        cases = _load(path, size)
        said = {None: "whole"}.get(size, size if isinstance(size, str) else f"{size} bytes")
        for name in names(path):
            if name not in NOT_FRAMING and not (name in HUGE and isinstance(size, int)):
                problem = _first_problem(cases[name])
                report.check(f"openai framing: {name.removeprefix('test_')}, {said}", not problem, problem or "")


def _first_problem(function):
    """Runs a case with each of its parameters; the first that doesn't hold, as a text."""
    for arguments in _variants(function):
        try:
            asyncio.run(_awaited(function(**arguments)))
        except Refused as refusal:
            if function.__name__ not in HUGE:  # a bound that is named is ours to set; a wrong event isn't
                return f"{arguments}: refused: {refusal}"
        except AssertionError:
            return f"{arguments}: {_where()}"
    return None


async def _awaited(result):
    if inspect.isawaitable(result):
        await result


def _where():
    """The line of the test file whose assertion failed, with the values around it."""
    frame = sys.exc_info()[2]
    while frame.tb_next:
        frame = frame.tb_next
    shown = {name: repr(value)[:300] for name, value in frame.tb_frame.f_locals.items() if not name.startswith("_")}
    return f"line {frame.tb_lineno}: {shown}"
