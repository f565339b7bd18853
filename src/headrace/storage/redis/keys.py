"""Every key that Python names; those of Lua derive from the same root and share its slot."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1_000)  # of the queues in use, of which each call names one
def root(tenant: str, queue: str) -> str:
    """Return the root of a queue's keys: its hash tag keeps them in one cluster slot."""
    return f"hr:{{{tenant}:{queue}}}"


def queue_of(root_key: str) -> str:
    """Return the queue of a root, "" of a tenant's."""
    return root_key[len("hr:{") : -1].partition(":")[2]


def wake(tenant: str, queue: str, lane: str) -> str:
    """Return the list with a lane's wake-up token."""
    return f"{root(tenant, queue)}:wake:{lane}"


def woken(tenant: str, queue: str) -> str:
    """Return the list with the tokens that were taken since the last claim."""
    return f"{root(tenant, queue)}:woken"


def tenant_root(tenant: str) -> str:
    """Return the root of what belongs to no queue of a tenant; another slot than its queues'."""
    return f"hr:{{{tenant}}}"


def queues(tenant: str) -> str:
    """Return the set of a tenant's queue names."""
    return f"{tenant_root(tenant)}:queues"


def schedules(tenant: str) -> str:
    """Return the sorted set of a tenant's schedules, which is in the slot of all that is theirs."""
    return f"{tenant_root(tenant)}:schedules"


def tenant_of(key: str) -> str:
    """Return the tenant of its set of queue names, or of its sorted set of schedules."""
    return key[len("hr:{") : key.rindex("}:")]


def channel(tenant: str, suffix: str) -> str:
    """Return a pub/sub channel for one client."""
    return f"{tenant_root(tenant)}:channel:{suffix}"
