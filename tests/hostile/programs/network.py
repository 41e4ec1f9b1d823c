"""Every way to another process or machine: TCP, UDP, raw packets, sockets with a path and without. The
harness listens at all of them but the metadata address, to which nothing is said."""

import errno
import os
import socket

from common import TARGETS, did, escaped, got, refused, say

METADATA = "169.254.169.254"


def connect(family, kind, address, what):
    # A datagram goes nowhere in a network of one's own, without an error: the harness counts.
    tell = did if kind == socket.SOCK_DGRAM else escaped
    try:
        with socket.socket(family, kind) as end:
            end.settimeout(0.5)
            end.connect(address)
            end.sendall(b"GET /v1/health HTTP/1.1\r\nhost: midturn\r\n\r\n")
            tell(f"connect to {what}")
            if kind == socket.SOCK_STREAM:
                got(what, end.recv(512))
    except TimeoutError:
        # Nobody answered, but the packet left.
        escaped(f"send to {what}")
    except OSError as error:
        # Somebody refused: the packet got there.
        if error.errno in (errno.ECONNREFUSED, errno.EHOSTUNREACH) and family != socket.AF_UNIX:
            say(f"met: {what}: {error}")
        else:
            refused(f"connect to {what}", error)


def reach(host):
    """Only whether a connection can be had: it may be a real service, so nothing is asked of it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
            end.settimeout(0.5)
            end.connect((host, 80))
        escaped(f"connect to {host}")
    except TimeoutError:
        escaped(f"send to {host}")
    except OSError as error:
        refused(f"connect to {host}", error)


for port in TARGETS["tcp"]:
    for host in ["127.0.0.1", "127.0.0.2", "0.0.0.0"] + TARGETS["addresses"]:
        connect(socket.AF_INET, socket.SOCK_STREAM, (host, port), f"{host}:{port}")
    connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port), f"[::1]:{port}")
    connect(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", port), f"[::ffff:127.0.0.1]:{port}")
for port in TARGETS["udp"]:
    connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port), f"udp 127.0.0.1:{port}")
reach(METADATA)
for path in TARGETS["sockets"]:
    connect(socket.AF_UNIX, socket.SOCK_STREAM, path, path)
    # A long path is no way around a rule about paths.
    connect(socket.AF_UNIX, socket.SOCK_STREAM, f"/proc/self/root{path}", f"/proc/self/root{path}")
for path in TARGETS["datagrams"]:
    connect(socket.AF_UNIX, socket.SOCK_DGRAM, path, path)
connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + TARGETS["abstract"], "the abstract socket")
for family, kind, protocol, what in [
    (socket.AF_PACKET, socket.SOCK_RAW, 3, "a packet socket"),
    (socket.AF_INET, socket.SOCK_RAW, 1, "a raw socket"),
    (getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM, 0, "a socket to the hypervisor"),
    (getattr(socket, "AF_ALG", 38), socket.SOCK_SEQPACKET, 0, "a socket of the kernel's ciphers"),
]:
    try:
        with socket.socket(family, kind, protocol):
            (did if what.endswith("ciphers") else escaped)(what)
    except OSError as error:
        refused(what, error)
try:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        end.bind(("0.0.0.0", 0))
        end.listen()
        say("did: listen")
except OSError as error:
    refused("listen", error)
say("done")
