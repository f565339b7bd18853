"""The arguments and replies of what brings jobs in and asks how they end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from urllib.parse import unquote

from headrace.job import (
    CancelOutcome,
    EnqueueOutcome,
    FirstUse,
    JobState,
    Verdict,
)
from headrace.request import JobRequest, asked
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, Word, command, nothing, read_error, text
from headrace.storage.values import CallId, End

WATCH_WIDTH = 4

_traits = attrgetter("is_plain", "is_new_id", "replaces_ended", "priority", "task")
_OUTCOMES = {outcome.value.encode(): outcome for outcome in EnqueueOutcome}


def enqueue(root: str, jobs: Sequence[JobRequest], call: CallId) -> Call[list[Verdict]]:
    """Build ``enqueue``."""
    words: list[Word] = [call.client, call.number]
    add_jobs(words, jobs)
    return Call("enqueue", root, words, read_verdicts)


def add_jobs(words: list[Word], jobs: Sequence[JobRequest]) -> None:
    """Add the words of jobs, which take the rest of a call.

    Kind and task are said once where all are plain, of one kind and of one task.
    """
    if len(jobs) > 1 and (kind := _shared_kind(jobs)):
        words += (f"\t{kind}", jobs[0].task)
        for job in jobs:
            words += (job.id, job.payload)
    else:
        for job in jobs:
            add_job(words, job)


def add_job(words: list[Word], job: JobRequest) -> None:
    """Add the words of one job: four of a plain one; any other says what it asks for by name."""
    kind = _kind(job)
    if job.is_plain:
        words += (job.id, kind, job.task, job.payload)
        return
    pairs = asked(job)
    words += (job.id, kind, job.task, job.payload, len(pairs))
    for pair in pairs:
        words += pair


def _kind(job: JobRequest) -> str:
    """Return three digits; ``lua/lib/batch.lua`` says what they mean."""
    origin = "1" if job.is_new_id else "0" if job.replaces_ended else "2"
    return f"{origin}{job.is_plain:d}{job.priority}"


def _shared_kind(jobs: Sequence[JobRequest]) -> str:
    """Return the kind of plain jobs that have it and their task in common, else ""."""
    first = jobs[0]
    traits = _traits(first)
    is_shared = first.is_plain and all(map(traits.__eq__, map(_traits, jobs)))
    return _kind(first) if is_shared else ""


def read_verdicts(reply: bytes) -> list[Verdict]:
    """Read the verdicts on such a batch."""
    return [_OUTCOMES.get(word) or _first_use(word) for word in reply.split()]


def _first_use(word: bytes) -> FirstUse:
    """Read a verdict with an id, in which ``lua/lib/idempotency.lua`` has escaped blanks."""
    outcome, _, job_id = word.partition(b":")
    return FirstUse(_OUTCOMES[outcome], unquote(job_id.decode()))


def cancel(
    root: str, job_ids: Sequence[str], *, only_next: bool, states: Collection[JobState]
) -> Call[list[CancelOutcome]]:
    """Build ``cancel``."""
    words = [f"{only_next:d}", " ".join(states), *job_ids]
    return Call("cancel", root, words, lambda reply: [CancelOutcome(w.decode()) for w in reply])


def watch(root: str, job_ids: Sequence[str], channel: str) -> Call[list[End]]:
    """Build ``watch``."""
    queue = keys.queue_of(root)

    def read(reply: list[bytes]) -> list[End]:
        rows = range(0, len(reply), WATCH_WIDTH)
        return [
            _end(queue, job_id, reply[at : at + WATCH_WIDTH])
            for job_id, at in zip(job_ids, rows, strict=True)
        ]

    return Call("watch", root, [channel, *job_ids], read)


def introduce(tenant: str, queue: str) -> Call[None]:
    """Build what puts a queue on the tenant's list, which is in another slot than the queue."""
    root = keys.tenant_root(tenant)
    return command("introduce", root, "SADD", keys.queues(tenant), queue, read=nothing)


def subscribe(channel: str) -> Call[None]:
    """Build what has a connection told of what is said on a channel."""
    return command(
        "subscribe", channel.partition(":channel:")[0], "SUBSCRIBE", channel, read=nothing
    )


def read_end(message: bytes) -> End:
    """Read a message of a channel; its six lines are written by ``lua/lib/finish.lua``."""
    root, job_id, *words = message.split(b"\n", 5)
    return _end(keys.queue_of(root.decode()), job_id.decode(), words)


def _end(queue: str, job_id: str, words: list[bytes]) -> End:
    state, reason, how, body = words
    is_whole = how == b"whole"
    known = None if state in (b"", b"deleted") else JobState(state.decode())
    return End(
        queue=queue,
        id=job_id,
        state=known,
        reason=text(reason),
        result=body if known is JobState.COMPLETED and is_whole else None,
        error=read_error(body) if known is JobState.FAILED and body else None,
        is_cut=how == b"cut",
    )
