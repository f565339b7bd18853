"""Which jobs may be sent: those that a task has just made as they are, all others checked."""

from __future__ import annotations

import inspect
from collections.abc import Collection

from msgspec.structs import force_setattr, replace

from headrace.errors import InvalidOption, PayloadTooLarge, UsageError
from headrace.fail_jobs import check_is_other
from headrace.job import PAYLOAD_LIMIT_BYTES, Job, check_name, check_text
from headrace.limit import check_gates
from headrace.on_conflict import check_update
from headrace.options import check_fields
from headrace.plain import shown
from headrace.request import JobRequest, asked, era, fresh
from headrace.settings import check_flag
from headrace.stored_options import check_stored


def admit(job: Job) -> JobRequest:
    """Return what may be sent in place of ``job``: itself, but once only, or a checked copy.

    Raises:
        UsageError: it is no job, or a value of it is not valid.
    """
    # Nothing may come between the look and the mark's end, not even a switch of threads: the
    # interpreter makes none in these two statements.
    if job.__class__ is JobRequest and job.era == era.number:
        force_setattr(job, "era", 0)
        return job
    return checked(job)


def staying(job: Job) -> JobRequest:
    """Return what may be sent in place of ``job``, once, so that any record of its id stands.

    Raises:
        UsageError: it is no job, or a value of it is not valid.
    """
    request = admit(job)
    if request.update is not None:
        raise _stays_and_updates(request)
    return fresh(replace(request, replaces_ended=False))


def checked(job: Job) -> JobRequest:
    """Return a request of plain values that is not taken for a new one.

    Raises:
        UsageError: it is no job, or a value of it is not valid.
    """
    if not isinstance(job, Job):
        raise _no_job(job)
    if isinstance(job, JobRequest) and job.channel != "":
        raise InvalidOption(f"channel={shown(job.channel)} can't be said: enqueue_and_wait sets it")
    said, update = True, None
    if isinstance(job, JobRequest):
        said, update = job.replaces_ended, check_update(job.update)
    payload = _bytes(job.payload, name="payload")
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the payload is {len(payload):,} bytes, the limit is {PAYLOAD_LIMIT_BYTES:,}: store "
            "the data elsewhere and pass its key"
        )
    made = JobRequest(
        task=check_text(job.task, what="task name"),
        payload=payload,
        lane="" if job.lane == "" else check_name(job.lane, what="lane"),
        options=check_stored(_bytes(job.options, name="options")),
        gates=check_gates(job.gates),
        replaces_ended=check_flag(said, name="replaces_ended"),
        update=update,
        **check_fields(job),
    )
    if update is not None and not made.replaces_ended:
        raise _stays_and_updates(made)
    _check_pair(made, "delay_ms", "run_at_ms")
    _check_pair(made, "expires_in_ms", "expires_at_ms")
    check_is_other(made.on_failed, task=made.task)
    force_setattr(made, "is_plain", not asked(made))
    return made


def _stays_and_updates(job: Job) -> InvalidOption:
    return InvalidOption(
        f"job {shown(job.id)} is debounced, throttled by its id, or says on_conflict='update', "
        "and replace_ended=False lets any record of its id stand: say one of them"
    )


def close_unsent(jobs: object) -> None:
    """Close the coroutines among what was to be sent and is not, so that none warns of itself.

    What iterates once is left as it is: to read on would run somebody's code.
    """
    _close(jobs)
    if isinstance(jobs, Collection):
        for job in jobs:
            _close(job)


def _no_job(thing: object) -> UsageError:
    _close(thing)
    return UsageError(f"{shown(thing)} is no job: pass what task.job(...) returns")


def _close(job: object) -> None:
    if inspect.iscoroutine(job):
        job.close()


def _bytes(value: bytes, *, name: str) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidOption(f"{name}={shown(value)} is not valid: it is bytes, encoded")
    return value if type(value) is bytes else bytes.__getitem__(value, slice(None))


def _check_pair(job: Job, first: str, second: str) -> None:
    if getattr(job, first) and getattr(job, second):
        raise InvalidOption(f"{first} and {second}: say one of them")
