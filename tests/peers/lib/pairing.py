"""Whether every tool call in a request has exactly one result, in call order, in what directly follows.

Pure: takes a request's path and JSON body in any of the three protocols (or aimock's journal entry of one), gives
nothing or the first problem as a text. `self_check` shows that it can find one.
"""

import json


def problem(path, body):
    """The first breach of pairing in a request, or None."""
    steps = _steps(path, body)
    seen = set()
    for before, (kind, ids), after in zip([("start", ())] + steps, steps, steps[1:] + [("end", ())]):
        if kind == "calls" and after != ("results", ids):
            return f"the calls {list(ids)} are followed by {after[0]} {list(after[1])}"
        if kind == "results" and before[0] != "calls":
            return f"the results {list(ids)} follow {before[0]}"
        if kind == "calls" and (seen & set(ids) or len(set(ids)) < len(ids)):
            return f"a call id of {list(ids)} is used twice"
        if kind == "calls":
            seen |= set(ids)
        if kind == "user" and before[0] == "user" and path.endswith("/messages"):
            return "two user messages in a row"
    return None


def problem_on_wire(exchange):
    """The same for a request that the tap recorded."""
    return problem(exchange.path, exchange.body)


def journal_problem(entry):
    """The same for an entry of aimock's journal, which shows every request in the form of chat completions.

    From an Anthropic request it writes a user message's text before the results beside it; here it is put back.
    """
    messages = entry["body"]["messages"]
    if entry["path"].endswith("/messages"):
        messages = _text_after_results(messages)
    return problem("/chat/completions", {"messages": messages})


def blocks(path, body):
    """The prompt as a flat list of texts, one per block, without cache markers: what only grows."""
    if path.endswith("/responses"):
        return [_canonical(item) for item in body["input"]]
    found = []
    for message in body["messages"]:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        others = {key: message[key] for key in ("tool_calls", "tool_call_id") if key in message}
        found += [message["role"] + _canonical(part) for part in parts] + ([_canonical(others)] if others else [])
    return found


def results_of(exchange):
    """The tool results of a request that the tap recorded, in order: pairs of call id and text."""
    path, body = exchange.path, exchange.body
    if path.endswith("/responses"):
        items = [item for item in body["input"] if item.get("type") == "function_call_output"]
        return [(item["call_id"], _text(item["output"])) for item in items]
    if path.endswith("/chat/completions"):
        return [(m["tool_call_id"], _text(m["content"])) for m in body["messages"] if m["role"] == "tool"]
    parts = [p for m in body["messages"] if isinstance(m["content"], list) for p in m["content"]]
    return [(p["tool_use_id"], _text(p.get("content"))) for p in parts if p["type"] == "tool_result"]


def first_user_text(path, body):
    """What a conversation began with: tells the agents apart."""
    items = body["input"] if path.endswith("/responses") else body["messages"]
    return next(_text(item["content"]) for item in items if item.get("role") == "user")


def last_user_text(path, body):
    """The text that a user message ends the request with (empty if it ends otherwise)."""
    items = body["input"] if path.endswith("/responses") else body["messages"]
    last = items[-1] if items else {}
    return _text(last.get("content")) if last.get("role") == "user" else ""


def _text(content):
    """The text of a content that is a text, a list of parts, or nothing."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)
    return content or ""


def _canonical(value):
    """A value as JSON that doesn't depend on key order or on cache markers."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "cache_control"}
    return json.dumps(value, sort_keys=True)


def _steps(path, body):
    """A request as a list of (kind, ids): calls, results, user, assistant; neighbouring calls or results are joined."""
    if path.endswith("/messages"):
        raw = [step for message in body["messages"] for step in _anthropic(message)]
    elif path.endswith("/responses"):
        raw = [_responses(item) for item in body["input"]]
    else:
        raw = [step for message in body["messages"] for step in _chat(message)]
    return _joined([step for step in raw if step[0] != "ignored"])


def _anthropic(message):
    content = message["content"]
    if isinstance(content, str):
        return [(message["role"], ())]
    kinds = {"tool_use": ("calls", "id"), "tool_result": ("results", "tool_use_id")}
    steps = []
    for part in content:
        kind, key = kinds.get(part["type"], (message["role"], None))
        if (kind, ()) != (steps[-1] if steps else None):
            steps.append((kind, (part[key],) if key else ()))
    return steps


def _responses(item):
    if item.get("type") == "function_call":
        return ("calls", (item["call_id"],))
    if item.get("type") == "function_call_output":
        return ("results", (item["call_id"],))
    return (item["role"], ()) if item.get("role") in ("user", "assistant") else ("ignored", ())


def _chat(message):
    if message["role"] == "tool":
        return [("results", (message["tool_call_id"],))]
    calls = [("calls", (call["id"],)) for call in message.get("tool_calls") or []]
    said = [(message["role"], ())] if message["role"] in ("user", "assistant") and message.get("content") else []
    return said + calls


def _joined(steps):
    """Merges neighbours of the kinds calls and results."""
    joined = []
    for kind, ids in steps:
        if ids and joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + ids)
        else:
            joined.append((kind, ids))
    return joined


def _text_after_results(messages):
    """Moves each user message that stands between calls and their results behind the results."""
    ordered = list(messages)
    for place in range(len(ordered) - 1, 0, -1):
        if ordered[place]["role"] == "user" and ordered[place - 1].get("tool_calls"):
            end = place + 1
            while end < len(ordered) and ordered[end]["role"] == "tool":
                end += 1
            ordered[place:end] = ordered[place + 1:end] + [ordered[place]]
    return ordered


def self_check(report):
    """Rows of what is right and what is wrong, so that a check that never fails would be seen."""
    use, result, text = ("tool_use", "id"), ("tool_result", "tool_use_id"), ("text", "text")
    rows = [
        ("results in call order, then text", [use, use], [(result, 0), (result, 1), (text, 0)], True),
        ("results out of order", [use, use], [(result, 1), (result, 0)], False),
        ("a result missing", [use, use], [(result, 0)], False),
        ("a result twice", [use], [(result, 0), (result, 0)], False),
        ("text before the results", [use], [(text, 0), (result, 0)], False),
        ("no results", [use], [(text, 0)], False),
    ]
    for name, calls, answer, holds in rows:
        assistant = [{"type": kind, key: f"c{place}"} for place, (kind, key) in enumerate(calls)]
        user = [{"type": kind, key: f"c{place}"} for (kind, key), place in answer]
        contents = [("user", "go"), ("assistant", assistant), ("user", user)]
        messages = [{"role": role, "content": content} for role, content in contents]
        found = problem("/v1/messages", {"messages": messages})
        report.check(f"the pairing check knows: {name}", (found is None) == holds, str(found))
