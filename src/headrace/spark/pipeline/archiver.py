"""Brings the queues of a tenant into an archive, a run after another.

A run writes down what it is to bring in, brings it in, notes that this is done, and lets the queues
forget it. A run that was cut off is gone on with by the next one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import datetime

import msgspec
from pyspark.sql import SparkSession

from headrace.clock import datetime_of
from headrace.errors import EventsLost
from headrace.job import JobState
from headrace.logs.log import write_line
from headrace.spark import cursors, offsets
from headrace.spark.pipeline import runs
from headrace.spark.pipeline.intake import Intake
from headrace.spark.pipeline.layout import path_of
from headrace.spark.pipeline.runs import Looked, Part, Reached, RunDone, RunPlan, State
from headrace.spark.places import Advice
from headrace.spark.raised import as_raised
from headrace.spark.storages import storage_of
from headrace.storage.base import check_reads_in_bulk
from headrace.storage.blocking import BlockingStorage
from headrace.storage.limits import EVENTS_AN_ENTRY
from headrace.storage.readers import FIRST
from headrace.storage.steps import at_once

EVENT_BYTES = 105
"""About what an event takes that is held back, in a directory; on Redis it is a little less."""

_ADVICE = Advice(
    "archive more often, or raise events_cap; fail_on_data_loss=False goes on without them",
    "fail_on_data_loss=False goes on with what there is",
)


class ArchiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a call has brought into an archive.

    Attributes:
        run: the number of the last run, 0 where there was none yet.
        events: how many were added.
        dead_letters: how many were added.
        lost: events that were trimmed before they could be archived; of a queue that is archived
            for the first time, those before the first that it has kept.
        until: when the last archived event happened, of the queues that were named; None for none.
    """

    run: int
    events: int
    dead_letters: int
    lost: int
    until: datetime | None


def held_bytes(events_cap: int) -> int:
    """Return about how much memory a queue takes that holds so many entries of events back."""
    return events_cap * EVENTS_AN_ENTRY * EVENT_BYTES


