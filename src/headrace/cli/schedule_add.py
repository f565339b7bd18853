"""``headrace schedule add``: a schedule is stored, of a task by its name or of an app's own."""

from __future__ import annotations

import click

from headrace.cli.app_target import place_of_app
from headrace.cli.awaiting import plain_app
from headrace.cli.grouped import GroupedCommand
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.new_job import args_option, check_import, make_job, on_asked, read_arguments
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
from headrace.occurrences import job_body
from headrace.options import JobOptions
from headrace.plain import shown
from headrace.policy import check_body, check_to_come
from headrace.schedule import CLOCKS_DIFFER_MS, ScheduleBody
from headrace.schedule_records import (
    ScheduleChange,
    ScheduleRecord,
    change_schedule,
    known_schedule,
)


@click.command(cls=GroupedCommand, groups=GROUPS)
@id_argument
@click.argument("task", metavar="TASK")
@args_option(default="{}")
@option("--queue", "-q", metavar="NAME", help="Needed without --app.")
@on_timing
@on_policy
@option("--paused", is_flag=True, help="It fires nothing until it is resumed.")
@on_asked
@app_option
@import_option
@output_option
@on_target
def add(
    *,
    target: Target,
    app_path: str | None,
    modules: tuple[str, ...],
    output: str,
    schedule_id: str,
    task: str,
    args: str,
    queue: str | None,
    timing: SaidTiming,
    policy: SaidPolicy,
    paused: bool,
    asked: JobOptions,
) -> None:
    """Store a schedule of TASK, under an ID that is not taken.

    With --app the arguments are checked against the task's signature and types. Without it the jobs
    go to --queue by the task's name, and only the worker checks them.

    \b
    headrace schedule add mondays shop.report -q reports --cron '0 9 * * mon' --tz Europe/Berlin
    headrace schedule add poll shop.poll --app shop:app --every 30s --overlap skip
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    check_import(app_path, modules)
    when, how = timing.timing(), policy.fields()
    app = None if app_path is None else load_app_with_tasks(app_path, target, modules)
    options: JobOptions = {**asked, "queue": queue}
    job = make_job(
        app, app or plain_app(target), task, arguments=read_arguments(args), options=options
    )
    made = job_body(job, {})
    body = check_body(ScheduleBody(job=made, timing=when, is_paused=paused, **how))
    check_to_come(schedule_id, body, tolerance_ms=CLOCKS_DIFFER_MS)
    place = target if app is None else place_of_app(app, target)
    echo_stored(run(_add(place, schedule_id, body)), "added", output=output)


async def _add(target: Target, schedule_id: str, body: ScheduleBody) -> ScheduleRecord:
    def make(before: ScheduleBody | None, now_ms: int) -> ScheduleChange | None:
        if before is not None:
            raise click.ClickException(
                f"there is a schedule {shown(schedule_id)} already in {target.where}: "
                "use headrace schedule edit, or another id"
            )
        return ScheduleChange(body.in_place_of(None, now_ms))

    async with open_schedules(target, makes=True) as storage:
        added = await change_schedule(storage, schedule_id, make)
        return added or await known_schedule(storage, schedule_id)
