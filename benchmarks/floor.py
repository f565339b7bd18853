"""What one round trip costs here at the least: a bare PING over a plain socket, one by one."""

from __future__ import annotations

import socket
import time

from benchmarks.harness import Figure, percentile, repeated, serving

COUNT = 10_000
PING = b"*1\r\n$4\r\nPING\r\n"


async def measure() -> list[Figure]:
    """Measure how long a PING takes, half and 99 of a hundred of them."""
    with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        async def run() -> list[float]:
            times_ms = []
            for _ in range(COUNT):
                start = time.perf_counter()
                line.sendall(PING)
                assert line.recv(16) == b"+PONG\r\n"
                times_ms.append((time.perf_counter() - start) * 1000)
            return [percentile(times_ms, 50), percentile(times_ms, 99)]

        p50s, p99s = await repeated(run)
    return [Figure("bare PING, p50", "ms", p50s), Figure("bare PING, p99", "ms", p99s)]
