"""What cases assert again and again, about recorded requests and flags."""

import os
import re

from lib.claude import server as scripted

SKIPPED = re.compile(r"\[Skipped: message received from (?P<name>.+?) before this ran\]")
CUT = re.compile(r"\[Interrupted after (?P<seconds>\d+\.\d) s: message received from (?P<name>.+?)\.")
COORDINATOR = "main"  # how the sender of a coordinator's own SendMessage is named
PERSON = "the user"
FEEDBACK = "[User feedback: {}]"  # how a person's message stands beside results
# The bounds are measured, not held by CI: its machines are anybody's. Eight times as much still tells us from not being there.
TIMED = os.environ.get("MIDTURN_PEERS_TIMED") == "1"


def bound(seconds):
    """How long something may take in this run."""
    return seconds if TIMED else seconds * 8


SOON = bound(0.5)  # seconds from the end of the running call to the request that tells of the message


def told_at(server, script, text):
    """The first request of a script that holds a text, or None."""
    return next((request for request in server.of(script) if request.count(text)), None)


def told_once(result, name, server, script, text, form="{}"):
    """A text is in some request, and from that one on in each exactly once. Returns that first request, or None.

    `form` is what is to stand around it, `FEEDBACK` for one. The bare text is counted: told a second time in another form
    is told twice.
    """
    first = told_at(server, script, text)
    if not result.check(f"{name}: told", first is not None, shown(server, script)):
        return None
    later = [request for request in server.of(script) if request.turn >= first.turn]
    counts = [request.count(text) for request in later]
    result.equal(f"{name}: exactly once in every request from then on", counts, [1] * len(later))
    if form != "{}":
        result.equal(f"{name}: as {form.format('…')}", first.count(form.format(text)), 1)
    return first


def shown(server, script):
    """What a failed check shows: the turns seen, and the last words of the script's last request."""
    requests = server.of(script)
    last = list(requests[-1].blocks())[-3:] if requests else []
    return f"{server.summary()}\nthe last request of {script} ends with {last}"


def never_told(result, name, server, script, text):
    """A text is in no request of a script."""
    result.check(f"{name}: not told", told_at(server, script, text) is None, shown(server, script))


def outcomes(request, script, turn, calls):
    """How the calls of a turn ended, as a later request says: `ran`, `failed`, `skipped`, `cut` or `none` for each."""
    results = request.results()
    return [_outcome(results.get(scripted.call_id(script, turn, number))) for number in range(calls)]


def _outcome(found):
    if found is None:
        return "none"
    text, is_error = found
    if SKIPPED.search(text):
        return "skipped"
    if CUT.search(text):
        return "cut"
    return "failed" if is_error else "ran"


def sender_named(result, name, request, pattern, sender):
    """Every result that says `message received from` says it of this sender."""
    names = {found.group("name") for text, _ in request.results().values() for found in pattern.finditer(text)}
    result.equal(f"{name}: the sender is named", sorted(names), [sender])


def soon_after(result, name, world, flag, request, limit=SOON):
    """A request came at most `limit` seconds after a flag was raised, and not before it."""
    raised = world.when(flag)
    gap = request.wall - raised if raised else None
    measured = f"request {gap:.3f} s after {flag}, load {os.getloadavg()[0]:.1f}" if raised else f"no flag {flag}"
    print(f"        {name}: {measured}", flush=True)
    return result.check(f"{name}: told within {limit} s of {flag}", raised and 0 <= gap <= limit, f"after {gap} s")


def skips(result, name, played, text, ran=1, calls=5, steps=None, turn=0, form="{}"):
    """The main claim. The message came while call `ran - 1` of a turn ran: those up to it ran, the rest didn't.

    `played` is (world, server, script); `steps` are the flags' names of the calls, by which the files say the same
    as the results. Returns the request that tells.
    """
    world, server, script = played
    request = told_once(result, name, server, script, text, form)
    if request is None:
        return None
    result.equal(
        f"{name}: {ran} ran, {calls - ran} skipped", outcomes(request, script, turn, calls),
        ["ran"] * ran + ["skipped"] * (calls - ran),
    )
    if steps:
        result.equal(f"{name}: no skipped call ran", world.ran(*steps), list(steps[:ran]))
        soon_after(result, name, world, f"{steps[ran - 1]}.end", request)
    return request


def all_ran(result, name, world, server, script, text, steps, turn=0, form="{}"):
    """What happens without us: every call runs, and the text comes when all have. Returns the request that tells."""
    request = told_once(result, name, server, script, text, form)
    if request is None:
        return None
    result.equal(f"{name}: all ran", outcomes(request, script, turn, len(steps)), ["ran"] * len(steps))
    result.equal(f"{name}: all began", world.ran(*steps), list(steps))
    return request


def ended(result, name, session, status=0):
    """The session came to its end by itself."""
    try:
        found = session.finish()
    except Exception as error:  # it hangs: that is the failure, and its screen the detail
        result.check(f"{name}: the session ends", False, f"{error}\n{session.said()[-2000:]}")
        return
    result.check(f"{name}: the session ends", found in (status, None), f"status {found}\n{session.said()[-2000:]}")
