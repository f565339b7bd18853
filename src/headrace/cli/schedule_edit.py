"""``headrace schedule edit``: of a stored schedule what is said is changed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from headrace.app import App
from headrace.cli.app_target import place_of_app, target_of
from headrace.cli.awaiting import plain_app
from headrace.cli.grouped import GroupedCommand
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.new_job import (
    Arguments,
    args_option,
    check_import,
    make_job,
    on_asked,
    read_arguments,
)
from headrace.cli.options import (
    Target,
    app_option,
    import_option,
    on_target,
    option,
    output_option,
    run,
)
from headrace.cli.policies import SaidPolicy, on_policy
from headrace.cli.stored_schedules import GROUPS, echo_stored, id_argument, open_schedules
from headrace.cli.timings import SaidTiming, on_timing
from headrace.fairness import FAIR_LIMIT
from headrace.limit import Gate, check_gates, gates_text, read_gates
from headrace.options import JobOptions, job_fields, task_settings
from headrace.policy import check_body, check_to_come
from headrace.schedule import CLOCKS_DIFFER_MS, JobBody, ScheduleBody
from headrace.schedule_records import (
    ScheduleChange,
    ScheduleRecord,
    change_schedule,
    known_schedule,
)
from headrace.stored_options import decode_stored, encode_stored


class JobEdit(msgspec.Struct, frozen=True):
    """What is to change of a schedule's job.

    Attributes:
        app: makes the job of the arguments, and checks them where it has the task.
        arguments: in place of those that are stored, None to keep these.
        fields: what is asked, as `job_fields` has it.
    """

    app: App[Any]
    arguments: Arguments | None
    fields: dict[str, Any]

    @property
    def is_any(self) -> bool:
        """Whether anything is to change."""
        return self.arguments is not None or bool(self.fields)

    def over(self, before: JobBody) -> JobBody:
        """Return the job that this makes of the one before.

        Raises:
            UsageError: the arguments can't be those of its task.
        """
        own = {name: value for name, value in self.fields.items() if name in _OF_JOB}
        own["gates"] = self._gates_over(before)
        if self.arguments is not None:
            options: JobOptions = {
                "queue": before.queue,
                "limit_keys": self.fields.get("limit_keys", {}),
                "fair_key": self.fields.get("fair_key"),
            }
            made = make_job(
                self.app, self.app, before.task, arguments=self.arguments, options=options
            )
            own["payload"] = made.payload
            if before.task in self.app.tasks:
                own["gates"] = made.gates
        kept = decode_stored(before.options)
        return replace(before, options=encode_stored({**kept, **self.fields}), **own)

    def _gates_over(self, before: JobBody) -> str:
        """Return the limits of the job before, with the keys that are said."""
        gates = {gate.name: gate for gate in read_gates(before.gates)}
        said = dict(self.fields.get("limit_keys", {}))
        if "fair_key" in self.fields:
            said[FAIR_LIMIT] = self.fields["fair_key"]
        for name, key in said.items():
            gates[name] = replace(gates.get(name, Gate(name, "")), key=key)
        return check_gates(gates_text(gates.values()))


_OF_JOB = frozenset(JobBody.__struct_fields__)


@click.command(cls=GroupedCommand, groups=GROUPS)
@id_argument
@args_option()
@option("--queue", "-q", metavar="NAME", help="Where its jobs wait from now on.")
@on_timing
@on_policy
@option("--no-start", is_flag=True, help="Occurrences may be at any time again.")
@option("--no-end", is_flag=True, help="Occurrences go on for ever again.")
@on_asked
@app_option
@import_option
@output_option
@on_target
def edit(
    *,
    target: Target,
    app_path: str | None,
    modules: tuple[str, ...],
    output: str,
    schedule_id: str,
    args: str | None,
    queue: str | None,
    timing: SaidTiming,
    policy: SaidPolicy,
    no_start: bool,
    no_end: bool,
    asked: JobOptions,
) -> None:
    """Change of a schedule what is said, and leave the rest as it is.

    Defaults below are those of a new one. One that code declares shows as edited then, until its
    declaration changes. With --app new --args are checked against the task's signature and types.

    \b
    headrace schedule edit mondays --cron '0 8 * * mon' --priority 8
    headrace schedule edit mondays --no-end --catch-up latest
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    check_import(app_path, modules)
    options: JobOptions = {**asked, "queue": queue}
    fields = policy.fields()
    for name, is_gone in (("start", no_start), ("end", no_end)):
        if is_gone and f"{name}_ms" in fields:
            raise click.UsageError(f"say --{name} or --no-{name}")
        if is_gone:
            fields[f"{name}_ms"] = None
    app: App[Any] | None = None
    if args is not None and app_path is not None:
        app = load_app_with_tasks(app_path, target, modules)
        target = place_of_app(app, target)
    else:
        target = target_of(app_path, target)
    arguments = None if args is None else read_arguments(args)
    job = JobEdit(app or plain_app(target), arguments, job_fields(task_settings(), options))
    if not (fields or job.is_any or timing.is_any):
        raise click.UsageError("say what to change")

    def change(before: ScheduleBody) -> ScheduleBody:
        made, when = job.over(before.job), timing.over(before.timing)
        return replace(before, job=made, timing=when, set_by="operator", **fields)

    echo_stored(run(_edit(target, schedule_id, change)), "changed", output=output)


async def _edit(
    target: Target, schedule_id: str, change: Callable[[ScheduleBody], ScheduleBody]
) -> ScheduleRecord:
    def edit_one(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        if before is None:
            return None
        after = check_body(change(before))
        if _when(after) != _when(before):
            check_to_come(schedule_id, after, tolerance_ms=CLOCKS_DIFFER_MS)
        return ScheduleChange(after.in_place_of(before, now_ms))

    async with open_schedules(target) as storage:
        changed = await change_schedule(storage, schedule_id, edit_one)
        return changed or await known_schedule(storage, schedule_id)


def _when(body: ScheduleBody) -> tuple[object, ...]:
    return body.timing, body.start_ms, body.end_ms
