"""The job that a dead letter brings: which task it is of, and what that is told of the failure."""

from __future__ import annotations

import msgspec

from headrace.errors import InvalidOption
from headrace.job import ErrorInfo, check_text
from headrace.named_task import NamedTask
from headrace.plain import shown

ARGUMENTS = 3
"""How many a fail job's handler takes: the failed job's id, its arguments, and a `Failure`."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job has become a dead letter, as the handler of its fail job gets it.

    Attributes:
        reason: one of `FailReason`.
        type: qualified name of the last exception, "" where there was none, as of one that expired.
        message: its text, at most 2,000 characters.
        traceback: its last 8,000 characters.
        task: the failed job's task.
        failures: handler errors of the job, as far as they were charged to it.
        stalls: deaths of workers that ran it.
        starts: how often it was started.
    """

    reason: str
    type: str = ""
    message: str = ""
    traceback: str = ""
    task: str = ""
    failures: int = 0
    stalls: int = 0
    starts: int = 0


class StoredFailure(msgspec.Struct, frozen=True):
    """What the options of a fail job say of the failed one, as storages write it."""

    id: str
    task: str
    reason: str
    failures: int = 0
    stalls: int = 0
    starts: int = 0
    error: ErrorInfo | None = None

    def told(self) -> Failure:
        """Return it as handlers get it."""
        error = self.error or ErrorInfo("", "")
        return Failure(
            reason=self.reason,
            type=error.type,
            message=error.message,
            traceback=error.traceback,
            task=self.task,
            failures=self.failures,
            stalls=self.stalls,
            starts=self.starts,
        )


def fail_task_name(task: NamedTask | str) -> str:
    """Return the name that an ``on_failed`` says, by itself or as a task's.

    Raises:
        InvalidOption: it is neither a task nor a name that a task can have.
    """
    name = task if isinstance(task, str) else getattr(task, "name", None)
    if not isinstance(name, str):
        raise InvalidOption(f"on_failed={shown(task)} is no task: pass a task or a task's name")
    return check_text(name, what="on_failed")


def stored_fail_task(name: str) -> str:
    """Return such a name of a job that anybody made; "" names none.

    Raises:
        InvalidOption: no task can have it.
    """
    return "" if name == "" else fail_task_name(name)


def check_is_other(on_failed: str, *, task: str) -> None:
    """See that a task does not name itself: its failures would bring its own jobs.

    Raises:
        InvalidOption: it does.
    """
    if on_failed and on_failed == task:
        raise InvalidOption(
            f"on_failed={shown(on_failed)} is the task itself: name another, which takes the "
            "failed job's id, its arguments and a Failure"
        )
