"""``headrace schedule``: what comes when and by which rules, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.colours import Coloured
from headrace.cli.jobs import limit_option, note_more
from headrace.cli.options import Target, option, output_option, run, wide_option
from headrace.cli.output import ago, echo_json, fields, note, one_line, span_of, when
from headrace.cli.schedule_add import add
from headrace.cli.schedule_edit import edit
from headrace.cli.schedule_next import next_command
from headrace.cli.schedule_steering import delete, pause, resume, trigger
from headrace.cli.stored_schedules import document_of, id_argument, open_schedules, view_of
from headrace.cli.tables import Cell, Column, table
from headrace.job import check_text
from headrace.schedule import decode_entry
from headrace.schedule_records import ScheduleRecord, all_schedules, known_schedule
from headrace.views.schedules import Schedule, ScheduleEvent

COLUMNS = (
    Column("SCHEDULE"),
    Column("TASK", rank=3),
    Column("QUEUE", rank=6),
    Column("TIMING", rank=1, is_cut=True),
    Column("NEXT", rank=2),
    Column("LAST", rank=5),
    Column("NOTE"),
)
HISTORY_COLUMNS = (
    Column("OCCURRENCE (UTC)"),
    Column("FIRED", rank=2),
    Column("OUTCOME"),
    Column("COUNT", rank=3),
    Column("JOB", rank=1),
)
OUTCOMES = {"enqueued": "green", "triggered": "green", "skipped": "yellow", "missed": "red"}


@click.group()
def schedule() -> None:
    """Look at schedules, make, change, pause, resume, trigger and delete them."""


for command in (add, delete, edit, next_command, pause, resume, trigger):
    schedule.add_command(command)


@schedule.command("list")
@option("--task", "-t", metavar="NAME", help="Only those of this task.")
@option("--declared-by", metavar="NAME", help="Only those that the app of this name declares.")
@limit_option
@wide_option
@output_option
@on_app_target
def list_command(
    *,
    target: Target,
    task: str | None,
    declared_by: str | None,
    limit: int,
    is_wide: bool,
    output: str,
) -> None:
    """List schedules in the order of their ids."""
    app = None if declared_by is None else check_text(declared_by, what="app name")
    found = run(_some(target, task, app, limit + 1))
    if output == "json":
        echo_json([document_of(record) for record in found[:limit]])
    elif not found:
        note(f"There are no such schedules in {target.where}.")
    else:
        table(COLUMNS, [_line(view_of(record)) for record in found[:limit]], is_wide=is_wide)
    note_more(has_more=len(found) > limit, limit=limit)


async def _some(
    target: Target, task: str | None, app: str | None, limit: int
) -> list[ScheduleRecord]:
    found: list[ScheduleRecord] = []
    async with open_schedules(target) as storage:
        async for record in all_schedules(storage, app=app):
            if task in (None, record.body.job.task):
                found.append(record)
            if len(found) == limit:
                break
    return found


def _line(one: Schedule) -> list[Cell]:
    return [
        one.id,
        one.task,
        one.queue,
        one.timing,
        ago(one.next_at),
        ago(one.last_at),
        Coloured(", ".join(_marks(one)), "yellow"),
    ]


def _marks(one: Schedule) -> list[str]:
    marks = {"paused": one.is_paused, "edited": one.is_edited, "ended": one.next_at is None}
    return [mark for mark, applies in marks.items() if applies]


@schedule.command()
@id_argument
@output_option
@on_app_target
def show(*, target: Target, schedule_id: str, output: str) -> None:
    """Show all that is stored of a schedule.

    That is its timing, also in plain words, its policy, its job, what came last and comes next,
    and who has set it: the code that declares it, or an operator who has edited it since.
    """

    async def load() -> ScheduleRecord:
        async with open_schedules(target) as storage:
            return await known_schedule(storage, schedule_id)

    record = run(load())
    if output == "json":
        echo_json(document_of(record))
    else:
        _show(view_of(record), record.body.timing.words())


def _show(one: Schedule, words: str) -> None:
    marks = _marks(one)
    last = f"{when(one.last_at)} as job {one.last_job_id}" if one.last_at else "never"
    pairs: list[tuple[str, str | Coloured]] = [
        ("schedule", one.id),
        ("state", Coloured(", ".join(marks), "yellow") if marks else ""),
        ("timing", one.timing),
        ("in words", words),
        ("next", when(one.next_at) or "never again"),
        ("fires", when(one.due_at) if one.jitter_s else ""),
        ("last", last),
        ("task", one.task),
        ("queue", one.queue),
        ("args", _text(one.args)),
        ("priority", f"{one.priority}"),
        ("options", _text(one.options)),
        ("catch up", str(one.catch_up)),
        ("jitter", span_of(one.jitter_s) if one.jitter_s else ""),
        ("overlap", one.overlap),
        ("start", when(one.start_at)),
        ("end", when(one.end_at)),
        ("set by", _set_by(one)),
        ("created", when(one.created_at)),
        ("changed", when(one.changed_at)),
    ]
    fields([(name, one_line(value) if isinstance(value, str) else value) for name, value in pairs])


def _set_by(one: Schedule) -> str:
    if not one.app:
        return one.set_by
    declared = f"declared by the code of app {one.app!r}"
    return f"{declared}, edited since by an operator" if one.is_edited else declared


def _text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode(errors="replace")


@schedule.command()
@id_argument
@wide_option
@output_option
@on_app_target
def history(*, target: Target, schedule_id: str, is_wide: bool, output: str) -> None:
    """Show what came of a schedule's newest 100 occurrences, the newest first.

    A run of neighbours that were passed over for one reason is one line.
    """

    async def load() -> list[ScheduleEvent]:
        async with open_schedules(target) as storage:
            await known_schedule(storage, schedule_id)
            entries = await storage.schedule_history(schedule_id)
            return [ScheduleEvent.of(decode_entry(entry)) for entry in entries]

    found = run(load())
    if output == "json":
        echo_json([entry.to_dict() for entry in found])
    elif not found:
        note(f"Nothing has come of schedule {schedule_id!r} yet.")
    else:
        table(HISTORY_COLUMNS, [_history_line(entry) for entry in found], is_wide=is_wide)


def _history_line(entry: ScheduleEvent) -> list[Cell]:
    outcome = entry.outcome if entry.reason is None else f"{entry.outcome}: {entry.reason}"
    run_of = "" if entry.until is None else f" to {_clock(entry.until)}"
    return [
        f"{_clock(entry.at)}{run_of}",
        ago(entry.fired_at),
        Coloured(outcome, OUTCOMES.get(entry.outcome, "")),
        "many" if entry.count is None else entry.count,
        entry.job_id or "",
    ]


def _clock(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat(" ", "milliseconds" if at.microsecond else "seconds")
