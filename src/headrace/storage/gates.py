"""Limits and their gates, as storages tell of them."""

from __future__ import annotations

import msgspec

from headrace.limit import Terms


class LimitInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of a queue.

    Attributes:
        name: its name.
        declared: what workers and jobs say of it, None if none has.
        set: what an operator has set over that, None for nothing.
    """

    name: str
    declared: Terms | None
    set: Terms | None

    @property
    def terms(self) -> Terms | None:
        """What holds; None: nobody is held up."""
        return self.set or self.declared


class GateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One limit's gate for one key.

    Attributes:
        name: the limit's.
        key: the key's text.
        terms: what holds, None: nobody is held up.
        ready: how many jobs have a place and wait for a worker.
        active: how many have one and run.
        blocked: how many stand in its line.
        tokens: how many starts its rate allows now, 0 without a rate.
    """

    name: str
    key: str
    terms: Terms | None
    ready: int
    active: int
    blocked: int
    tokens: int
