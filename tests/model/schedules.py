"""The model of what keeps schedules, and brings in the jobs of their occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from headrace.errors import TooManySchedules
from headrace.job import EnqueueOutcome, outcome_of
from headrace.storage.schedules import (
    Occurrence,
    ReleaseStanding,
    ScheduleRead,
    ScheduleWrite,
    StoredSchedule,
    TakenSchedules,
)
from headrace.storage.values import End
from tests.model.places import Dump, Mark, QueueState
from tests.model.producer import ProducerModel

SCHEDULES_LIMIT = 3
"""Most schedules of a tenant, of the model and of the storages beside it."""
HISTORY = 100
HEARD_MS = 10_000
FIRED_TTL_MS = 7 * 24 * 3_600_000
LEFT_MS = 6_000
RELEASES_TTL_MS = 30 * 24 * 3_600_000
WORD = End("", "", None)
"""What schedulers are told when something is due sooner."""


@dataclass
class Schedule:
    """A record; ``look`` is when it is handed out: when it is due, or once it is no longer held."""

    app: str
    version: int
    due: int
    look: int
    body: bytes
    history: list[bytes]


@dataclass
class Release:
    """A release of an app; a newer one has a greater ``place``."""

    place: int
    seen: int
    has_left: bool = False

    def is_alive(self, now: int, alive_ms: int) -> bool:
        """Whether it has joined of late; the others of one that a process has left join soon."""
        return self.seen + (min(alive_ms, LEFT_MS) if self.has_left else alive_ms) >= now


class SchedulerModel(ProducerModel):
    """The verbs of the role `Scheduler`.

    Nothing is promised about which of those whose turn comes in the same millisecond is first:
    there ``taken_hint`` decides, the ids that a storage has answered. ``forgetting`` are apps of
    which a storage may hold forgotten releases, until one joins.
    """

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.schedules: dict[str, Schedule] = {}
        self.heard: dict[str, int] = {}
        self.releases: dict[str, dict[str, Release]] = {}
        self.forgetting: set[str] = set()
        self.taken_hint: list[str] = []

    def advance(self, ms: int) -> int:
        """Move the clock on, or back, and return the time; what has reached its age is gone."""
        super().advance(ms)
        for q in self.queues.values():
            for mark in q.fired.values():
                mark.is_outworn = mark.is_outworn or mark.at + FIRED_TTL_MS <= self.now
        for app, known in self.releases.items():
            kept = {i: r for i, r in known.items() if r.seen + RELEASES_TTL_MS > self.now}
            if kept != known:
                self.releases[app] = kept
                self.forgetting.add(app)
        return self.now

    def dump_schedules(self) -> Dump:
        """Return all that is of no queue; of releases their order, as their places say no more."""
        return {
            "schedules": {name: asdict(schedule) for name, schedule in self.schedules.items()},
            "releases": {
                app: [
                    (digest, release.seen, release.has_left)
                    for digest, release in sorted(known.items(), key=lambda item: item[1].place)
                ]
                for app, known in self.releases.items()
                if known
            },
        }

    def outworn_marks(self, queue: str) -> list[str]:
        """Return the schedules whose last instants may be forgotten."""
        return [name for name, mark in self.queue(queue).fired.items() if mark.is_outworn]

    # What is asked

    def read_schedules(self, ids: Sequence[str]) -> ScheduleRead:
        """Return those that are there."""
        return ScheduleRead(self.now, [self._stored(i) for i in ids if i in self.schedules])

    def list_schedules(self, app: str | None) -> list[StoredSchedule]:
        """Return those of all pages."""
        ids = sorted(self.schedules, key=str.encode)
        return [self._stored(i) for i in ids if app in (None, self.schedules[i].app)]

    def schedule_history(self, schedule_id: str) -> list[bytes]:
        """Return the entries, newest first."""
        known = self.schedules.get(schedule_id)
        return [] if known is None else known.history[:]

    def _stored(self, schedule_id: str) -> StoredSchedule:
        known = self.schedules[schedule_id]
        return StoredSchedule(
            id=schedule_id,
            app=known.app,
            version=known.version,
            due_ms=known.due,
            body=known.body,
        )

    # Changes

    def write_schedules(self, writes: Sequence[ScheduleWrite], *, wakes: bool) -> list[int | None]:
        """Make those changes that expect the version that there is.

        Raises:
            TooManySchedules: there would be more than `SCHEDULES_LIMIT`.
        """
        made = [write for write in writes if write.expected == self.version(write.id)]
        there = {*self.schedules, *(write.id for write in made if write.body is not None)}
        there -= {write.id for write in made if write.body is None}
        if len(there) > SCHEDULES_LIMIT:
            raise TooManySchedules(f"there would be {len(there)} schedules")
        before = self._first_look()
        answers = [self._change(write) if write in made else None for write in writes]
        after = self._first_look()
        if wakes and after is not None and (before is None or after < before):
            self.told += [(name, WORD) for name, at in self.heard.items() if self._is_heard(at)]
        return answers

    def version(self, schedule_id: str) -> int:
        """Return the version that there is, 0 if there is none."""
        known = self.schedules.get(schedule_id)
        return 0 if known is None else known.version

    def _change(self, write: ScheduleWrite) -> int:
        known = self.schedules.pop(write.id, None)
        if write.body is None:
            return 0
        older = [] if known is None else known.history
        version = write.first_version if known is None else known.version + 1
        self.schedules[write.id] = Schedule(
            app=write.app,
            version=version,
            due=write.due_ms,
            look=write.due_ms,
            body=write.body,
            history=[*reversed(write.history), *older][:HISTORY],
        )
        return version

    def _first_look(self) -> int | None:
        return min((schedule.look for schedule in self.schedules.values()), default=None)

    def _is_heard(self, named_at: int) -> bool:
        return named_at >= self.now - HEARD_MS

    # What is due

    def take_schedules(self, *, limit: int, hold_ms: int, channel: str = "") -> TakenSchedules:
        """Hand out what is to be looked at, and hold it."""
        if channel:
            self.heard[channel] = self.now
        hinted = {name: n for n, name in enumerate(self.taken_hint)}
        due = sorted(
            (known.look, hinted.get(name, len(hinted)), name)
            for name, known in self.schedules.items()
            if known.look <= self.now
        )
        taken = [name for _, _, name in due[:limit]]
        for name in taken:
            self.schedules[name].look = self.now + hold_ms
        first = self._first_look()
        next_ms = None if first is None else max(0, first - self.now)
        return TakenSchedules(self.now, [self._stored(name) for name in taken], next_ms)

    def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Store the jobs of occurrences that are later than the last of their schedule.

        Raises:
            QueueFull: more would wait than the queue takes.
        """
        if self.now > until_ms:
            return None
        q = self.queue(queue)
        with self.within_length(queue, may_pass=True):
            return [self._fire(q, occurrence) for occurrence in occurrences]

    def knows_the_last(self, queue: str, occurrence: Occurrence) -> bool:
        """Whether it is sure what becomes of an occurrence: its mark has not reached its age."""
        mark = self.queue(queue).fired.get(occurrence.schedule_id)
        return mark is None or not mark.is_outworn or occurrence.instant_ms > mark.instant

    def _fire(self, q: QueueState, occurrence: Occurrence) -> EnqueueOutcome:
        mark = q.fired.get(occurrence.schedule_id)
        if mark is not None and occurrence.instant_ms <= mark.instant:
            return EnqueueOutcome.DUPLICATE
        q.fired[occurrence.schedule_id] = Mark(occurrence.instant_ms, self.now)
        return outcome_of(self._enqueue(q, occurrence.job))

    # Releases

    def join_release(self, app: str, digest: str, *, alive_ms: int) -> ReleaseStanding:
        """Note that a release runs; it is the newest if it is new, or if no newer one is alive."""
        self.forgetting.discard(app)
        known = self.releases.setdefault(app, {})
        mine = known.pop(digest, None)
        last = max((other.place for other in known.values()), default=0)
        alive = {i: r for i, r in known.items() if r.is_alive(self.now, alive_ms)}
        is_newest = mine is None or all(other.place < mine.place for other in alive.values())
        place = last + 1 if mine is None or is_newest else mine.place
        known[digest] = Release(place, self.now)
        return ReleaseStanding(is_newest, sorted([*alive, digest]), mine is None)

    def leave_release(self, app: str, digest: str) -> None:
        """Note that a process of a release has ended."""
        release = self.releases.get(app, {}).get(digest)
        if release is not None:
            release.has_left = True
