"""A person's permission rules decide the same with us and without us: we never allow, and never rewrite a command."""

from lib.claude import server as scripted, session
from lib.claude.scripts import with_mcp
from lib.claude.server import Call, Server, bash
from lib.claude.world import World, marked

DONE = "All tried."
RULES = {
    "allow": ["Bash(echo:*)", "Bash(touch allowed:*)", "Bash(printf:*)"],
    "ask": ["Bash(touch asked:*)"],
    "deny": ["Bash(rm:*)", "Bash(touch denied:*)", "Read(./b.txt)"],
}
COMMANDS = (
    "echo hello", "touch allowed1", "touch asked1", "touch denied1", "touch unlisted1", "rm a.txt", "echo a; rm b.txt",
    "cd . && touch denied2", "FOO=1 touch allowed2", "echo x > written.txt", "echo $(rm c.txt)", "ls", "cat a.txt",
    "printf '%s' \"it's 'quoted'\"", "bash -c 'rm a.txt'", "touch allowed3 && touch unlisted2", "env rm a.txt",
    "cat <<'END'\nrm a.txt\nEND", "echo allowed | tee unlisted3", "false || echo after",
)
MODES = {"default": (), "acceptEdits": ("--permission-mode", "acceptEdits"), "plan": ("--permission-mode", "plan")}


def _calls():
    """One call a reply: what runs together is no matter here."""
    reads = [Call("Read", file_path="a.txt"), Call("Read", file_path="b.txt")]
    return [[bash(command)] for command in COMMANDS] + [[call] for call in reads]


def _decided(claude, installed, mode):
    """What each call came to in a world with these rules, and the files that were there at the end."""
    with World(claude) as world:
        world.settings({"permissions": RULES})
        more = world.install("hooks") if installed else []
        with Server({"main": [*_calls(), DONE]}) as server:
            arguments = [*more, *with_mcp(world)]
            with session.printing(world, server, marked("main"), arguments=arguments, permissions=MODES[mode]) as running:
                running.finish()
            results = server.of("main")[-1].results()
        files = sorted(path.name for path in world.project.iterdir() if not path.name.startswith("."))
        told = [results[scripted.call_id("main", turn, 0)] for turn in range(len(_calls()))]
        return [(text.replace(str(world.folder), "WORLD"), is_error) for text, is_error in told], files


def _same(result, claude, mode):
    without, with_us = (_decided(claude, installed, mode) for installed in (False, True))
    names = [*COMMANDS, "Read a.txt", "Read b.txt"]
    result.equal(f"rules, {mode}: as many results", len(with_us[0]), len(without[0]))
    result.equal(f"rules, {mode}: as many as calls", len(without[0]), len(names))
    for name, plain, ours in zip(names, without[0], with_us[0]):
        result.equal(f"rules, {mode}: {name!r}", ours, plain)
    result.equal(f"rules, {mode}: the same files", with_us[1], without[1])
    refused = [is_error for _text, is_error in without[0]]
    result.check(f"rules, {mode}: some run and some don't", any(refused) and not all(refused), str(refused))


def rules_decide_the_same(result, claude):
    """Allow, ask and deny, in three modes, by command and by file."""
    for mode in MODES:
        result.guarded(mode, _same, result, claude, mode)


CASES = (rules_decide_the_same,)