class Archiver:
    """Brings the queues of a tenant into an archive."""

    def __init__(
        self,
        spark: SparkSession,
        root: str | os.PathLike[str],
        *,
        url: str,
        tenant: str,
        reader: str,
        fails_on_loss: bool,
    ) -> None:
        path_of(root)
        self._storage = storage_of(url, tenant)
        check_reads_in_bulk(self._storage)
        self._spark = spark
        self._root = root
        self._tenant = tenant
        self._reader = reader
        self._fails_on_loss = fails_on_loss
        self._intake = Intake(spark, root, url=url, tenant=tenant)

    def state(self) -> State:
        """Return what is known of the archive."""
        return runs.read_state(self._spark, self._root, self._tenant)

    def raise_cap(self, queues: Sequence[str], events_cap: int) -> None:
        """Let queues keep at least so many entries for readers."""
        for queue in queues:
            if at_once(self._storage.stats(queue)).settings.events_cap < events_cap:
                at_once(self._storage.configure(queue, events_cap=events_cap))
                fields = {"events_cap": events_cap, "bytes": held_bytes(events_cap)}
                write_line(logging.INFO, "spark.events_cap_raised", queue=queue, **fields)

    def begin(self, queues: Sequence[str], state: State) -> ArchiveReport:
        """Bring in what is new, by a plan of its own; a run that has nothing to do is none."""
        last, held_ms = state.plan, self._hold(queues)
        reached = {} if last is None else last.reached
        parts, lost = self._parts(queues, reached)
        run = 0 if last is None else last.run
        if all(part.end == reached.get(part.queue, Reached()) for part in parts):
            report = ArchiveReport(run=run, events=0, dead_letters=0, lost=lost, until=None)
        else:
            ends = {part.queue: part.end for part in parts}
            plan = RunPlan(
                run=run + 1, first=run + 1, lost=lost, parts=parts, reached={**reached, **ends}
            )
            report = self._carry_out(plan)
        looked = Looked({**state.looked.at_ms, **held_ms})
        runs.write(self._spark, self._root, self._tenant, looked)
        self._acknowledge(parts)
        return msgspec.structs.replace(report, until=_until(parts))

    def go_on(self, plan: RunPlan) -> ArchiveReport:
        """Bring in what is missing of a plan that was cut off."""
        report = self._carry_out(msgspec.structs.replace(plan, run=plan.run + 1))
        self._acknowledge(plan.parts)
        return report

    def _carry_out(self, plan: RunPlan) -> ArchiveReport:
        runs.write(self._spark, self._root, self._tenant, plan)
        write_line(logging.INFO, "spark.archive_planned", run=plan.run, queues=len(plan.parts))
        with as_raised():
            taken = self._intake.take_in(plan)
        write_line(
            logging.INFO,
            "spark.archive_written",
            run=plan.run,
            events=taken.events,
            dead_letters=taken.dead_letters,
        )
        if taken.missing and self._fails_on_loss:
            raise EventsLost(
                f"{taken.missing} events of run {plan.run} were trimmed before they were archived: "
                f"{_ADVICE.trimmed}"
            )
        runs.write(self._spark, self._root, self._tenant, RunDone(plan.run))
        write_line(logging.INFO, "spark.archive_done", run=plan.run)
        return ArchiveReport(
            run=plan.run,
            events=taken.events,
            dead_letters=taken.dead_letters,
            lost=plan.lost + taken.missing,
            until=_until(plan.parts),
        )

    def _hold(self, queues: Sequence[str]) -> dict[str, int]:
        """Let each queue keep what is not archived, from now on; return the time of that."""
        return {queue: self._hold_one(queue) for queue in queues}

    def _hold_one(self, queue: str) -> int:
        at_once(self._storage.acknowledge(queue, self._reader, FIRST))
        readers = at_once(self._storage.readers(queue))
        return next(one.at_ms for one in readers if one.name == self._reader)

    def _acknowledge(self, parts: Sequence[Part]) -> None:
        """Let queues forget what is archived; it also says that the reader lives."""
        for part in parts:
            end = part.end.events
            call = self._storage.acknowledge(part.queue, self._reader, end.id, number=end.n)
            at_once(call)

    def _parts(self, queues: Sequence[str], reached: dict[str, Reached]) -> tuple[list[Part], int]:
        """Return what is new of each queue, and how many events were lost before that.

        Raises:
            EventsLost: there are, of a queue that was archived before, and this is to fail.
        """
        storage = self._storage
        new = {queue: offsets.earliest(storage, queue) for queue in queues if queue not in reached}
        starts = {queue: new[queue] if queue in new else reached[queue].events for queue in queues}
        lost, parts = sum(place.n for place in new.values()), []
        for span in offsets.planned(storage, starts):
            if span.loss is not None:
                if self._fails_on_loss:
                    raise span.loss.error(_ADVICE)
                offsets.log_loss(span.loss)
                lost += span.loss.count or span.start.n
            dead = reached.get(span.queue, Reached()).dead
            start = Reached(events=span.start, dead=dead)
            end = Reached(events=span.end, dead=_last_dead(storage, span.queue, dead))
            parts.append(Part(queue=span.queue, start=start, end=end))
        return parts, lost


def _last_dead(storage: BlockingStorage, queue: str, before: str) -> str:
    """Return the cursor behind the last dead letter, or the one before where that is gone."""
    ends = (before, cursors.end_of(storage, queue, JobState.FAILED))
    return max(ends, key=lambda cursor: cursors.place_of(cursor, queue, JobState.FAILED))


def _until(parts: Sequence[Part]) -> datetime | None:
    last_ms = max((part.end.events.at_ms for part in parts), default=0)
    return datetime_of(last_ms) if last_ms else None
