"""The real binary against a real, small language model: its stream, cut by an urgent message, its second reply, and a day."""

from lib import agent as agents
from lib import events, model_day, streams, tap
from lib.against_aimock import check_cut
from lib.model import serving

TASK = "Tell me a very long story about a sailor, the sea and a storm."
RUN_SECONDS = 300  # the model reads two thousand tokens before it says a word, on whatever machine this is
REPLY_TOKENS = 80  # so small a model doesn't always know when to stop
FEEDBACK = "Stop the story. Say only one short sentence about the sea."


def check(report, folder):
    """A cut in every protocol, for the server speaks all three; then a day in one of them.

    The working folder is the same too: its path is in the prompt, and the server need not read again what it knows.
    """
    with serving(folder) as url:
        with agents.workspace({"README.md": "A story.\n"}) as work:
            for protocol in agents.PROTOCOLS:
                name = f"model {protocol}"
                report.guarded(name, _urgent_in_stream, report, name, protocol, url, work)
        report.guarded(model_day.NAME, model_day.check, report, url)


def _urgent_in_stream(report, name, protocol, url, folder):
    """A message that comes while the model speaks."""
    limit = f"providers.{protocol}.max_output_tokens={REPLY_TOKENS}"
    with tap.Tap(url) as line:
        with agents.working(folder, f"{protocol}/smollm2", TASK, line.url, limit) as agent:
            agent.until("text of the model", lambda: len(agent.of("text_delta")) >= 8, RUN_SECONDS)
            agent.say(f"lead! {FEEDBACK}")
            status = agent.wait(RUN_SECONDS)
    events.check(report, name, agent, status, _outcome(agent))
    check_cut(report, name, agent, line.models(), FEEDBACK)
    streams.check(report, name, protocol, line.models(), agent.of("model_finished"))
    last = agent.of("model_finished")[-1:]
    said = last and last[0].get("text", "")
    streamed = "".join(e["text"] for e in agent.of("text_delta") if e["seq"] >= agent.of("model_started")[-1]["seq"])
    report.check(f"{name}: the second reply has a text", bool(said), last)
    report.equal(f"{name}: its pieces are its whole", streamed, said)
    report.check(f"{name}: it has an end", last and last[0].get("stop_reason") in ("end_turn", "max_tokens"), last)
    usage = last[0].get("usage", {}) if last else {}
    report.check(f"{name}: tokens were counted", all(usage.get(side, 0) > 0 for side in ("input", "output")), usage)


def _outcome(agent):
    """How the run should end: a reply that is cut at its limit, with nothing left to run, is a failure."""
    last = agent.of("model_finished")[-1:]
    return "failed" if last and last[0].get("stop_reason") == "max_tokens" else "finished"
