"""A Redis for the length of a block, on a free port of this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_S = 10.0


@contextmanager
def own_server(folder: Path) -> Iterator[str]:
    """Start a server, yield its URL, and stop it; what it holds is gone then."""
    program = shutil.which("redis-server")
    if program is None:
        sys.exit("redis-server is not here: install it, or pass --url")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--dir", str(folder), "--logfile", str(folder / "redis.log")]
    server = subprocess.Popen(command)  # noqa: S603 (arguments of its own)
    try:
        wait_until_open(server, port)
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_until_open(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait for the server to take connections."""
    give_up_at = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:  # it is refused, or reset while the server is starting
            if server.poll() is not None:
                sys.exit(f"redis-server has ended with {server.returncode}: see what it says above")
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            return
