"""Fairness: jobs whose keys take turns. What it is called among limits, and where it is declared.

Storages know a window of each lane and tier behind the one limit that jobs name.
"""

from __future__ import annotations

from headrace.errors import InvalidOption
from headrace.job import check_text
from headrace.plain import plain_text, shown

FAIR_LIMIT = "fair"
"""The limit that a job names to take turns."""

NAME_LIMIT_BYTES = 600
"""The name of a limit may be that of a task, a colon, and that of a parameter."""

_WINDOWS = f"{FAIR_LIMIT}:"


def is_window(name: str) -> bool:
    """Whether a limit, or a gate of it, is the window of a lane and tier."""
    return name.startswith(_WINDOWS)


def fair_key_of(gates: str) -> str | None:
    """Return the key that takes turns of a record's ``gates``, None where none does."""
    return next((line.partition("\t")[2] for line in gates.split("\n") if is_window(line)), None)


def check_limit_name(name: str, *, limit_bytes: int = NAME_LIMIT_BYTES) -> str:
    """Return ``name`` as a plain string if a limit may be called so.

    Raises:
        InvalidOption: it is no name, or stands for fairness.
    """
    text = check_text(name, what="limit name", limit_bytes=limit_bytes)
    if text == FAIR_LIMIT or is_window(text):
        raise InvalidOption(
            f"limit name {shown(text)} is not valid: it stands for fairness, which fair_by= and "
            "fair_key= ask for; give the limit another name"
        )
    return text


def check_fair_by(name: str) -> str:
    """Return the parameter whose values take turns, as a plain string.

    Raises:
        InvalidOption: it is no name.
    """
    text = plain_text(name)
    if not text:
        raise InvalidOption(f"fair_by={shown(name)} is not valid: name a parameter of the task")
    return text
