"""What a queue keeps, takes and counts."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from headrace.storage import limits


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue keeps of ended jobs and events, what a failed one brings, how many it takes.

    Instants and counts hold at once: whichever is reached first.

    Attributes:
        history: completed and cancelled records, default 100,000.
        dead_letters: dead letters, default 10,000.
        dead_letter_ttl_ms: how long a dead letter is kept, default 30 days.
        events: entries of the event stream, of 1 to 20 events each, default 5,000.
        events_cap: entries of it while a reader has not acknowledged them, default 50,000; with
            less than ``events`` a reader holds nothing back.
        on_failed: the task of the job that comes with a dead letter whose own job names none; ""
            for none.
        max_active: most jobs that are active at once, of all its workers together; 0: no bound.
        max_length: most jobs that wait at once, whatever for; 0: no bound.
        weight: its share of the slots of workers that serve other queues too, as in their
            ``queues``; 0: as each of them was told.
        aging: of so many jobs that claims take one is of a lower tier than the best that waits in
            its lane, of that whose head has waited longest; 0: tiers are strict.
    """

    history: int = limits.DEFAULT_HISTORY
    dead_letters: int = limits.DEFAULT_DEAD_LETTERS
    dead_letter_ttl_ms: int = limits.DEFAULT_DEAD_LETTER_TTL_MS
    events: int = limits.DEFAULT_EVENTS
    events_cap: int = limits.DEFAULT_EVENTS_CAP
    on_failed: str = ""
    max_active: int = 0
    max_length: int = 0
    weight: int = 0
    aging: int = 0


class SettingChanges(TypedDict, total=False):
    """What is to change of `QueueSettings`; what isn't named stays."""

    history: int
    dead_letters: int
    dead_letter_ttl_ms: int
    events: int
    events_cap: int
    on_failed: str
    max_active: int
    max_length: int
    weight: int
    aging: int


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one queue now, and its work over the last minute.

    ``waits_ms`` and ``runs_ms`` map the upper bound of a logarithmic bucket to how many attempts of
    the window fell in it. ``workers`` counts the incarnations that beat within their lease.
    ``oldest_ms`` is how long the heads of the queue's lanes have been ready, of these the longest.
    ``queued`` counts the jobs of all lanes, ``lanes`` those of each lane beside the default one
    that has any, by name. ``blocked`` counts those that wait for the end of the active one of their
    id, or in the line of a limit or strike. ``paused_tasks`` are sorted, and ``strikes`` counts the
    other strikes.
    """

    queue: str
    is_paused: bool
    queued: int
    scheduled: int
    retrying: int
    active: int
    history: int
    dead: int
    workers: int
    oldest_ms: int
    window_ms: int
    enqueued: int
    completed: int
    failed: int
    retried: int
    cancelled: int
    stalled: int
    waits_ms: dict[int, int]
    runs_ms: dict[int, int]
    settings: QueueSettings
    lanes: dict[str, int] = {}
    blocked: int = 0
    paused_tasks: list[str] = []
    strikes: int = 0
