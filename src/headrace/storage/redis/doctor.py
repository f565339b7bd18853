"""What ``headrace doctor`` asks the server, and the one thing it mends: old libraries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from headrace.errors import StorageFault, StorageRefused
from headrace.storage.redis.calls import doctor
from headrace.storage.redis.library import Library
from headrace.storage.redis.runner import Runner
from headrace.storage.redis.server import findings, server_info
from headrace.storage.values import Finding


async def server_findings(runner: Runner) -> list[Finding]:
    """Return what there is to say of the server.

    Raises:
        StorageError: it can't be reached, or INFO is not allowed.
    """
    info = await runner.run(doctor.info())
    config: dict[str, str] = {}
    for name in ("save", "appendfsync"):
        # Not allowed, as on many hosted servers: said as unknown.
        with suppress(StorageRefused, StorageFault):
            setting = await runner.run(doctor.config(name))
            config |= setting
    before = time.time()
    server_ms = await runner.run(doctor.time_us()) / 1000
    skew_ms = server_ms - (before + time.time()) / 2 * 1000
    found = findings(server_info(info, config), clock_skew_ms=skew_ms)
    loaded = await runner.run(doctor.libraries())
    return [*found, _libraries(loaded, runner.library)]


async def remove_libraries(runner: Runner) -> list[str]:
    """Delete every headrace library but this release's; return their names."""
    loaded = await runner.run(doctor.libraries())
    others = [name for name in loaded if name != runner.library.name]
    for name in others:
        await runner.run(doctor.unload(name))
    return others


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
