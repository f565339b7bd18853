"""Faults of the Redis server: deaths, standing still, loading, and what operators do to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import redis

from tests.chaos.settings import LEASE_S
from tests.chaos.strike import Fault, Strike
from tests.crash.crew import passed
from tests.support.until import until

LOADS_S = 2.5
COMMAND_BYTES = 60
"""About what a command takes in the append-only file."""

NAP_US = 60
"""What the shortest sleep of the server takes."""

STARTS_S = 60.0


@asynccontextmanager
async def without_server(strike: Strike) -> AsyncIterator[None]:
    """Have the server to oneself: one fault at a time stops or ends it."""
    async with strike.redis.turn:
        strike.on("server")
        strike.redis.is_away = True
        try:
            yield
        finally:
            strike.redis.is_away = False


async def restart(strike: Strike) -> None:
    """SIGKILL to the server, and a start on its append-only file."""
    async with without_server(strike):
        await _restart(strike)


async def load(strike: Strike) -> None:
    """The same, and for seconds it answers that it is loading."""
    async with without_server(strike):
        size = sum(path.stat().st_size for path in strike.redis.server.directory.rglob("*.aof"))
        commands = max(1, size // COMMAND_BYTES)
        delay_us = LOADS_S * 1e6 / commands
        # A negative number lets it sleep once in so many commands.
        delay = round(delay_us) if delay_us > NAP_US else -max(1, round(NAP_US / delay_us))
        await _restart(strike, "--key-load-delay", str(delay))


async def _restart(strike: Strike, *arguments: str) -> None:
    server = strike.redis.server
    server.kill()
    server.launch(*arguments)
    await until(
        lambda: asyncio.to_thread(lambda: server.is_ready),
        within=STARTS_S,
        what="the server has loaded its data",
    )


async def stop_briefly(strike: Strike) -> None:
    """SIGSTOP to the server for half a lease."""
    await _stop(strike, LEASE_S / 2)


async def stop_long(strike: Strike) -> None:
    """SIGSTOP to the server for two leases: nobody may be condemned for that."""
    await _stop(strike, LEASE_S * 2)


async def _stop(strike: Strike, seconds: float) -> None:
    async with without_server(strike):
        strike.redis.server.pause()
        await passed(seconds)
        strike.redis.server.resume()


async def pause_clients(strike: Strike) -> None:
    """CLIENT PAUSE of all commands, or of writes, for about a lease."""
    mode = strike.random.choice(("ALL", "WRITE"))
    seconds = strike.random.choice((0.5, 1.5)) * LEASE_S
    strike.on("server")
    if await ask(strike, lambda c: c.execute_command("CLIENT", "PAUSE", int(seconds * 1000), mode)):
        await passed(seconds)


async def kill_clients(strike: Strike) -> None:
    """CLIENT KILL of every plain connection, again and again."""
    await _kill_type(strike, "normal")


async def kill_subscribers(strike: Strike) -> None:
    """CLIENT KILL of every subscriber, again and again."""
    await _kill_type(strike, "pubsub")


async def _kill_type(strike: Strike, kind: str) -> None:
    strike.on("server")
    for _ in range(10):
        await ask(strike, lambda c: c.execute_command("CLIENT", "KILL", "TYPE", kind))
        await passed(0.2)


async def flush_functions(strike: Strike) -> None:
    """FUNCTION FLUSH, three times: the library is loaded again."""
    strike.on("server")
    for _ in range(3):
        await ask(strike, lambda c: c.function_flush("ASYNC"))
        await passed(0.3)


async def fill_memory(strike: Strike) -> None:
    """The server is at its ``maxmemory`` for a while, and refuses new jobs."""
    strike.on("server")
    await ask(strike, lambda c: c.config_set("maxmemory", c.info("memory")["used_memory"]))
    await passed(3)
    async with strike.redis.turn:
        with strike.redis.server.client() as client:
            client.config_set("maxmemory", 0)


async def ask(strike: Strike, command: Callable[[redis.Redis], object]) -> bool:
    """Tell the server something, by a connection of its own; whether it answered."""

    def call() -> None:
        with strike.redis.server.client() as client:
            command(client)

    with suppress(redis.RedisError):
        await asyncio.to_thread(call)
        return True
    return False


SERVER_FAULTS = tuple(
    Fault(name, strike, ("redis",))
    for name, strike in (
        ("restart", restart),
        ("load", load),
        ("stop-briefly", stop_briefly),
        ("stop-long", stop_long),
        ("pause-clients", pause_clients),
        ("kill-clients", kill_clients),
        ("kill-subscribers", kill_subscribers),
        ("flush-functions", flush_functions),
        ("fill-memory", fill_memory),
    )
)
