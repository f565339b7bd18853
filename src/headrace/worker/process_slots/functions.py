"""Where processes find the functions that they run, and how many of them are worth having."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

import msgspec

from headrace.task import DeclaredFunction


class Function(msgspec.Struct, frozen=True):
    """A function by where it can be imported."""

    module: str
    name: str

    def load(self) -> Any:
        """Import it; a task stands for its function.

        Raises:
            Exception: whatever importing its module raises.
        """
        found = attrgetter(self.name)(import_module(self.module))
        return found.function if isinstance(found, DeclaredFunction) else found


def find(function: Callable[..., Any]) -> Function:
    """Return where a child process finds a function.

    Raises:
        LookupError: it isn't there under its own name.
    """
    where = Function(function.__module__, function.__qualname__)
    try:
        found = where.load()
    except (ImportError, AttributeError) as error:
        raise LookupError(str(error)) from error
    if found is not function:
        raise LookupError(f"{where.module}.{where.name} is something else: {found!r}")
    return where


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
