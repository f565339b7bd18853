"""``headrace pipeline``: the archive of events and dead letters, and what is made of it."""

from __future__ import annotations

import click

from headrace.cli.pipeline_archive import archive_command
from headrace.cli.pipeline_plot import plot_command
from headrace.cli.pipeline_replay import replay_command
from headrace.cli.pipeline_reports import baseline_command, failures_command, rollup_command
from headrace.cli.pipeline_upkeep import compact_command, retain_command


@click.group()
def pipeline() -> None:
    """Archive what happened to jobs, and make reports of it: needs headrace[spark] and Java."""


for command in (
    archive_command,
    baseline_command,
    compact_command,
    failures_command,
    plot_command,
    replay_command,
    retain_command,
    rollup_command,
):
    pipeline.add_command(command)
