"""What each occurrence of a schedule brings in: its job, checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from headrace.admit import checked
from headrace.clock import Duration, datetime_of
from headrace.errors import InvalidOption
from headrace.job import Job
from headrace.options import JobOptions, SharedOptions
from headrace.pace import without_pace
from headrace.plain import plain_text, shown
from headrace.request import JobRequest
from headrace.retry import Retry
from headrace.schedule import JobBody
from headrace.task import Task

_OWN_ID = "each occurrence's job has an id of its own, <schedule>:<instant>"
_OWN_TIME = "the timing says when the jobs are due, and jitter= spreads them"
_OWN_PACE = "the timing says how often there is one, and each runs"
_OWN_WAIT = "nobody waits for the jobs of a schedule"
_SPAN = "say a duration, which counts from the moment at which an occurrence is fired"


class ScheduledJobOptions(SharedOptions, total=False):
    """Options of the jobs of a schedule. None says nothing.

    Attributes:
        expires: how long after an occurrence was fired its job may start for the first time.
        retry: how long it waits between attempts.
        headers: strings for the handler, 8 KiB together.
    """

    expires: Duration | None
    retry: Retry | None
    headers: Mapping[str, str] | None


def job_body(job: Job, tasks: Mapping[str, Task[..., Any]]) -> JobBody:
    """Return what each occurrence of a schedule of this job brings in.

    Args:
        job: made by a task's ``job``.
        tasks: those by whose signatures arguments can be checked.

    Raises:
        UsageError: it is no job, asks for what no schedule can have, or its arguments don't fit
            the task.
    """
    asked = checked(job)
    made = without_pace(asked)
    if isinstance(job, JobRequest) and not job.is_new_id and made.id == asked.id:
        raise _senseless(f"id={shown(made.id)}", _OWN_ID)
    if made.delay_ms:
        raise _senseless(f"delay={made.delay_ms / 1000:g}", _OWN_TIME)
    if made.run_at_ms:
        raise _senseless(f"run_at={datetime_of(made.run_at_ms).isoformat()}", _OWN_TIME)
    if made.expires_at_ms:
        raise _senseless(f"expires={datetime_of(made.expires_at_ms).isoformat()}", _SPAN)
    task = tasks.get(made.task)
    if task is not None:
        task.signature.check(made.payload)
    return JobBody.of(made)


def arguments_of(args: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a schedule's jobs, which are the same in each process.

    Raises:
        InvalidOption: they are no mapping by name.
    """
    if args is None:
        return {}
    if not isinstance(args, Mapping) or not all(plain_text(name) is not None for name in args):
        raise InvalidOption(
            f'args={shown(args)}: pass a mapping of arguments by name, as in {{"region": "eu"}}'
        )
    return {name: _in_order(value) for name, value in args.items()}


def _in_order(value: Any) -> Any:
    """Return a value in which sets are sorted lists.

    They are stored as lists, and each process has another order: its digests would differ.
    """
    if isinstance(value, set | frozenset):
        return sorted((_in_order(part) for part in value), key=repr)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [_in_order(part) for part in value]
    if type(value) is dict:
        return {key: _in_order(part) for key, part in value.items()}
    return value


def options_of(options: ScheduledJobOptions | None) -> JobOptions:
    """Return the options of a schedule's jobs as those of a call.

    Raises:
        InvalidOption: they are no mapping, or one makes no sense for such jobs.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidOption(
            f'options={shown(options)}: pass a mapping of options by name, as in {{"priority": 8}}'
        )
    said = cast(JobOptions, dict(options))
    reasons = {
        "id": _OWN_ID,
        "on_conflict": _OWN_ID,
        "idempotency_key": _OWN_ID,
        "idempotency_ttl": _OWN_ID,
        "debounce": _OWN_PACE,
        "throttle": _OWN_PACE,
        "delay": _OWN_TIME,
        "run_at": _OWN_TIME,
        "wait_timeout": _OWN_WAIT,
    }
    for name, why in reasons.items():
        if said.get(name) is not None:
            raise _senseless(f"{name}={shown(said.get(name))}", why)
    if isinstance(said.get("expires"), datetime):
        raise _senseless(f"expires={shown(said.get('expires'))}", _SPAN)
    return said


def _senseless(said: str, why: str) -> InvalidOption:
    return InvalidOption(f"{said} makes no sense for a schedule's job: {why}")
