"""What a handler can know of its own attempt."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Generic

from typing_extensions import TypeVar

from headrace.clock import datetime_of
from headrace.job import Claim, ClaimedJob

S = TypeVar("S", default=None)


class Context(Generic[S]):
    """One attempt, as its handler sees it: the first parameter, annotated `Context`.

    Attributes:
        max_attempts: handler errors after which the job fails.
        timeout: seconds this attempt may take, None without a limit.
        headers: what the producer sent along.
        state: what the app's lifespan yielded, None without one.
    """

    __slots__ = ("_job", "headers", "max_attempts", "state", "timeout")

    def __init__(
        self,
        job: ClaimedJob,
        *,
        max_attempts: int,
        timeout: float | None,
        headers: Mapping[str, str],
        state: S,
    ) -> None:
        self._job = job
        self.max_attempts: int = max_attempts
        self.timeout: float | None = timeout
        self.headers: Mapping[str, str] = headers
        self.state: S = state

    def __repr__(self) -> str:
        return f"<Context of {self.task} job {self.job_id!r}, attempt {self.attempt}>"

    @property
    def job_id(self) -> str:
        """The job's id, unique in its queue."""
        return self._job.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._job.task

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._job.queue

    @property
    def attempt(self) -> int:
        """Which start of the job this is, from 1."""
        return self._job.claim.epoch

    @property
    def attempts(self) -> int:
        """Handler errors before this attempt."""
        return self._job.attempts

    @property
    def stalls(self) -> int:
        """Worker deaths before this attempt."""
        return self._job.stalls

    @property
    def claim(self) -> Claim:
        """The fencing token: pass it on, so that others can refuse an older attempt's writes."""
        return self._job.claim

    @property
    def enqueued_at(self) -> datetime:
        """When the job was accepted, by the storage's clock."""
        return datetime_of(self._job.created_ms)


_current: ContextVar[Context[object]] = ContextVar("headrace_job")


def current_job() -> Context[object]:
    """Return the context of the attempt that runs this code.

    Raises:
        LookupError: no attempt runs here.
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError("current_job() was called outside a handler") from None


def enter(context: Context[object]) -> None:
    """Make ``context`` the current one in this asyncio task; the worker calls it."""
    _current.set(context)
