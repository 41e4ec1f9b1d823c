"""What holds of the events of every run: docs/scenarios.md, section 4."""

from lib.agent import LIVE

EXIT = {"finished": 0, "failed": 1}


def check(report, name, agent, status, outcome="finished"):
    """The checks that every run shares; `status` is the program's exit status, `outcome` how the lead should end."""
    if not report.equal(f"{name}: exit status", status, EXIT[outcome]):
        report.check(f"{name}: its last words", False, agent.last())
    report.equal(f"{name}: nothing but events on standard output", agent.noise, [])
    report.check(f"{name}: events numbered without gaps", not numbering(agent.events), numbering(agent.events))
    outcomes = [e.get("outcome") for e in agent.of("run_finished", agent="lead")]
    report.equal(f"{name}: how the lead's run ended", outcomes, [outcome])
    report.check(f"{name}: every call has one end", not ends(agent), ends(agent))


def numbering(events):
    """The first event whose number is wrong, as a text; empty if there is none."""
    number, live = 0, 0
    for event in events:
        is_live = event.get("type") in LIVE
        number, live = (number, live + 1) if is_live else (number + 1, 0)
        if event.get("v") != 1 or event.get("seq") != number:
            return f"expected v 1 and seq {number}: {event}"
    return "" if events and events[0]["type"] == "session_started" else f"no session_started first: {events[:1]}"


def ends(agent):
    """The calls that a model asked for and that don't have exactly one `tool_finished`, as a text."""
    asked = [_id(call) for event in agent.of("model_finished") for call in event.get("tools", [])]
    finished = [event["tool"] for event in agent.of("tool_finished")]
    return "" if sorted(asked) == sorted(finished) else f"asked {asked}, finished {finished}"


def _id(call):
    """A call in `model_finished` is an object with an id; a list of id and name would do as well."""
    return call["id"] if isinstance(call, dict) else call[0]


def statuses(agent):
    """How each call ended."""
    return {event["tool"]: event["status"] for event in agent.of("tool_finished")}


def partial_text(event):
    """The text of a `model_interrupted`."""
    return event.get("text") or ""
