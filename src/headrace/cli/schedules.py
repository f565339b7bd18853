"""``headrace schedule``: what comes when, and by which rules."""

from __future__ import annotations

import click

from headrace.cli.schedule_next import next_command


@click.group()
def schedule() -> None:
    """Look at what comes when."""


schedule.add_command(next_command)
