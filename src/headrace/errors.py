"""Every error that headrace raises, in one tree.

::

    HeadraceError
    ├── UsageError                the caller's mistake; raised before any I/O
    │   ├── InvalidArguments      the arguments don't fit the task's signature (also a TypeError)
    │   ├── InvalidOption         an option, id, name or URL is out of bounds (also a ValueError)
    │   ├── NotSerializable       a value can't be encoded, or is too deep (also a TypeError)
    │   ├── PayloadTooLarge       the encoded arguments are over the limit (also a ValueError)
    │   ├── UnknownTask           the name is not registered in this app (also a LookupError)
    │   ├── OutsideHandler        a context is asked for where no job runs (also a LookupError)
    │   ├── AppImportError        an app, or a module with its tasks, can't be imported
    │   ├── MissingRequirement    what an extra needs is missing or too old (also an ImportError)
    │   └── InvalidRows           rows of a DataFrame can't become jobs (also a ValueError)
    ├── StorageError              the storage did not do what was asked
    │   ├── StorageUnavailable    not reached, nothing was sent: safe to try again
    │   ├── ReplyLost             sent, but no answer came: it may have happened
    │   ├── StorageFull           out of memory: nothing was written
    │   │   └── QueueFull         as many jobs wait in the queue as it takes; nothing was stored
    │   ├── StorageRefused        wrong version, eviction policy, credentials or layout
    │   ├── TooManySchedules      the tenant has as many schedules as it may have
    │   ├── StageLost             what was staged for a bulk write is not there any more
    │   ├── TooManyReaders        the queue's events have as many readers as they may have
    │   ├── TooManyStrikes        the queue has as many strikes as it may have
    │   ├── StaleCall             an older call of this client arrived late; it changed nothing
    │   └── StorageFault          the storage answered something unexpected
    ├── LifespanTimeout           the app's lifespan did not start or end in time
    ├── ScheduleNotFound          there is no such schedule (also a LookupError)
    ├── WriteNotFound             no such bulk write was committed, or it is not known any more
    │                             (also a LookupError)
    ├── EventsLost                events were trimmed before they were read
    ├── ArchiveInUse              somebody else does to an archive what one may do at a time
    ├── SnoozeLimit               a job has asked to snooze too often; kept in its error history
    └── JobError                  what waiting for a job can raise
        ├── JobFailed             the job is a dead letter
        ├── JobCancelled          the job was cancelled
        ├── JobNotFound           no such job, or its record has ended
        ├── ResultExpired         completed, but the result is no longer kept
        ├── ResultMismatch        completed, but the result is not of the declared type
        └── WaitTimeout           not finished in time (also a TimeoutError)

    Signal                        raised by handlers to end their attempt; not errors
    ├── RetryLater                try again after a delay; counts as a failure
    ├── Snooze                    run again after a delay; counts as nothing
    └── FailPermanently           don't try again
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any


class HeadraceError(Exception):
    """Base of every error that headrace raises."""


class UsageError(HeadraceError):
    """The caller's mistake; raised before any I/O, and nothing was changed."""


class InvalidArguments(UsageError, TypeError):
    """The arguments don't fit the task's signature."""


class InvalidOption(UsageError, ValueError):
    """An option, id, name or URL is out of bounds."""


class NotSerializable(UsageError, TypeError):
    """A value can't be encoded; the message names it by path, as in ``args.user.db``."""


class PayloadTooLarge(UsageError, ValueError):
    """The encoded arguments are larger than the limit of 1 MiB."""


class UnknownTask(UsageError, LookupError):
    """The task's name is not registered in this app, and no queue was named for it."""


class OutsideHandler(UsageError, LookupError):
    """A `Context` is asked for in code that runs no job's handler."""


class AppImportError(UsageError):
    """An app, or a module with tasks of it, can't be imported; the cause is chained."""


class MissingRequirement(UsageError, ImportError):
    """Something that an extra needs is missing or too old, such as pyspark or Java."""


class InvalidRows(UsageError, ValueError):
    """Rows of a DataFrame can't become jobs; none of their batch was sent."""


class StorageError(HeadraceError):
    """The storage did not do what was asked.

    Attributes:
        accepted: from `App.enqueue_many`, the handles of the jobs stored before the error.
        report: from `Queue.cancel`, the `CancelReport` of what was done before the error.
    """

    accepted: tuple[Any, ...] = ()
    report: Any = None


class StorageUnavailable(StorageError):
    """The storage was not reached and nothing was sent: trying again is safe."""


class ReplyLost(StorageError):
    """The call was sent but its answer was lost: it may have happened or not.

    Enqueueing again with the same job id is safe: the storage keeps one job per id.
    """


class StorageFull(StorageError):
    """The storage has no memory left for new jobs; nothing was written. Workers still drain."""


