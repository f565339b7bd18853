"""What strangers wrote where a tenant's data belong, as ``lua/lib/damage.lua`` counted it."""

from __future__ import annotations

from headrace.errors import StorageFault
from headrace.storage.redis import keys
from headrace.storage.redis.calls.doctor import damaged
from headrace.storage.redis.calls.inspector import listed_names, queue_names
from headrace.storage.redis.runner import Runner
from headrace.storage.values import Finding

PUBLISH = "publish"
QUEUES_SHOWN = 1000


async def damage_findings(runner: Runner, tenant: str) -> list[Finding]:
    """Return what was set aside of a tenant in the last week, and what was refused.

    Raises:
        StorageError: the server can't be reached, or the keys may not be read.
    """
    names = await runner.run(listed_names(tenant))
    queues = queue_names(names)
    found = []
    if strange := len(names) - len(queues):
        detail = f"{strange} of the {len(names)} names in {keys.queues(tenant)} are no queue's"
        found.append(Finding("data", "warning", detail))
    found += await _of_root(runner, tenant, keys.tenant_root(tenant), "schedules")
    for queue in queues[:QUEUES_SHOWN]:
        found += await _of_root(runner, tenant, keys.root(tenant, queue), f"queue {queue!r}")
    return found


async def _of_root(runner: Runner, tenant: str, root: str, where: str) -> list[Finding]:
    try:
        counted = await runner.run(damaged(root))
    except StorageFault:
        counted = {"damaged": "1"}
    found = []
    if refused := counted.pop(PUBLISH, None):
        detail = (
            f"{where}: {refused} messages to waiters were refused: the user has no right "
            f"to the channels &hr:{{{tenant}}}:*, so waits and cancels rest on slow polls"
        )
        found.append(Finding("channels", "warning", detail))
    if counted:
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(counted.items()))
        detail = (
            f"{where}: strange data were set aside in the last week ({kinds}): what they "
            f"were is in {root}:damaged:<kind>; find out who writes to our keys"
        )
        found.append(Finding("data", "warning", detail))
    return found
