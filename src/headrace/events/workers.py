"""What happened in a worker's process."""

from __future__ import annotations

import msgspec


class WorkerStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The worker is about to claim.

    ``queues`` have their weights, ``lanes`` their slots, and ``tasks`` are the app's.
    """

    worker: str
    queues: dict[str, int]
    concurrency: int
    process_slots: int
    lanes: dict[str, int]
    tasks: list[str]


class QueueWithoutTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The worker serves a queue that no task of its app has: only calls that name it come there.

    ``perhaps``: a queue that tasks have and that may have been meant, "" if none is alike.
    """

    worker: str
    queue: str
    perhaps: str


class QueueNotServed(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of the app have a queue that neither this worker nor any other that lives serves.

    It is said at the worker's start; ``tasks`` are the first ten of their names.
    """

    worker: str
    queue: str
    tasks: list[str]


class LaneNotServed(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of a queue that the worker serves need a lane that no live worker of it serves.

    It is said at the worker's start; ``tasks`` are the first ten of their names.
    """

    worker: str
    queue: str
    lane: str
    tasks: list[str]


class WorkerStopping(msgspec.Struct, frozen=True, kw_only=True):
    """The worker claims no more; ``active`` attempts have the grace.

    ``next_signal``: what another signal would do, where signals stop the worker.
    """

    worker: str
    active: int
    grace_s: float
    next_signal: str = ""


class WorkerQuiet(msgspec.Struct, frozen=True, kw_only=True):
    """The worker claims no more but goes on running what it has."""

    worker: str


class WorkerStopped(msgspec.Struct, frozen=True, kw_only=True):
    """The worker has ended."""

    worker: str
    put_back: int
    stuck: int = 0


class WorkerEnding(msgspec.Struct, frozen=True, kw_only=True):
    """The worker stops by itself."""

    worker: str
    cause: str


class AttemptStarted(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt begins."""

    job_id: str
    task: str
    queue: str
    start: int
    wait_ms: int


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt's outcome was recorded.

    Attributes:
        outcome: ``completed``, ``failed`` and ``cancelled`` are ends of the job; it lives on after
            ``retrying``, ``put_back``, ``stalled``, and ``struck``, where its handler was not run.
        duration_ms: how long the handler ran.
        error_type: the exception's class, with its module but for built-in ones.
        error: what the exception says.
        traceback: where it was raised, as text, without the frames of the worker.
        reason: of a dead letter, why a cancelled handler goes on, or by which strike a job waits.
        retry_in_ms: the wait before the next attempt.
    """

    job_id: str
    task: str
    queue: str
    start: int
    outcome: str
    duration_ms: int
    error_type: str = ""
    error: str = ""
    traceback: str = ""
    reason: str = ""
    retry_in_ms: int = 0


class ClaimLost(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome was refused: somebody else owns the job by now."""

    job_id: str
    task: str
    queue: str
    start: int


class QueueFenced(msgspec.Struct, frozen=True, kw_only=True):
    """The worker stopped its own attempts of a queue, since others may have been given them."""

    queue: str
    incarnation: str
    cancelled: int
    cause: str


class WorkerReaped(msgspec.Struct, frozen=True, kw_only=True):
    """A dead incarnation was condemned."""

    queue: str
    incarnation: str


class JobsReconciled(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that the storage counted as this worker's, but that it doesn't run, were put back."""

    queue: str
    count: int


class QueueRepaired(msgspec.Struct, frozen=True, kw_only=True):
    """Records had been lost behind the storage's back; what they left was put right."""

    queue: str
    count: int


class StorageLost(msgspec.Struct, frozen=True, kw_only=True):
    """The storage can't be reached, first noticed by a queue; claims are repeated until it can."""

    queue: str
    error: str


class StorageRecovered(msgspec.Struct, frozen=True, kw_only=True):
    """The storage answers all the worker's queues again, the last of them this one.

    Without a queue it answers a worker that starts, or a program that enqueues or waits.
    """

    queue: str
    after_ms: int


class StorageWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """The storage can't be reached, and what was asked of it waits for over a second."""

    error: str
    waited_ms: int


class LoopStalled(msgspec.Struct, frozen=True, kw_only=True):
    """The event loop has not turned for too long: beats stop, and others will take the jobs."""

    worker: str
    stalled_s: float


class LoopFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A background loop ended with an error and starts again."""

    loop: str
    error: str


class MessageDropped(msgspec.Struct, frozen=True, kw_only=True):
    """What came on a channel is no end of a job, and was dropped; said once for a channel."""

    channel: str
    error: str


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A slot's child process has ended or is worn, and is replaced."""

    pid: int
    cause: str
    jobs: int


class ProcessFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A slot's child process could not be started; it is tried again."""

    error: str


class HandlerStuck(msgspec.Struct, frozen=True, kw_only=True):
    """A handler went on after it was stopped, and was given up: ``stuck`` do so by now.

    ``kind`` is ``coroutine`` or ``thread``. The job's outcome was recorded without it.
    """

    job_id: str
    task: str
    queue: str
    start: int
    kind: str
    cause: str
    stuck: int


class HookFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A hook raised, or was cancelled since it took too long; the attempt's outcome stands.

    ``hook`` is ``on_success``, ``on_failure`` or ``on_retry``, ``function`` what was called.
    """

    job_id: str
    task: str
    queue: str
    start: int
    hook: str
    function: str
    error: str


class LifespanOverdue(msgspec.Struct, frozen=True, kw_only=True):
    """The app's lifespan did not start or end in time, or at once when the worker was to end.

    It was cancelled. ``is_stuck``: it goes on, or blocks the event loop; a thread tells this.
    """

    worker: str
    error: str
    is_stuck: bool


class LoopBlocked(msgspec.Struct, frozen=True, kw_only=True):
    """The event loop stands still: ``stack`` is what it runs, outermost call first.

    If a handler blocks it, ``stack`` begins there, and its job is named.
    """

    worker: str
    blocked_ms: int
    stack: str
    job_id: str = ""
    task: str = ""
    queue: str = ""