class QueueFull(StorageFull):
    """As many jobs wait in the queue as it takes (``max_length``); nothing of the call was stored.

    Attributes:
        queue: the queue.
        limit: how many it takes.
        waiting: how many waited.
    """

    def __init__(self, queue: str, *, limit: int, waiting: int) -> None:
        self.queue: str = queue
        self.limit: int = limit
        self.waiting: int = waiting
        super().__init__(
            f"queue {queue!r} takes {limit:,} jobs that wait, and {waiting:,} do: enqueue again "
            "later, or raise its max_length"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # By its fields, since its text is no argument.
        return partial(QueueFull, limit=self.limit, waiting=self.waiting), (self.queue,)


class StorageRefused(StorageError):
    """The storage can't be used as it is: its version, settings, layout or credentials."""


class TooManySchedules(StorageError):
    """The tenant has as many schedules as it may have; nothing was changed."""


class StageLost(StorageError):
    """What was staged for a bulk write is not there, or is committed; nothing was changed.

    It has outlived its time, or was discarded. Stage it again under a new token.
    """


class TooManyReaders(StorageError):
    """The queue's events have as many readers as they may have; nothing was changed."""


class TooManyStrikes(StorageError):
    """The queue has as many strikes as it may have; nothing was changed."""


class StaleCall(StorageError):
    """An older call of this client arrived after a newer one; it changed nothing."""


class StorageFault(StorageError):
    """The storage answered something that it should never answer."""


class LifespanTimeout(HeadraceError):
    """The app's lifespan did not start or end in the time that a worker gives it."""


class ScheduleNotFound(HeadraceError, LookupError):
    """There is no schedule of that id; nothing was changed."""


class WriteNotFound(HeadraceError, LookupError):
    """The queue knows no bulk write of that id: none was committed, or its ``keep`` is over."""


class EventsLost(HeadraceError):
    """Events were trimmed before they were read, or their numbers began anew."""


class ArchiveInUse(HeadraceError):
    """Somebody else does to an archive what only one may do at a time; nothing was changed."""


class SnoozeLimit(HeadraceError):
    """A job has asked to snooze at its 1,000th start, or 2,000th and so on; it is a dead letter.

    Nothing raises it: it is the last error of such a job.
    """


class JobError(HeadraceError):
    """What waiting for a job's result can raise."""

    def __init__(self, message: str, *, job_id: str, queue: str) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.queue = queue


class JobFailed(JobError):
    """The job is a dead letter.

    Attributes:
        reason: why it ended, one of `FailReason`.
        error_type: qualified name of the last exception, empty if none was recorded.
        error_message: its text.
        traceback: its traceback as text.
    """

    def __init__(
        self,
        message: str,
        *,
        job_id: str,
        queue: str,
        reason: str,
        error_type: str = "",
        error_message: str = "",
        traceback: str = "",
    ) -> None:
        super().__init__(message, job_id=job_id, queue=queue)
        self.reason = reason
        self.error_type = error_type
        self.error_message = error_message
        self.traceback = traceback


class JobCancelled(JobError):
    """The job was cancelled before it completed."""


class JobNotFound(JobError):
    """There is no such job: it never was, or its record is no longer kept."""


class ResultExpired(JobError):
    """The job completed, but its result is no longer kept."""


class ResultMismatch(JobError):
    """The job completed, but its result is not of the type that its task declares.

    With ``validate=True`` the job is a dead letter ``permanent`` instead.
    """


class WaitTimeout(JobError, TimeoutError):
    """The job did not finish in the time given; whatever it does, it still does.

    Attributes:
        handle: the job's `JobHandle`, by which it can be waited for again, or cancelled.
        is_served: whether a live worker serves its queue and knows its task; None if that could not
            be told.
    """

    def __init__(
        self,
        message: str,
        *,
        job_id: str,
        queue: str,
        handle: Any = None,
        is_served: bool | None = None,
    ) -> None:
        super().__init__(message, job_id=job_id, queue=queue)
        self.handle = handle
        self.is_served = is_served


class Signal(Exception):
    """Base of what a handler raises to end its attempt in a chosen way; not an error."""


class RetryLater(Signal):
    """End this attempt and run the job again after ``delay``.

    It counts as one of the job's ``max_attempts``; when they are used up the job fails.

    Args:
        delay: seconds or a `timedelta`, 0 or more.
        reason: text kept in the job's error history.
    """

    def __init__(self, delay: float | timedelta, reason: str = "") -> None:
        super().__init__(reason or "the handler asked to run again later")
        self.delay = delay


class Snooze(Signal):
    """End this attempt and run the job again after ``delay``; nothing has failed.

    For a handler that comes too early: what it waits for is not there yet. It uses up none of the
    job's ``max_attempts`` and adds nothing to its error history. The job waits as ``scheduled``.
    One that asks for it at its 1,000th start, or its 2,000th and so on, becomes a dead letter
    ``exhausted`` instead, so that none goes on unseen for ever; redriven, it has as many again.

    Args:
        delay: seconds or a `timedelta`, 0 or more, at most ten years.
        reason: a few words for the events and the log, cut to 200 characters.
    """

    def __init__(self, delay: float | timedelta, reason: str = "") -> None:
        super().__init__(reason)
        self.delay = delay


class FailPermanently(Signal):
    """End the job now as a dead letter with reason ``permanent``, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the handler asked not to run again")
