"""What strangers wrote where a tenant's data belong, as ``lua/lib/damage.lua`` counted it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from headrace.errors import StorageFault
from headrace.storage.redis import keys
from headrace.storage.redis.calls import text
from headrace.storage.redis.reports import read_queues
from headrace.storage.values import Finding

Command = Callable[..., Awaitable[Any]]

PUBLISH = "publish"
QUEUES_SHOWN = 1000


async def damage_findings(command: Command, tenant: str) -> list[Finding]:
    """Return what was set aside in each queue of a tenant in the last week, and what was refused.

    Raises:
        StorageError: the server can't be reached, or the keys may not be read.
    """
    names = await command("SMEMBERS", keys.queues(tenant))
    queues = read_queues(names)
    found = []
    if strange := len(names) - len(queues):
        detail = f"{strange} of the {len(names)} names in {keys.queues(tenant)} are no queue's"
        found.append(Finding("data", "warning", detail))
    for queue in queues[:QUEUES_SHOWN]:
        found += await _of_queue(command, tenant, queue)
    return found


async def _of_queue(command: Command, tenant: str, queue: str) -> list[Finding]:
    place = f"{keys.root(tenant, queue)}:damaged"
    try:
        flat = await command("HGETALL", place)
    except StorageFault:
        flat = [b"damaged", b"1"]
    counted = dict(zip(map(text, flat[::2]), map(text, flat[1::2]), strict=True))
    found = []
    if refused := counted.pop(PUBLISH, None):
        detail = (
            f"queue {queue!r}: {refused} messages to waiters were refused: the user has no right "
            f"to the channels &hr:{{{tenant}}}:*, so waits and cancels rest on slow polls"
        )
        found.append(Finding("channels", "warning", detail))
    if counted:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(counted.items()))
        detail = (
            f"queue {queue!r}: strange data were set aside in the last week ({kinds}): what they "
            f"were is in {place}:<kind>; find out who writes to our keys"
        )
        found.append(Finding("data", "warning", detail))
    return found
