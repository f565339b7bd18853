"""Debounce and throttle: which of many calls of a task run, said in one word.

Neither is known to storages: a debounced call is an update of one job, a throttled one has an
idempotency key. Here is what they make of the other options of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.job import ID_LIMIT_BYTES, new_job_id
from headrace.plain import shown
from headrace.request import JobRequest
from headrace.settings import TaskSettings
from headrace.update import Update

LEAST_MS = 10
MOST_MS = 366 * 24 * 3600 * 1000

NOT_DEBOUNCED = (
    "delay",
    "run_at",
    "on_conflict",
    "update_data",
    "update_run_at",
    "update_retry",
    "reset_counts",
    "idempotency_key",
    "idempotency_ttl",
)
"""Options that a debounced call has no room for."""

NOT_THROTTLED = ("idempotency_key", "idempotency_ttl")

_WINDOWS = ("debounce_ms", "throttle_ms")

_AS_NEW = Update(reset_counts=True)
"""Each call counts as a new one: the failures of what an earlier one asked for are not its own."""


class Pace(NamedTuple):
    """How calls are thinned out: milliseconds, 0 for not at all; one of them at most."""

    debounce_ms: int
    throttle_ms: int


def check_window(value: Duration, *, name: str) -> int:
    """Return a window in milliseconds, 0 for none.

    Raises:
        InvalidOption: it is no duration, or out of bounds.
    """
    bounds = f"{LEAST_MS / 1000:g} seconds to a year, or 0 for none"
    window_ms = duration_ms(value, name=name, bounds=bounds)
    if window_ms and not LEAST_MS <= window_ms <= MOST_MS:
        raise InvalidOption(f"{name}={shown(value)} is out of bounds: use {bounds}")
    return window_ms


def check_pace(debounce_ms: int, throttle_ms: int) -> Pace:
    """Return what is said in one place.

    Raises:
        InvalidOption: it is both.
    """
    if debounce_ms and throttle_ms:
        raise InvalidOption(
            f"debounce={debounce_ms / 1000:g} and throttle={throttle_ms / 1000:g}: say one of them"
        )
    return Pace(debounce_ms, throttle_ms)


def paced(
    task: str, pace: Pace, said: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a call's jobs with what its pace comes to.

    Args:
        task: the task's name.
        pace: what `pace_of` returned for the call.
        said: the options of the call.
        fields: what they come to; its windows are left out.
    """
    fields = {name: value for name, value in fields.items() if name not in _WINDOWS}
    if pace.debounce_ms:
        job_id = fields.get("id") or debounce_id(task)
        return {**fields, "id": job_id, "delay_ms": pace.debounce_ms, "update": _AS_NEW}
    if pace.throttle_ms:
        job_id = fields.get("id")
        fields["idempotency_key"] = throttle_key(task, job_id)
        fields["idempotency_ttl_ms"] = pace.throttle_ms
        if job_id is not None and said.get("on_conflict") is None:
            # Else a job that is completed and kept would hold up the next for longer than is said.
            fields["update"] = _AS_NEW
    return fields


def pace_of(settings: TaskSettings, said: Mapping[str, Any]) -> Pace:
    """Return a call's pace, or its task's.

    Raises:
        InvalidOption: both are said, or what makes no sense beside one.
    """
    own = check_pace(*(_window(said, name) for name in ("debounce", "throttle")))
    pace = _over(own, said, settings)
    _check_alone("debounce", pace.debounce_ms, said, NOT_DEBOUNCED)
    _check_alone("throttle", pace.throttle_ms, said, NOT_THROTTLED)
    return pace


def _window(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name)
    return 0 if value is None else check_window(value, name=name)


def _over(own: Pace, said: Mapping[str, Any], settings: TaskSettings) -> Pace:
    """Return a call's pace: its own, else its task's where the call doesn't say 0."""
    if any(own):
        return own
    return Pace(
        settings.debounce_ms if said.get("debounce") is None else 0,
        settings.throttle_ms if said.get("throttle") is None else 0,
    )


def _check_alone(
    name: str, window_ms: int, said: Mapping[str, Any], others: tuple[str, ...]
) -> None:
    for other in others if window_ms else ():
        if said.get(other) is not None:
            raise InvalidOption(
                f"{other}={shown(said[other])} makes no sense with {name}={window_ms / 1000:g}: "
                f"leave it out, or say {name}=0 for this call"
            )


def debounce_id(task: str) -> str:
    """Return the id of the one job that all debounced calls of a task are which say no id."""
    return _within_limit("debounce", task)


def throttle_key(task: str, job_id: str | None) -> str:
    """Return the key of the throttled calls of a task, or of those with an id."""
    # A colon of the task's name must not pass for that before an id.
    name = task.replace("%", "%25").replace(":", "%3A")
    return _within_limit("throttle", name if job_id is None else f"{name}:{job_id}")


def _within_limit(kind: str, text: str) -> str:
    whole = f"{kind}:{text}"
    if len(whole.encode()) <= ID_LIMIT_BYTES:
        return whole
    return f"{kind}:{sha256(text.encode()).hexdigest()}"


def without_pace(job: JobRequest) -> JobRequest:
    """Return a job as it would be if its task had no pace, unless the call has said an id."""
    if job.update is not None and job.id == debounce_id(job.task):
        job = replace(job, id=new_job_id(), is_new_id=True, delay_ms=0, update=None)
    if job.idempotency_key == throttle_key(job.task, None):
        job = replace(job, idempotency_key="")
    return job
