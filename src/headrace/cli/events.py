"""``headrace events``: what happened to jobs, and what happens now."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.colours import STATES, styled
from headrace.cli.live import look_forever
from headrace.cli.options import (
    Target,
    duration_option,
    option,
    output_option,
    queue_names,
    queue_of,
    run,
)
from headrace.cli.output import GAP, echo_json_line, echo_styled, note, one_line, span_of
from headrace.events import JobEventKind
from headrace.job import JobState, check_name
from headrace.storage.base import Storage
from headrace.views.jobs import JobEvent

COLOURS = {
    **{state.value: colour for state, colour in STATES.items()},
    JobEventKind.STALLED.value: "red",
    JobEventKind.PUT_BACK.value: "yellow",
    **dict.fromkeys(("purged", "progress", "joined", "left"), STATES[JobState.CANCELLED]),
}
KIND_WIDTH = max(len(kind) for kind in JobEventKind)
LEAST_INTERVAL_S = 0.05
FIRST = "0"
"""The stream id before all others."""


class Wanted(msgspec.Struct, frozen=True):
    """Which events: those of these queues, kinds, task and job; of any where none is named."""

    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    task: str | None
    job_id: str | None

    def has(self, event: JobEvent) -> bool:
        """Whether an event of one of the queues is wanted."""
        return (
            (not self.kinds or event.kind in self.kinds)
            and self.task in (None, event.task)
            and self.job_id in (None, event.job_id)
        )


class EventReader:
    """Reads the wanted events from where it has stopped, in the order of their time."""

    def __init__(self, storage: Storage, wanted: Wanted) -> None:
        self._storage = storage
        self._wanted = wanted
        self._after: dict[str, str] = {}

    async def read(self, *, limit: int | None = None) -> list[JobEvent]:
        """Return what has come since the last time, only the newest ``limit``, None for all."""
        found: list[JobEvent] = []
        for name in self._wanted.queues or await queue_names(self._storage):
            found += await self._of_queue(name, limit)
        found.sort(key=lambda event: event.at)
        return found if limit is None else found[-limit:]

    async def _of_queue(self, name: str, limit: int | None) -> deque[JobEvent]:
        newest: deque[JobEvent] = deque(maxlen=limit)
        after = self._after.get(name, FIRST)
        async for event in queue_of(self._storage, name).events(after=after):
            self._after[name] = event.stream_id
            if self._wanted.has(event):
                newest.append(event)
        return newest


@click.command()
@option("--follow", "-f", is_flag=True, help="Go on with what happens now, until interrupted.")
@option("--queue", "-q", metavar="NAME", multiple=True, help="Only this queue; may be repeated.")
@option(
    "--kind",
    "-k",
    multiple=True,
    type=click.Choice([kind.value for kind in JobEventKind]),
    help="Only this kind; may be repeated.",
)
@option("--task", "-t", metavar="NAME", help="Only jobs of this task.")
@option("--job", metavar="ID", help="Only this job.")
@option(
    "--limit",
    "-n",
    type=click.IntRange(1, 100_000),
    default=50,
    help="Events at most; with --follow of those that were before.",
)
@duration_option("--interval", default="500ms", help="With --follow: the pause between two looks.")
@output_option
@on_app_target
def events(
    *,
    target: Target,
    follow: bool,
    queue: tuple[str, ...],
    kind: tuple[str, ...],
    task: str | None,
    job: str | None,
    limit: int,
    interval: float,
    output: str,
) -> None:
    """Show what happened to jobs, and what happens now.

    The newest events are shown, the oldest of them first: every transition of a job with why, when
    it is due and what error it had, its progress, and workers that join and leave a queue. A queue
    keeps the last 5,000 entries or more. With -o json each event is one JSON document on a line of
    its own.
    """
    for name in queue:
        check_name(name, what="queue")
    wanted = Wanted(queue, kind, task, job)

    run(_show(target, wanted, limit, max(interval, LEAST_INTERVAL_S) if follow else None, output))


async def _show(
    target: Target, wanted: Wanted, limit: int, every_s: float | None, output: str
) -> None:
    """Print the newest events and, every so often if that is said, those that come."""
    async with target.open() as storage:
        reader = EventReader(storage, wanted)
        found = await reader.read(limit=limit)
        _print(found, output=output)
        if every_s is None:
            if not found:
                note(f"There are no such events in {target.where}.")
            return

        async def look() -> None:
            _print(await reader.read(), output=output)

        await look_forever(look, every_s=every_s)


def _print(found: Sequence[JobEvent], *, output: str) -> None:
    for event in found:
        if output == "json":
            echo_json_line(event.to_dict())
        else:
            echo_styled(line(event, datetime.now(UTC)))


def line(event: JobEvent, now: datetime) -> str:
    """Return an event in one line; times are in UTC, with the date where that is another day."""
    kind = styled(event.kind.value.ljust(KIND_WIDTH), COLOURS.get(event.kind.value, ""))
    names = [one_line(name) for name in (event.queue, event.job_id, event.task) if name]
    told = ", ".join(map(one_line, _told(event, now)))
    return GAP.join([_clock(event.at, now), kind, *names, told]).rstrip()


def _told(event: JobEvent, now: datetime) -> Iterator[str]:
    """Yield what an event has to say beside its names."""
    if event.start:
        yield f"start {event.start}"
    if event.wait_s is not None:
        yield f"waited {span_of(event.wait_s)}"
    if event.run_s is not None:
        yield f"ran {span_of(event.run_s)}"
    if event.detail and event.detail != event.error:
        yield event.detail
    yield from _told_of_error(event)
    if event.due_at is not None:
        yield f"due {_clock(event.due_at, now)}"
    if event.created_at is not None:
        yield f"created {span_of((event.at - event.created_at).total_seconds())} before"
    if event.worker:
        yield from _told_of_worker(event)


def _told_of_error(event: JobEvent) -> Iterator[str]:
    if event.error:
        yield f"{event.error}: {event.message}" if event.message else event.error
    if event.frame:
        yield f"at {event.frame}"


def _told_of_worker(event: JobEvent) -> Iterator[str]:
    yield f"{event.worker} on {event.host}"
    yield f"headrace {event.version}"
    if event.app_version:
        yield f"version {event.app_version}"


def _clock(instant: datetime, now: datetime) -> str:
    at = instant.astimezone(UTC)
    day = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M:%S}.{at.microsecond // 1000:03}"
