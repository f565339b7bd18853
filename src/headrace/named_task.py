"""A task where only its name is of interest: itself, or its name."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.job import check_text


class NamedTask(Protocol):
    """A task, of which only the name is of interest."""

    name: str


def task_name(task: NamedTask | str) -> str:
    """Return the name of a task, which may say it itself.

    Raises:
        InvalidOption: it is no task, and no name that a task can have.
    """
    name: Any = task if isinstance(task, str) else getattr(task, "name", task)
    return check_text(name, what="task name")
