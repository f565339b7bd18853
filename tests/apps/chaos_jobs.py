"""What every producer of the chaos soak does: draw its jobs, make them, and note what it hears."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headrace import (
    JobHandle,
    StorageError,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
    SyncJobHandle,
)
from headrace.job import Job
from tests.apps.chaos_app import app, name, notes
from tests.chaos.plan import HEAVY_BYTES, ONE_IN, Kind, kind_of, plan_of, queue_of

DRAINED = "drained"
"""The file that says that everything has ended."""

NO = StorageFull, StorageUnavailable, StorageRefused
"""The errors that say that nothing was stored."""


class Assignment(msgspec.Struct, frozen=True):
    """How many jobs, in how many seconds, by which draws, and how rare some kinds are."""

    jobs: int
    seconds: float
    seed: str
    one_in: dict[str, int] = {}


def is_first() -> bool:
    """Whether this process follows no other one."""
    return name.endswith("-1")


def labels_of(assignment: Assignment, draw: random.Random) -> Iterator[str]:
    """Yield every label of a producer, rare kinds spread over the whole; each at least once."""
    count = assignment.jobs
    one_in = {**ONE_IN, **{Kind(k): n for k, n in assignment.one_in.items()}}
    rare = [kind for kind, n in one_in.items() if n for _ in range(max(1, count // n))][:count]
    drawn = rare + [Kind.PLAIN] * (count - len(rare))
    draw.shuffle(drawn)
    for number, kind in enumerate(drawn):
        yield f"{kind}.{name}.{number}"


def job_of(label: str, *, has_id: bool) -> Job:
    """Return the job of a label, which is its id or not."""
    plan = plan_of(label)
    call = app.tasks[plan.task].options(
        id=label if has_id else None, queue=queue_of(label), **plan.options
    )
    more = {"padding": "." * HEAVY_BYTES} if kind_of(label) is Kind.HEAVY else {}
    return call.job(label, **more)


def note_stored(handles: Sequence[JobHandle[Any] | SyncJobHandle[Any]]) -> None:
    """Note what enqueueing came to."""
    notes.sent("ok", *((handle.id, str(handle.outcome)) for handle in handles))


def note_error(
    error: Exception, ids: Sequence[str], *, no: tuple[type[StorageError], ...] = NO
) -> None:
    """Note an error, of a call that is stored whole or not at all."""
    word = "no" if isinstance(error, no) else "lost"
    notes.sent(word, *((job_id, type(error).__name__) for job_id in ids))
    note_odd(error, ids[0])


def note_odd(error: Exception, job_id: str) -> None:
    """Note an error that is none of ours: no caller could have been told of it."""
    if not isinstance(error, StorageError):
        notes.sent("odd", (job_id, type(error).__name__))


def note_sent_all() -> None:
    """Note that this producer has sent its share."""
    (notes.directory / f"sent-all-{name}").touch()


def is_drained() -> bool:
    """Whether everything has ended."""
    return (notes.directory / DRAINED).exists()
