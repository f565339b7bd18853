"""What the commands about stored schedules share: how one is found, and how it is told of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from headrace.cli.options import Target
from headrace.cli.output import ago, echo, echo_json, one_line
from headrace.cli.views import raw
from headrace.errors import ScheduleNotFound
from headrace.policy import check_schedule_id
from headrace.schedule_records import ScheduleRecord
from headrace.storage.base import Storage
from headrace.views.schedules import Schedule

GROUPS = {
    "When": (
        "cron",
        "every",
        "at",
        "tz",
        "dst",
        "seconds",
        "start",
        "no_start",
        "end",
        "no_end",
    ),
    "Which occurrences are fired, and how": ("catch_up", "jitter", "overlap", "paused"),
    "Their jobs": (
        "args",
        "queue",
        "expires",
        "priority",
        "max_attempts",
        "attempt_timeout",
        "header",
    ),
    "Where it is stored": ("app_path", "modules", "url", "tenant", "allow_eviction"),
}
"""How the help of `add` and `edit` shows the options; one that is in no group comes last."""

id_argument = click.argument(
    "schedule_id", metavar="ID", callback=lambda _context, _argument, said: check_schedule_id(said)
)
ids_argument = click.argument(
    "ids",
    metavar="ID...",
    nargs=-1,
    required=True,
    callback=lambda _context, _argument, said: tuple(
        dict.fromkeys(check_schedule_id(one) for one in said)
    ),
)


@asynccontextmanager
async def open_schedules(target: Target, *, makes: bool = False) -> AsyncIterator[Storage]:
    """Connect and yield the storage as `Target.open`; who finds no schedule hears where.

    Raises:
        ClickException: a schedule was looked for that is not there.
    """
    async with target.open(makes=makes, keeps_schedules=True) as storage:
        try:
            yield storage
        except ScheduleNotFound as error:
            raise click.ClickException(f"{error} (this is {target.where})") from error


def document_of(record: ScheduleRecord) -> dict[str, Any]:
    """Return the JSON document of a schedule: what users see of it, and its timing in words."""
    return {**view_of(record).to_dict(), "words": record.body.timing.words()}


def view_of(record: ScheduleRecord) -> Schedule:
    """Return a schedule as users see it, its arguments as they are stored."""
    return Schedule.of(record.id, record.app, record.body, raw)


def echo_stored(record: ScheduleRecord, done: str, *, output: str) -> None:
    """Print what became of a schedule, and when it comes next."""
    if output == "json":
        echo_json(document_of(record))
        return
    view = view_of(record)
    coming = "it is over" if view.next_at is None else f"next {ago(view.next_at)}"
    if view.is_paused:
        coming = "paused"
    echo(f"Schedule {record.id} is {done}: {one_line(record.body.timing.words())}; {coming}.")
