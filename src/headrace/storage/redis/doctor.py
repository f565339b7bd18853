"""What ``headrace doctor`` asks the server, and the one thing it mends: old libraries."""

from __future__ import annotations

import time
from collections.abc import Sequence

from headrace.errors import StorageFault, StorageRefused
from headrace.storage.redis.client import AsyncClient
from headrace.storage.redis.library import PREFIX, Library
from headrace.storage.redis.server import findings, parse_info, server_info
from headrace.storage.values import Finding


async def diagnose(client: AsyncClient, library: Library) -> list[Finding]:
    """Return what there is to say of the server.

    Raises:
        StorageError: it can't be reached, or INFO is not allowed.
    """
    info = parse_info((await client.command("INFO")).decode())
    config: dict[str, str] = {}
    for name in ("save", "appendfsync"):
        try:
            reply = await client.command("CONFIG", "GET", name)
        except (StorageRefused, StorageFault):
            continue  # not allowed, as on many hosted servers: said as unknown
        config.update(
            {
                key.decode(): value.decode()
                for key, value in zip(reply[::2], reply[1::2], strict=True)
            }
        )
    before = time.time()
    seconds, micros = await client.command("TIME")
    skew_ms = (int(seconds) + int(micros) / 1e6 - (before + time.time()) / 2) * 1000
    found = findings(server_info(info, config), clock_skew_ms=skew_ms)
    return [*found, _libraries(await _loaded(client), library)]


async def remove_libraries(client: AsyncClient, library: Library) -> list[str]:
    """Delete every headrace library but this release's; return their names."""
    others = [name for name in await _loaded(client) if name != library.name]
    for name in others:
        await client.command("FUNCTION", "DELETE", name)
    return others


async def _loaded(client: AsyncClient) -> list[str]:
    reply = await client.command("FUNCTION", "LIST", "LIBRARYNAME", f"{PREFIX}*")
    return sorted(entry[entry.index(b"library_name") + 1].decode() for entry in reply)


def _libraries(loaded: Sequence[str], library: Library) -> Finding:
    others = [name for name in loaded if name != library.name]
    mine = f"{library.name} is {'loaded' if library.name in loaded else 'loaded on first use'}"
    if not others:
        return Finding("functions", "ok", mine)
    return Finding(
        "functions",
        "warning",
        f"{mine}; {len(others)} of other releases: {', '.join(others)} "
        "(headrace doctor --remove-old-libraries)",
    )
