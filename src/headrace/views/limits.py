"""The limits of a queue as operators see them."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.limit import Terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.views.value import PublicValue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimit(PublicValue):
    """What a limit of a queue allows of each key; `Queue.limits` returns them.

    ``concurrency``, ``rate`` and ``burst`` are what holds, as in `Limit`, each None if it is not
    bound. ``is_set`` says that an operator has set it, over what is ``declared``: the same in
    words, "" if no task has declared it.
    """

    queue: str
    name: str
    concurrency: int | None
    rate: str | None
    burst: int | None
    is_set: bool
    declared: str

    @classmethod
    def of(cls, queue: str, info: LimitInfo) -> QueueLimit:
        """Return what a storage knows of a limit."""
        terms = info.terms or Terms()
        return cls(
            queue=queue,
            name=info.name,
            concurrency=terms.concurrency or None,
            rate=terms.rate_text or None,
            burst=terms.burst or None,
            is_set=info.set is not None,
            declared="" if info.declared is None else info.declared.words,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGate(PublicValue):
    """How one key of a limit stands; `Queue.gate` returns it.

    Of its jobs ``active`` run, ``ready`` wait for a worker only, and ``blocked`` for room.
    ``tokens`` is how many starts the rate allows now, None without a rate.
    """

    queue: str
    name: str
    key: str
    ready: int
    active: int
    blocked: int
    tokens: int | None

    @classmethod
    def of(cls, queue: str, info: GateInfo) -> QueueGate:
        """Return what a storage knows of a gate."""
        has_rate = info.terms is not None and info.terms.rate > 0
        return cls(
            queue=queue,
            name=info.name,
            key=info.key,
            ready=info.ready,
            active=info.active,
            blocked=info.blocked,
            tokens=info.tokens if has_rate else None,
        )
