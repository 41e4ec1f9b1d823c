"""A recording HTTP proxy on loopback, between our binary and a server that others wrote.

aimock's journal keeps requests in a form of its own, and the model server keeps none; the tap keeps every request's
bytes as they came, and notices when the client hangs up in the middle of a reply. It changes nothing in between: the
reply's bytes go on as they come.
"""

import http.client
import json
import urllib.parse

from lib import loopback

FORWARDED_NOT = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding"}
RELAY_BYTES = 65536


class Exchange:
    """One request, and how its reply went."""

    def __init__(self, path, body):
        self.path = path
        self.body = json.loads(body) if body else None
        self.status = None
        self.reply = b""
        self.whole = False  # the reply came to its end, and the client took all of it
        self.hung_up = False  # the client closed the connection before the reply's end
        self.ended = False


class Tap(loopback.Server):
    """The proxy; `exchanges` in the order the requests came."""

    def __init__(self, upstream):
        super().__init__(Handler)
        address = urllib.parse.urlsplit(upstream)
        self.upstream = (address.hostname, address.port)
        self.exchanges = []

    def models(self):
        """The exchanges that asked a model for something."""
        return [e for e in self.exchanges if e.body is not None]


class Handler(loopback.Handler):
    """Passes one request on, and its reply back; `server.owner` is the tap it belongs to."""

    def do_POST(self):
        self._pass_on(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def do_GET(self):
        self._pass_on(b"")

    def _pass_on(self, body):
        exchange = Exchange(urllib.parse.urlsplit(self.path).path, body)
        self.server.owner.exchanges.append(exchange)
        upstream = http.client.HTTPConnection(*self.server.owner.upstream)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in FORWARDED_NOT}
            upstream.request(self.command, self.path, body, headers)
            self._relay(upstream.getresponse(), exchange)
        except OSError:  # the client hung up, or the server broke off: end our side as abruptly
            self.close_connection = True
        finally:
            exchange.ended = True
            upstream.close()

    def _relay(self, reply, exchange):
        exchange.status = reply.status
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in FORWARDED_NOT:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while part := reply.read1(RELAY_BYTES):
                exchange.reply += part
                self._write(exchange, b"%x\r\n%s\r\n" % (len(part), part))
            self._write(exchange, b"0\r\n\r\n")
            exchange.whole = True
        except http.client.HTTPException:  # the server broke off inside its reply: so do we
            self.close_connection = True

    def _write(self, exchange, data):
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            exchange.hung_up = True
            raise
