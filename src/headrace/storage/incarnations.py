"""What incarnations say of themselves, ask for and get."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headrace.job import DEFAULT_LANE, PROCESS_LANE, ClaimedJob


class FreeSlots(msgspec.Struct, frozen=True):
    """The slots of one lane for which an incarnation claims.

    Attributes:
        free: how many it has for jobs now.
        total: how many it has in all, those that hold jobs included.
    """

    free: int
    total: int


SlotsAsked = Mapping[str, int | FreeSlots]
"""Slots by lane; a number alone: so many are free, and there are no more in all."""


def free_slots(asked: int | FreeSlots) -> FreeSlots:
    """Return what is free in a lane, and in all."""
    return asked if isinstance(asked, FreeSlots) else FreeSlots(asked, asked)


class ClaimReply(msgspec.Struct, frozen=True):
    """What a claim brought.

    Attributes:
        is_gone: the incarnation is unknown or condemned; nothing was claimed.
        is_paused: the queue is paused.
        has_more: jobs that this caller could take were left behind.
        next_due_ms: how long until the next delayed job is due, None without one.
        jobs: the claimed ones, in order.
        awaited: by lane, the slots that its next job needs, where fewer are free.
        strikes: the version of the strikes with conditions, which is another after each change of
            one; 0: there are none.
        weight: `QueueSettings.weight`.
    """

    is_gone: bool
    is_paused: bool
    has_more: bool
    next_due_ms: int | None
    jobs: list[ClaimedJob]
    awaited: dict[str, int] = {}
    strikes: int = 0
    weight: int = 0


class BeatReply(msgspec.Struct, frozen=True):
    """Whether the incarnation is gone, and which of its jobs are asked to stop."""

    is_gone: bool
    cancel_ids: list[str]


class Beat(msgspec.Struct, frozen=True):
    """One incarnation as the sweep sees it; a condemned one is listed for one more lease."""

    count: int
    lease_ms: int
    is_condemned: bool


class IncarnationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an incarnation says of itself, and what the storage knows of it.

    ``version`` is headrace's, ``app_version`` what its user calls the program. ``tasks`` are the
    lanes of the tasks that it knows, and ``lanes`` the slots of those that it serves; a release
    that has only the default lane and that of ``process_slots`` says none. ``channel`` is the
    channel that is told when one of its jobs is asked to stop. ``limits`` are the terms of the
    limits that its tasks declare, by name, as `Terms.text` has them. ``active`` counts its claimed
    jobs, ``silent_ms`` is how long ago it beat last.
    """

    incarnation: str
    name: str
    host: str
    pid: int
    version: str
    concurrency: int
    lease_ms: int
    registered_ms: int
    process_slots: int = 0
    lanes: dict[str, int] = {}
    app_version: str = ""
    tasks: dict[str, str] = {}
    channel: str = ""
    limits: dict[str, str] = {}
    active: int = 0
    silent_ms: int = 0
    is_condemned: bool = False

    def slots_of(self, lane: str) -> int:
        """Return how many slots of a lane it has, 0 if it takes no jobs of that."""
        known = {DEFAULT_LANE: self.concurrency, PROCESS_LANE: self.process_slots}
        return (self.lanes or known).get(lane, 0)


def read_info(incarnation: str, info: bytes) -> IncarnationInfo:
    """Return what an incarnation has said of itself; ``info`` is its JSON, empty once it died.

    Rubbish counts as empty.
    """
    try:
        return msgspec.json.decode(info, type=IncarnationInfo)
    except (msgspec.MsgspecError, UnicodeError):
        return IncarnationInfo(
            incarnation=incarnation,
            name="",
            host="",
            pid=0,
            version="",
            concurrency=0,
            lease_ms=0,
            registered_ms=0,
        )


def worker_info(
    incarnation: str,
    info: bytes,
    *,
    lease_ms: int,
    registered_ms: int,
    active: int,
    silent_ms: int,
    is_condemned: bool,
) -> IncarnationInfo:
    """Return what is known of an incarnation, beside what it has said of itself."""
    worker = read_info(incarnation, info)
    return msgspec.structs.replace(
        worker,
        lease_ms=worker.lease_ms or lease_ms,
        registered_ms=registered_ms,
        active=active,
        silent_ms=silent_ms,
        is_condemned=is_condemned,
    )
