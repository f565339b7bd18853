"""``headrace job why``: all that keeps a job from running."""

from __future__ import annotations

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.colours import STATES, styled
from headrace.cli.finding import find_by_beginning, no_such_job
from headrace.cli.options import Target, output_option, queue_option, run
from headrace.cli.output import echo, echo_json, echo_styled
from headrace.job import check_text
from headrace.plain import printable
from headrace.storage.base import check_tells_why
from headrace.views.why import Why


@click.command("why")
@click.argument("job_id", metavar="ID")
@queue_option
@output_option
@on_app_target
def why_command(*, target: Target, job_id: str, queue: str | None, output: str) -> None:
    """Tell why a job does not run, and what to do.

    It names all that is in its way at this moment: a pause, a time, limits with the jobs that have
    their places, workers that are not there, and how many come before it. The beginning of an id is
    enough, as for "headrace job show".
    """
    job_id = check_text(job_id, what="job id")

    async def load() -> Why:
        async with target.open() as storage:
            check_tells_why(storage)
            record = await find_by_beginning(storage, job_id, queue, where=target.where)
            situation = await storage.why(record.queue, record.id)
            if situation is None:
                raise no_such_job(record.id, record.queue, where=target.where)
            return Why.of(situation)

    found = run(load())
    if output == "json":
        echo_json(found.to_dict())
    else:
        _show(found)


def _show(why: Why) -> None:
    beginning, _, _ = printable(why.heading).rpartition(f"{why.state}:")
    echo_styled(f"{beginning}{styled(why.state.value, STATES.get(why.state, ''))}:")
    for reason in why.reasons:
        echo(f"- {reason.text}")
        echo(f"  {reason.advice}")
