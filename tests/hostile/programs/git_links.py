"""Makes one of the files that the coordinator's own git writes a link to a file outside. $1 names it."""

import os
import subprocess
import sys

from common import MARK, TARGETS, attempt, quietly, say

OUTSIDE = TARGETS["outside"]


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, timeout=20).stdout.strip()


common = os.path.abspath(git("rev-parse", "--git-common-dir"))
own = os.path.abspath(git("rev-parse", "--absolute-git-dir"))
branch = git("symbolic-ref", "HEAD")
file = f"{OUTSIDE}/canary.txt"
absent = f"{OUTSIDE}/made-by-git-{MARK}"


def link(path, target):
    def action():
        old = path + ".old"
        if os.path.lexists(path):
            quietly(lambda: os.rename(path, old))
        if os.path.lexists(path):
            os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    attempt(f"link {path} to {target}", action)


def objects():
    for n in range(256):
        if not os.path.isdir(f"{common}/objects/{n:02x}"):
            link(f"{common}/objects/{n:02x}", OUTSIDE)


WAYS = {
    "index": lambda: link(f"{own}/index", absent),
    "index.lock": lambda: link(f"{own}/index.lock", absent),
    "head": lambda: link(f"{own}/HEAD", file),
    "head-log": lambda: link(f"{own}/logs/HEAD", file),
    "logs": lambda: link(f"{own}/logs", OUTSIDE),
    "branch": lambda: link(f"{common}/{branch}", absent),
    "branch.lock": lambda: link(f"{common}/{branch}.lock", absent),
    "branch-log": lambda: link(f"{common}/logs/{branch}", file),
    "branch-folder": lambda: link(os.path.dirname(f"{common}/{branch}"), OUTSIDE),
    "branch-log-folder": lambda: link(os.path.dirname(f"{common}/logs/{branch}"), OUTSIDE),
    "objects": objects,
    "message": lambda: link(f"{own}/COMMIT_EDITMSG", file),
    "orig-head": lambda: link(f"{own}/ORIG_HEAD", file),
    "merge-head": lambda: link(f"{own}/MERGE_HEAD", file),
    "own-index": lambda: (link(os.path.join(git("rev-parse", "--show-toplevel"), ".midturn-index"), absent), git("checkout", "--detach")),
    "folder": lambda: link(own, OUTSIDE),
}
with open("change.txt", "w") as change:
    change.write("something to commit\n")
WAYS[sys.argv[1]]()
say("done")
