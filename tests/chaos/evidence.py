"""All that is known of a run at its end: the notes, what is stored, and who is left."""

from __future__ import annotations

import time
from collections import defaultdict
from functools import cached_property
from pathlib import Path

import msgspec

from headrace import App, JobEvent, JobEventKind, JobState, JobSummary
from tests.chaos.notes import Archived, Read, Run, Sent, Window
from tests.chaos.plan import QUEUES, Kind, kind_of
from tests.chaos.site import Site
from tests.chaos.writes import Write, writes_of

TERMINAL = (JobEventKind.COMPLETED, JobEventKind.FAILED, JobEventKind.CANCELLED)


class Machine(msgspec.Struct, kw_only=True):
    """What is known besides jobs: processes, and how much room is taken.

    Attributes:
        is_drained: whether all jobs ended in time.
        drained_s: how long that took, from the last fault.
        unasked: which processes ended by themselves.
        failed_faults: which faults could not be brought about.
        left: which processes are left.
        problems: what is wrong with the stored data.
        growth_bytes: how much more is stored than at the beginning, once all jobs are purged.
        worker_bytes: resident memory of the largest worker.
        worker_files: open files of the worker that has most.
    """

    is_drained: bool = True
    drained_s: float = 0.0
    unasked: list[str] = []
    failed_faults: list[str] = []
    left: list[str] = []
    problems: list[str] = []
    growth_bytes: int = 0
    worker_bytes: int = 0
    worker_files: int = 0


class Evidence:
    """What the verdict is given.

    Args:
        runs: lines of handlers, in the order of the time.
        sent: lines of producers.
        windows: faults.
        writes: bulk writes, by their ids.
        archive: what was exported.
        reads: what was read of the events.
        rows: what is kept of each job.
        events: of all queues, in order for each.
        offset_s: the wall clock less the clock of the notes.
        machine: the rest.
    """

    def __init__(
        self,
        *,
        runs: list[Run],
        sent: list[Sent],
        windows: list[Window],
        writes: dict[str, Write],
        archive: list[Archived],
        reads: list[Read],
        rows: dict[str, JobSummary],
        events: list[JobEvent],
        offset_s: float,
        machine: Machine,
    ) -> None:
        self.runs = runs
        self.sent = sent
        self.windows = windows
        self.writes = writes
        self.archive = archive
        self.reads = reads
        self.rows = rows
        self.events = events
        self.machine = machine
        self._offset_s = offset_s

    def at(self, event: JobEvent) -> float:
        """Return when an event was, by the clock of the notes."""
        return event.at.timestamp() - self._offset_s

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each job that a producer wanted."""
        return {line.job_id: line.what for line in self.sent if line.word == "want"}

    @cached_property
    def answers(self) -> dict[str, set[str]]:
        """What was heard of each enqueue."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for line in self.sent:
            if line.word in ("ok", "no", "lost"):
                found[line.job_id].add(line.word)
        return found

    @cached_property
    def accepted(self) -> set[str]:
        """The jobs whose producer was told that they are stored."""
        return {job_id for job_id, words in self.answers.items() if "ok" in words}

    @cached_property
    def stories(self) -> dict[str, list[JobEvent]]:
        """The events of each job."""
        found: defaultdict[str, list[JobEvent]] = defaultdict(list)
        for event in self.events:
            if event.kind.is_of_job:
                found[event.job_id].append(event)
        return found

    @cached_property
    def stored(self) -> set[str]:
        """Every job of which the storage knows, or knew, anything."""
        return {*self.rows, *self.stories}

    @cached_property
    def owners(self) -> dict[str, Run]:
        """The first line of each incarnation that ran anything."""
        found: dict[str, Run] = {}
        for run in self.runs:
            found.setdefault(run.incarnation, run)
        return found

    @cached_property
    def last_seen(self) -> dict[int, float]:
        """When each process wrote its last line."""
        return {run.pid: run.at for run in self.runs}

    @cached_property
    def first_seen(self) -> dict[int, Run]:
        """The first line of each process."""
        found: dict[int, Run] = {}
        for run in self.runs:
            found.setdefault(run.pid, run)
        return found

    @cached_property
    def poisoned(self) -> dict[int, Run]:
        """The run that killed a worker, by its process."""
        return {
            run.pid: run
            for run in self.runs
            if run.word == "start" and kind_of(self.labels.get(run.job_id, "plain")) is Kind.POISON
        }

    def ends(self, job_id: str) -> list[JobEvent]:
        """Return a job's terminal events."""
        return [event for event in self.stories.get(job_id, []) if event.kind in TERMINAL]

    def save(self, directory: Path) -> None:
        """Write what was stored beside the notes."""
        encode = msgspec.json.Encoder().encode_lines
        (directory / "rows").write_bytes(encode(self.rows.values()))
        (directory / "events").write_bytes(encode(self.events))


async def stored_rows(app: App[None]) -> dict[str, JobSummary]:
    """Return what is kept of each job, of whatever state."""
    states = [state for state in JobState if state is not JobState.BLOCKED]
    return {
        row.id: row
        for name in QUEUES
        for state in states
        async for row in app.queue(name).jobs(state)
    }


async def stored_events(app: App[None]) -> list[JobEvent]:
    """Return every event."""
    return [event for name in QUEUES async for event in app.queue(name).events()]


async def gather(site: Site, machine: Machine) -> Evidence:
    """Collect all of it; the workers are gone."""
    async with site.app() as app:
        rows, events = await stored_rows(app), await stored_events(app)
    return Evidence(
        runs=site.notes.all_runs(),
        sent=site.notes.all_sent(),
        windows=site.notes.windows(),
        writes=writes_of(site.notes.all_wrote()),
        archive=site.notes.all_archived(),
        reads=site.notes.all_read(),
        rows=rows,
        events=events,
        offset_s=time.time() - time.monotonic(),
        machine=machine,
    )
