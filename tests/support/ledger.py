"""What handlers in other processes did, in a file that survives their deaths, and its checker.

Each line is one write to a file opened for appending, so lines of many processes never mix and a
killed one leaves whole lines only.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headrace import App, JobStatus
from headrace.events import JobEventKind
from tests.support.jobs import drained
from tests.support.lines import Lines
from tests.support.until import until

Kind = Literal["start", "end", "cut"]
TERMINAL = (JobEventKind.COMPLETED, JobEventKind.FAILED, JobEventKind.CANCELLED)
LOOKS_AT_ONCE = 200


class Entry(NamedTuple):
    """One line: ``end`` after a handler returned, ``cut`` after it raised or was cancelled."""

    kind: Kind
    job_id: str
    epoch: int
    worker: str
    at: float


class Ledger:
    """A file of starts and ends; ``at`` is the host's monotonic clock, the same in all processes.

    Args:
        path: the file, made at the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = Lines(path)

    def write(self, kind: Kind, job_id: str, epoch: int, worker: str) -> None:
        """Append one line."""
        self._lines.write(f"{kind} {job_id} {epoch} {worker} {time.monotonic():.6f}")

    def entries(self, job_id: str | None = None) -> list[Entry]:
        """Return the lines so far, of one job or of all."""
        found = []
        for kind, owner, epoch, worker, at in self._lines.read():
            if job_id in (None, owner):
                found.append(Entry(_kind(kind), owner, int(epoch), worker, float(at)))
        return found

    def starts(self, job_id: str | None = None) -> list[Entry]:
        """Return the starts so far."""
        return [entry for entry in self.entries(job_id) if entry.kind == "start"]

    async def started(
        self, job_id: str, *, times: int = 1, by: str | None = None, within: float = 8.0
    ) -> Entry:
        """Wait until a job has started ``times`` times, ``by`` a certain worker; the last start."""

        def last() -> Entry | None:
            starts = [e for e in self.starts(job_id) if by in (None, e.worker)]
            return starts[-1] if len(starts) >= times else None

        entry = await until(last, within=within, what=f"{job_id} starts {times} times by {by}")
        assert entry is not None
        return entry


def _kind(word: str) -> Kind:
    match word:
        case "start" | "end" | "cut":
            return word
    raise ValueError(f"a ledger line begins with {word!r}")


async def records(app: App[Any], ids: Iterable[str], queue: str) -> dict[str, JobStatus]:
    """Return what the storage keeps of each job; a lost one raises `JobNotFound`."""
    found: dict[str, JobStatus] = {}
    todo = list(ids)
    for first in range(0, len(todo), LOOKS_AT_ONCE):
        chunk = todo[first : first + LOOKS_AT_ONCE]
        looks = await asyncio.gather(*(app.job(i, queue=queue).status() for i in chunk))
        found.update(zip(chunk, looks, strict=True))
    return found


async def outcomes(app: App[Any], queue: str) -> Counter[str]:
    """Return how many terminal transitions each job has had, by the queue's own event stream."""
    counts: Counter[str] = Counter()
    async for event in app.queue(queue).events():
        if event.kind in TERMINAL:
            counts[event.job_id] += 1
    return counts


def overlaps(entries: Iterable[Entry]) -> list[Entry]:
    """Return the starts of jobs that an earlier run of the same job had not left yet."""
    running: defaultdict[str, set[int]] = defaultdict(set)
    found = []
    for entry in sorted(entries, key=lambda e: e.at):
        if entry.kind == "start":
            if running[entry.job_id]:
                found.append(entry)
            running[entry.job_id].add(entry.epoch)
        else:
            running[entry.job_id].discard(entry.epoch)
    return found


async def check_ledger(
    app: App[Any],
    ledger: Ledger,
    ids: Iterable[str],
    *,
    queue: str,
    unseen_claims: int | None = 0,
    within: float = 8.0,
) -> dict[str, JobStatus]:
    """Assert what must hold whatever broke, once every job has ended, and return the records.

    No accepted job is lost, each has exactly one recorded outcome, epochs rise by one and never
    repeat, the starts that the storage shows are the starts that handlers saw, and no waiting place
    or counter is left over.

    Args:
        app: a producer.
        ledger: of all workers.
        ids: every accepted job of the queue.
        queue: their queue.
        unseen_claims: claims that died before their handler's first step, None for any number.
        within: seconds until all have ended.
    """
    wanted = list(ids)
    await drained(app.queue(queue), within=within)
    found = await records(app, wanted, queue)
    assert [i for i, r in found.items() if not r.state.is_terminal] == []
    counts = await outcomes(app, queue)
    assert {i: counts[i] for i in wanted if counts[i] != 1} == {}, "one outcome a job"
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for entry in ledger.starts():
        seen[entry.job_id].append(entry.epoch)
    assert set(seen) <= set(wanted), "a job ran that was never accepted"
    assert {i: e for i, e in seen.items() if e != sorted(set(e))} == {}, "epochs rise"
    assert {i: e for i, e in seen.items() if e[-1] > found[i].starts} == {}
    if unseen_claims is not None:
        claims = sum(record.starts for record in found.values())
        assert claims == sum(map(len, seen.values())) + unseen_claims, "starts are claims"
    return found
