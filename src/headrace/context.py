"""What a handler can know of its own attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Generic, NoReturn, Protocol

from typing_extensions import TypeVar

from headrace.clock import Duration, datetime_of
from headrace.codec import Encode, encode_chunk
from headrace.errors import InvalidOption, OutsideHandler, Snooze
from headrace.job import Claim, ClaimedJob
from headrace.plain import one_line, plain_number, plain_text, shown

S_co = TypeVar("S_co", default=None, covariant=True)

PROGRESS_TEXT_LIMIT = 200


class Reporter(Protocol):
    """Where what a handler says of itself goes, and where it hears that it should stop.

    Called in the thread or process that runs the handler; returns at once.
    """

    def progress(self, fraction: float, text: str) -> None:
        """Note how far the attempt is."""

    def emit(self, chunk: bytes) -> None:
        """Pass on a piece of output, encoded."""

    def is_stopping(self) -> bool:
        """Whether the attempt was asked to stop."""


class Silent:
    """For an attempt that nobody follows."""

    def progress(self, fraction: float, text: str) -> None:
        """Ignore it."""

    def emit(self, chunk: bytes) -> None:
        """Ignore it."""

    def is_stopping(self) -> bool:
        """Nobody asks."""
        return False


class Done:
    """Can be awaited, and is done: so that a coroutine and a plain function call the same."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_done = Done()


class Context(Generic[S_co]):
    """One attempt, as its handler sees it: the first parameter, annotated `Context`.

    Attributes:
        max_attempts: handler errors after which the job fails.
        timeout: seconds this attempt may take, None without a limit.
        headers: what the producer sent along.
        state: what the app's lifespan yielded, None without one.
    """

    __slots__ = (
        "_encode",
        "_has_heard_stop",
        "_job",
        "_reporter",
        "headers",
        "max_attempts",
        "state",
        "timeout",
    )

    def __init__(
        self,
        job: ClaimedJob,
        *,
        max_attempts: int,
        timeout: float | None,
        headers: Mapping[str, str],
        state: S_co,
        reporter: Reporter,
        encode: Encode,
    ) -> None:
        self._job = job
        self._reporter = reporter
        self._encode = encode
        self._has_heard_stop = False
        self.max_attempts: int = max_attempts
        self.timeout: float | None = timeout
        self.headers: Mapping[str, str] = headers
        self.state: S_co = state

    def __repr__(self) -> str:
        return f"<Context of {self.task} job {self.job_id!r}, start {self.start}>"

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
    def start(self) -> int:
        """Which start of the job this is, from 1."""
        return self._job.claim.epoch

    @property
    def failures(self) -> int:
        """Handler errors before this attempt."""
        return self._job.failures

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

    def progress(self, fraction: float, text: str = "") -> Awaitable[None]:
        """Say how far the attempt is; ``await`` it or not. Returns at once.

        It is stored with the job and told by its events within half a second; what comes faster is
        left out but for the last. It is lost, and no error, when the storage is away.

        Args:
            fraction: from 0 to 1.
            text: a few words, 200 characters at most; line breaks and other control characters
                become spaces.

        Raises:
            InvalidOption: the fraction is not from 0 to 1, or the text is no string or longer.
        """
        number = plain_number(fraction)
        # NaN compares as false, and an integer may be too large for a float.
        if number is None or not 0 <= number <= 1:
            raise InvalidOption(
                f"progress {shown(fraction)} is out of bounds: use a number from 0 to 1"
            )
        words = plain_text(text)
        if words is None or len(words) > PROGRESS_TEXT_LIMIT:
            raise InvalidOption(
                f"the progress text {shown(text)} is not valid: use a string of "
                f"{PROGRESS_TEXT_LIMIT} characters at most"
            )
        self._reporter.progress(float(number), one_line(words))
        return _done

    def emit(self, value: object) -> Awaitable[None]:
        """Pass a piece of output to whoever reads ``handle.stream()``; ``await`` it or not.

        Pieces arrive in order, in batches. The newest 1,000 of an attempt are kept, for an hour
        after the last at least, and no longer than the job's record.

        Args:
            value: plain data, 64 KiB encoded at most.

        Raises:
            NotSerializable: it can't be encoded.
            PayloadTooLarge: it is over 64 KiB.
        """
        self._reporter.emit(encode_chunk(self._encode, value))
        return _done

    def snooze(self, delay: Duration, reason: str = "") -> NoReturn:
        """End this attempt and run the job again after ``delay``, without a failure.

        It raises `Snooze`, which says more; what catches every exception must let it pass.

        Args:
            delay: seconds or a `timedelta`, 0 or more, at most ten years.
            reason: a few words for the events and the log, cut to 200 characters.
        """
        raise Snooze(delay, reason)

    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop: by a cancel, its timeout or a shutdown.

        A coroutine is interrupted anyway. A plain function should look now and then and return
        early, since a thread can't be stopped and a process is killed shortly after. Once it has
        seen this true, what it returns is no result: after a shutdown its job runs again.
        """
        if self._reporter.is_stopping():
            self._has_heard_stop = True
        return self._has_heard_stop


_current: ContextVar[Context[object]] = ContextVar("headrace_job")


def current_job() -> Context[object]:
    """Return the context of the attempt that runs this code.

    Raises:
        OutsideHandler: no attempt runs here.
    """
    context = _current.get(None)
    if context is None:
        raise OutsideHandler("current_job() was called outside a handler: no job runs here")
    return context


def running_job() -> Context[object] | None:
    """Return the context of the attempt that runs this code, None if none does."""
    return _current.get(None)


def enter(context: Context[object]) -> None:
    """Make ``context`` the current one in this asyncio task; the worker calls it."""
    _current.set(context)


def has_heard_stop(context: Context[Any]) -> bool:
    """Whether somebody has seen `Context.cancelled` true; the worker asks."""
    return context._has_heard_stop  # noqa: SLF001 (no handler needs it)
