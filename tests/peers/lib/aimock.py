"""Starts aimock on a free port and speaks its control interface: fixtures in, journal out."""

import contextlib
import json
import re
import tempfile
import urllib.request

from lib import processes

CLI = "node_modules/@copilotkit/aimock/dist/cli.js"
START_SECONDS = 30
UNUSED = {"match": {"model": "no-such-model"}, "response": {"content": "unused"}}  # it won't start without a fixture
LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


class Aimock:
    """A running aimock."""

    def __init__(self, url):
        self.url = url

    def load(self, fixtures):
        """Forgets everything, then takes these fixtures."""
        self._ask("POST", "reset", {})
        self._ask("POST", "fixtures", {"fixtures": fixtures})

    def journal(self):
        """Every model request since `load`, in order."""
        return [entry for entry in self._ask("GET", "journal") if entry["method"] == "POST"]

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/__aimock/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


@contextlib.contextmanager
def serving(folder):
    """aimock on a free loopback port; a request that no fixture matches is an error (`--strict`)."""
    with tempfile.NamedTemporaryFile("w+", suffix=".json") as fixtures, tempfile.TemporaryFile("w+") as log:
        json.dump({"fixtures": [UNUSED]}, fixtures)
        fixtures.flush()
        command = ["node", str(folder / CLI), "--host", "127.0.0.1", "--port", "0", "--strict"]
        command += ["--fixtures", fixtures.name]
        with processes.running(command, stdout=log, stderr=log, cwd=folder) as process:
            url = processes.address(log, LISTENING, process, START_SECONDS)
            processes.healthy(url, process, START_SECONDS)
            yield Aimock(url)

