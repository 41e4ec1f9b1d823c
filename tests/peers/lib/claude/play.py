"""Runs cases against the pinned Claude Code, all or those that MIDTURN_PEERS_CASE names a part of."""

import os

from lib import cache


def binary(folder):
    """Claude Code's own binary below the folder of its part."""
    return next(folder.glob(cache.CLAUDE))


def play(result, folder, modules):
    """Every case of the modules, one after the other; an exception is one failed check."""
    wanted = os.environ.get("MIDTURN_PEERS_CASE", "")
    for module in modules:
        for case in module.CASES:
            if wanted in case.__name__:
                result.guarded(case.__name__, case, result, binary(folder))
