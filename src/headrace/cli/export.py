"""``headrace job export``: ended jobs with all that is kept of them, a JSON document a line."""

from __future__ import annotations

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.options import Target, option, queue_of, run
from headrace.cli.output import echo_json_line, note
from headrace.job import JobState, check_name
from headrace.storage.exports import EXPORTED, place_behind


@click.command()
@option("--queue", "-q", metavar="NAME", required=True, help="Of this queue.")
@option(
    "--state",
    "-s",
    required=True,
    type=click.Choice([state.value for state in EXPORTED]),
    help="Those that have ended so.",
)
@option(
    "--after",
    metavar="CURSOR",
    help="Go on behind a job: the cursor of its line.  [default: begin with the first]",
)
@option("--limit", "-n", type=click.IntRange(min=1), help="Jobs at most.  [default: all]")
@option(
    "--jsonl",
    flag_value="jsonl",
    default="jsonl",
    show_default=False,
    help="One JSON document a line: the only form that there is.",
)
@on_app_target
def export(
    *, target: Target, queue: str, state: str, after: str | None, limit: int | None, jsonl: str
) -> None:
    """Print ended jobs with all that is kept of them, the first to end first.

    Each comes with its arguments, options, errors and result, and with a cursor: to go on later,
    give --after that of the last line. Each end comes once, while it is kept.
    """
    del jsonl  # there is no other form
    wanted = JobState(state)
    cursor = after or ""
    place_behind(cursor, check_name(queue, what="queue"), wanted)
    if not run(_export(target, queue, wanted, cursor, limit)):
        note(f"There are no such jobs in {target.where}.")


async def _export(
    target: Target, queue: str, state: JobState, after: str, limit: int | None
) -> int:
    """Print up to ``limit`` jobs and return how many those were."""
    count = 0
    async with target.open() as storage:
        async for job in queue_of(storage, queue).export(state, after=after):
            echo_json_line(job.to_dict())
            count += 1
            if count == limit:
                break
    return count
