"""``headrace pipeline``: the archive of events and dead letters, and what is made of it."""

from __future__ import annotations

import click

from headrace.cli.pipeline_archive import archive_command
from headrace.cli.pipeline_replay import replay_command
from headrace.cli.pipeline_reports import baseline_command, failures_command, rollup_command


@click.group()
def pipeline() -> None:
    """Archive what happened to jobs, and make reports of it: needs headrace[spark] and Java."""


pipeline.add_command(archive_command)
pipeline.add_command(baseline_command)
pipeline.add_command(failures_command)
pipeline.add_command(replay_command)
pipeline.add_command(rollup_command)
