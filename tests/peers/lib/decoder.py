"""Runs our own stream decoders, as a program that reads a stream and prints what it made of it as JSON."""

import functools
import json
import os
import pathlib
import subprocess

from lib import processes

BUILD_SECONDS = 1800
DECODE_SECONDS = 120


@functools.cache
def program():
    """The `decode` example of midturn-providers: MIDTURN_DECODE if set, else built here once."""
    if "MIDTURN_DECODE" in os.environ:
        return pathlib.Path(os.environ["MIDTURN_DECODE"])
    command = ["cargo", "build", "--quiet", "--package", "midturn-providers", "--example", "decode"]
    subprocess.run(command, cwd=processes.repository(), check=True, timeout=BUILD_SECONDS)
    return processes.target_folder() / "debug" / "examples" / "decode"


def decode(protocol, stream, chunk=None):
    """What our decoder makes of the bytes, fed `chunk` at a time: anthropic, openai-chat, openai, or only sse."""
    command = [str(program()), protocol]
    if chunk is not None:
        command += ["--chunk", str(chunk)]
    done = subprocess.run(command, input=stream, capture_output=True, timeout=DECODE_SECONDS, check=False)
    if done.returncode:
        return {"error": f"exit status {done.returncode}: {done.stderr.decode(errors='replace').strip()[-2000:]}"}
    return json.loads(done.stdout)
