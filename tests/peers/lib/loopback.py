"""What our HTTP servers on loopback have in common: one lives as long as its `with` block, and prints nothing."""

import contextlib
import http.server
import threading


class Server:
    """A server; `handler` is a class of `Handler`, whose `server.owner` is this."""

    def __init__(self, handler):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.owner = self
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection; a client that goes away is no error."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Says nothing: the report is the only output."""

    def handle(self):
        with contextlib.suppress(OSError):
            super().handle()
