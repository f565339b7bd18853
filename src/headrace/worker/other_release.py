"""Jobs that this worker can't run and another release of its program may: they go back to wait.

A task that only others know, and arguments that have a field more or less than its own signature.
What is wrong in itself, such as a value of another type, fails at once.
"""

from __future__ import annotations

import random
from collections.abc import Collection

import msgspec

from headrace.job import ClaimedJob, ErrorInfo, FailReason
from headrace.nearest import nearest
from headrace.outcome import Failed, Outcome, PutBack

WAIT_S = (5.0, 30.0)
"""How long such a job waits for another worker: drawn from this range."""

MOST_REMEMBERED = 1_000
"""Most unknown names for which the likeliest known one is remembered; to look is no short work."""

_SHAPES = ("Object missing required field", "Object contains unknown field")
"""How the error of a decoder begins that found a field too few or too many."""


def told_apart(release: str | None, worker: str) -> str:
    """Return what errors call a worker: by its release, if the app has one, else by its name."""
    return f"worker {worker}" if release is None else f"release {release}"


class OtherRelease:
    """Decides about such jobs.

    Args:
        tasks: the names of those that this worker knows.
        who: what the error says of this worker, as in ``release 2.1``.
    """

    def __init__(self, tasks: Collection[str], who: str) -> None:
        self._tasks = tasks
        self._who = who
        self._perhaps: dict[str, str] = {}

    def unknown_task(self, job: ClaimedJob) -> Outcome:
        """Return what becomes of a job whose task is not known here."""
        if job.task not in self._perhaps:
            if len(self._perhaps) == MOST_REMEMBERED:
                self._perhaps.clear()
            self._perhaps[job.task] = nearest(job.task, self._tasks)
        perhaps = self._perhaps[job.task]
        meant = f"; perhaps {perhaps!r} was meant" if perhaps else ""
        return _put_back(
            job,
            f"no worker of this queue knows the task {job.task!r}: "
            f"{self._who} has {_counted(self._tasks)}, and not this one{meant}",
        )

    def no_process_slots(self, job: ClaimedJob) -> Outcome:
        """Return what becomes of a job that a worker without them has claimed."""
        return _put_back(job, f"the task {job.task!r} needs a worker with process slots")

    def no_lane(self, job: ClaimedJob, lane: str) -> Outcome:
        """Return what becomes of a job that came before its task needed a lane not served here."""
        return _put_back(job, f"the task {job.task!r} needs a worker that serves the lane {lane!r}")

    def misfit(self, job: ClaimedJob, outcome: Outcome, grace_ms: int) -> Outcome:
        """Return what becomes of a job whose arguments this release can't read.

        Args:
            job: what was claimed.
            outcome: the dead letter that it is to be, as `undecodable` returns it.
            grace_ms: how long it may wait for a release that can.
        """
        if not isinstance(outcome, Failed) or outcome.reason is not FailReason.UNDECODABLE:
            return outcome
        if not outcome.error.message.startswith(_SHAPES):
            return outcome
        error = msgspec.structs.replace(
            outcome.error,
            message=f"{self._who} refused the arguments: {outcome.error.message}",
            traceback="",
        )
        if not grace_ms:
            return msgspec.structs.replace(outcome, error=error)
        return PutBack(min(_wait_ms(), grace_ms), error, grace_ms, FailReason.UNDECODABLE)


def _counted(tasks: Collection[str]) -> str:
    return "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"


def _put_back(job: ClaimedJob, cause: str) -> Outcome:
    return PutBack(_wait_ms(), ErrorInfo(type="UnknownTask", message=cause, start=job.claim.epoch))


def _wait_ms() -> int:
    # Drawn at random, so that a rolling deploy's old jobs don't all come back at one instant.
    return round(random.uniform(*WAIT_S) * 1000)  # noqa: S311
