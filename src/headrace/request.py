"""A job on its way to the storage, with what only its producer knows of it.

A job is a public value, which anybody can make, copy, change and send twice. What a task has just
made of checked values is marked, so that it need not be checked again; the mark holds once.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter, ne
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from headrace.forks import on_fork
from headrace.job import Job
from headrace.update import Update


class JobRequest(Job, frozen=True):
    """A job as a storage takes it.

    Attributes:
        is_new_id: its id was drawn at random for this job, which was not sent before.
        is_plain: it has `asked` for nothing.
        replaces_ended: a failed or cancelled record of its id makes room for it; else any record
            stands.
        channel: which channel is told how the job ends, "" for none.
        update: what it changes of a job of its id that waits or runs; None: nothing.
        era: if it is the current one's number, a task made the job, and it was not sent yet. Only
            `fresh` sets it, and no copy has it.
    """

    is_new_id: bool = False
    is_plain: bool = False
    replaces_ended: bool = True
    channel: str = ""
    update: Update | None = None
    era: int = 0

    def __post_init__(self) -> None:
        # Whatever else makes one says what it likes: a caller, `msgspec.structs.replace`, pickle.
        if self.era:
            force_setattr(self, "era", 0)

    def __copy__(self) -> JobRequest:
        return msgspec.structs.replace(self)


class Era:
    """The time between two forks of this process: a job made before one is in two processes."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number: int = 1

    def end(self) -> None:
        """Begin the next; in a fork's parent as in its child."""
        self.number += 1


era: Era = Era()
"""The current one."""

on_fork(before=era.end)


def fresh(request: JobRequest) -> JobRequest:
    """Return ``request``, now marked as just made of checked values."""
    force_setattr(request, "era", era.number)
    return request


_DEFAULTS = {
    **{
        field.name: field.default
        for field in msgspec.structs.fields(Job)
        if not field.required and field.name != "priority"
    },
    "channel": "",
    "update": None,
}
_values = attrgetter(*_DEFAULTS)


def asked(request: JobRequest) -> list[tuple[str, Any]]:
    """Return what a job asks for, by name, that differs from the default; its tier is apart.

    Of an update that is its `Update.word`.
    """
    values = _values(request)
    # Without a step of Python for each field: most are as they are by default.
    pairs = list(compress(zip(_DEFAULTS, values, strict=True), map(ne, values, _DEFAULTS.values())))
    if request.update is not None:
        pairs[-1] = ("update", request.update.word)
    return pairs
