"""Starts the small model's server and says where it listens."""

import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

from lib import processes

START_SECONDS = 120
ADDRESS = re.compile(r"^(http://127\.0\.0\.1:\d+)$", re.MULTILINE)


@contextlib.contextmanager
def serving(folder):
    """The model's address, once it answers; it also ends by itself when our end of its standard input closes."""
    program = pathlib.Path(__file__).with_name("model_server.py")
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-B", str(program), str(folder)]
        with processes.running(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as process:
            url = processes.address(log, ADDRESS, process, START_SECONDS)
            processes.healthy(url, process, START_SECONDS)
            yield url

