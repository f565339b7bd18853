"""Which colours there are, and whether a stream shows any."""

from __future__ import annotations

import os
from typing import IO, Any

import click
import msgspec

from headrace.job import JobState

STATES = {
    JobState.ACTIVE: "cyan",
    JobState.QUEUED: "blue",
    JobState.SCHEDULED: "blue",
    JobState.RETRYING: "yellow",
    JobState.COMPLETED: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "bright_black",
}
LEVELS = {"ok": "green", "warning": "yellow", "error": "red", "unknown": "yellow"}


class Coloured(msgspec.Struct, frozen=True):
    """A value with a colour of its own, "" for none."""

    value: str | int
    colour: str


def is_coloured(stream: IO[Any]) -> bool:
    """Whether a stream gets colours: a terminal does, unless the environment says otherwise.

    ``NO_COLOR`` and ``FORCE_COLOR`` count if they are not empty, as no-color.org and
    force-color.org ask; the first goes before the second.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        stream.isatty() and os.environ.get("TERM") != "dumb"
    )


def styled(text: str, colour: str) -> str:
    """Return text in a colour or ``bold``; `click.echo` takes it out again where none is shown."""
    if not colour or not text.strip():
        return text
    return click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour)


def colour_of(cell: object) -> str:
    """Return the colour of a cell, "" for none."""
    return cell.colour if isinstance(cell, Coloured) else ""


def state_cell(state: JobState) -> Coloured:
    """Return a job's state in its colour."""
    return Coloured(state.value, STATES.get(state, ""))


def count_cell(count: int, colour: str) -> Coloured:
    """Return a number that is in a colour unless it is 0."""
    return Coloured(count, colour if count else "")
