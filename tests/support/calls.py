"""Which functions a server is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis


@contextmanager
def calls(server: redis.Redis) -> Iterator[list[tuple[str, str]]]:
    """Collect the function calls that the server gets meanwhile, each with its connection."""
    seen: list[tuple[str, str]] = []
    with server.monitor() as monitor:
        yield seen
        server.echo("the end")
        while (line := monitor.next_command())["command"] != "ECHO the end":
            if line["command"].startswith("FCALL "):
                port = line["client_port"]
                seen.append((line["command"].split()[1].rpartition("_")[2], port))
