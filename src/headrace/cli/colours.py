"""Which colours there are, and what has which."""

from __future__ import annotations

import click
import msgspec

from headrace.job import JobState

STATES = {
    JobState.ACTIVE: "cyan",
    JobState.QUEUED: "blue",
    JobState.SCHEDULED: "blue",
    JobState.BLOCKED: "blue",
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
