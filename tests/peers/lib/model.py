"""Starts the small model's server and says where it listens."""

import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

from lib import processes

START_SECONDS = 120
ATTEMPTS = 3
ADDRESS = re.compile(r"^(http://127\.0\.0\.1:\d+)$", re.MULTILINE)


@contextlib.contextmanager
def serving(folder):
    """The model's address, once it answers; it also ends by itself when our end of its standard input closes.

    Whether the server comes up is not what is checked here, and once in a great while it hangs before it listens
    (seen once in CI, in none of hundreds of starts by hand): it is killed then and started again.
    """
    for attempt in range(1, ATTEMPTS + 1):
        with contextlib.ExitStack() as started:
            try:
                url = started.enter_context(_started(folder))
            except (RuntimeError, TimeoutError) as error:
                if attempt == ATTEMPTS:
                    raise
                print(f"the small model, start {attempt} of {ATTEMPTS}: {error}", file=sys.stderr, flush=True)
                continue
            yield url
            return


@contextlib.contextmanager
def _started(folder):
    """One process, from its start to its end."""
    program = pathlib.Path(__file__).with_name("model_server.py")
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-B", str(program), str(folder), str(START_SECONDS)]
        with processes.running(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as process:
            url = processes.address(log, ADDRESS, process, START_SECONDS)
            processes.healthy(url, process, START_SECONDS)
            yield url
