"""Loopback ports that nobody else is given by chance, whether or not somebody listens there."""

from __future__ import annotations

import socket
import sys
from functools import cache

HOST = "127.0.0.1"


def held_port() -> tuple[int, socket.socket]:
    """Return a port on which nobody listens, and the socket that holds it until it is closed.

    Whoever is told this port may listen on it meanwhile, as a server does that is started again.
    So it is on Linux; elsewhere nothing holds it.
    """
    holder = socket.socket()
    # Servers say so as well: then a port may have several sockets, of which one listens.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((HOST, 0))
    port: int = holder.getsockname()[1]
    if sys.platform != "linux":
        holder.close()
    return port, holder


@cache
def _nowhere() -> tuple[int, socket.socket]:
    return held_port()


def closed_port() -> int:
    """Return a port on which nobody listens for as long as this process lives."""
    return _nowhere()[0]
