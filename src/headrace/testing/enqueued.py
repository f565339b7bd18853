"""What was enqueued in a kit, and how a test says which of it is meant."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

import msgspec

from headrace.app import App
from headrace.clock import Duration, datetime_of, duration_ms, instant_ms
from headrace.codec import Codec, read
from headrace.errors import InvalidArguments, InvalidOption, UsageError
from headrace.job import DEFAULT_PRIORITY, Job
from headrace.json_codec import JSON
from headrace.options import task_settings
from headrace.request import JobRequest
from headrace.storage.schedules import Occurrence
from headrace.stored_options import as_one_object, read_worker_options
from headrace.task import DeclaredFunction, Task
from headrace.template import JobTemplate

Wanted = DeclaredFunction | Job | str
"""Which jobs a test means: of a task, of a task's name, or exactly such a job."""

_encode = JSON.encoder(Any)

SAID_IF_OTHER = (
    "priority",
    "delay_ms",
    "run_at_ms",
    "expires_in_ms",
    "expires_at_ms",
    "max_stalls",
    "keep_ms",
    "on_failed",
)

ORIGIN = ("schedule", "occurrence")
"""What is said of where a job comes from; the job itself does not know it."""


class JobFilter(TypedDict, total=False):
    """What else may be said of a job; None says nothing."""

    queue: str | None
    id: str | None
    priority: int | None
    delay: Duration | None
    run_at: datetime | None
    schedule: str | None
    occurrence: datetime | None


class EnqueuedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was stored.

    Attributes:
        id: its id.
        queue: its queue.
        task: its task's name.
        arguments: by name and decoded, as the handler gets them, defaults included.
        priority: its tier.
        delay: seconds it was told to wait, 0 without.
        run_at: the instant it was told to wait for, None without.
        headers: what was sent along.
        job: all that was asked for.
        schedule: the id of the schedule that brought it in, None if it was enqueued.
        occurrence: the instant of the schedule that it stands for, None likewise.
    """

    id: str
    queue: str
    task: str
    arguments: dict[str, Any]
    priority: int
    delay: float
    run_at: datetime | None
    headers: dict[str, str]
    job: Job
    schedule: str | None = None
    occurrence: datetime | None = None

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        parts = [f"{self.task}({said}) in {self.queue!r}", f"id {self.id!r}"]
        if self.delay:
            parts.append(f"delay {self.delay:g} s")
        if self.run_at is not None:
            parts.append(f"run_at {self.run_at.isoformat()}")
        if self.priority != DEFAULT_PRIORITY:
            parts.append(f"priority {self.priority}")
        if self.job.options:
            parts.append(f"options {as_one_object(self.job.options).decode()}")
        return ", ".join(parts)


def read_job(app: App[Any], job: Job, occurrence: Occurrence | None = None) -> EnqueuedJob:
    """Return a stored job with its arguments as the handler gets them."""
    options = read_worker_options(job.options)
    return EnqueuedJob(
        id=job.id,
        queue=job.queue,
        task=job.task,
        arguments=_arguments(app.tasks.get(job.task), job.payload, app.codec),
        priority=job.priority,
        delay=job.delay_ms / 1000,
        run_at=datetime_of(job.run_at_ms) if job.run_at_ms else None,
        headers=options.get("headers", {}),
        schedule=None if occurrence is None else occurrence.schedule_id,
        occurrence=None if occurrence is None else datetime_of(occurrence.instant_ms),
        job=job,
    )


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What a test looks for.

    Attributes:
        task: a task's name, None for any.
        arguments: those that matter, None if none do.
        is_whole: whether they are all of the call's.
        fields: what the stored job must say, by the names of `Job`.
        origin: where it must come from, by the names of `EnqueuedJob`.
    """

    task: str | None
    arguments: dict[str, Any] | None
    is_whole: bool
    fields: dict[str, Any]
    origin: dict[str, Any]

    def matches(self, found: EnqueuedJob) -> bool:
        """Whether a stored job is meant."""
        if self.task is not None and found.task != self.task:
            return False
        if any(getattr(found.job, name) != value for name, value in self.fields.items()):
            return False
        if any(getattr(found, name) != value for name, value in self.origin.items()):
            return False
        if self.arguments is None:
            return True
        if self.is_whole and self.arguments.keys() != found.arguments.keys():
            return False
        return all(
            name in found.arguments and _is_equal(value, found.arguments[name])
            for name, value in self.arguments.items()
        )

    def __str__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in (self.arguments or {}).items()]
        if not self.is_whole:
            parts.append("...")
        said = "".join(f", {name}={value!r}" for name, value in (self.fields | self.origin).items())
        return f"{self.task or 'any task'}({', '.join(parts)}){said}"


def pattern_of(
    app: App[Any],
    wanted: Wanted | None,
    arguments: Mapping[str, object] | None,
    **filters: Unpack[JobFilter],
) -> Pattern:
    """Return what a test looks for; the arguments are those of `Kit.enqueued`.

    Raises:
        InvalidArguments: the task has no parameter of that name.
        InvalidOption: a value can't be what it stands for.
    """
    origin = _origin(filters)
    fields = _fields(filters)
    if isinstance(wanted, Job):
        if arguments is not None:
            raise InvalidOption(f"arguments={arguments!r}: the job that was passed has its own")
        return Pattern(
            task=wanted.task,
            arguments=read_job(app, wanted).arguments,
            is_whole=True,
            fields={**_said_by(app, wanted), **fields},
            origin=origin,
        )
    name = wanted.name if isinstance(wanted, DeclaredFunction) else wanted
    if name is not None and not isinstance(name, str):
        raise InvalidOption(f"{wanted!r}: pass a task, its name, or a job as task.job(...) makes")
    if arguments is not None:
        _check_names(app.tasks.get(name or ""), arguments)
    return Pattern(
        task=name,
        arguments=None if arguments is None else dict(arguments),
        is_whole=False,
        fields=fields,
        origin=origin,
    )


def _origin(filters: JobFilter) -> dict[str, Any]:
    origin: dict[str, Any] = {}
    if (schedule := filters.get("schedule")) is not None:
        origin["schedule"] = schedule
    if (occurrence := filters.get("occurrence")) is not None:
        origin["occurrence"] = datetime_of(instant_ms(occurrence, name="occurrence"))
    return origin


def _fields(filters: JobFilter) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: value for name, value in filters.items() if value is not None and name not in ORIGIN
    }
    if "delay" in fields:
        fields["delay_ms"] = duration_ms(fields.pop("delay"), name="delay")
    if "run_at" in fields:
        fields["run_at_ms"] = instant_ms(fields.pop("run_at"), name="run_at")
    return fields


def _said_by(app: App[Any], job: Job) -> dict[str, Any]:
    """Return what a job asks for beyond its task's own settings."""
    task = app.tasks.get(job.task)
    settings = task.settings if task else task_settings(queue=job.queue)
    plain = JobTemplate(job.task, settings, {}).blank
    said: dict[str, Any] = {
        name: getattr(job, name)
        for name in SAID_IF_OTHER
        if getattr(job, name) != getattr(plain, name)
    }
    if not (isinstance(job, JobRequest) and job.is_new_id):
        said["id"] = job.id
    if job.options:
        said["options"] = job.options
    return {"queue": job.queue, **said}


def _parameters(task: Task[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that a call fills in, so without the context."""
    parameters = inspect.signature(task.function).parameters.values()
    return [p for p in parameters if p.name != task.signature.injected_name]


def _check_names(task: Task[..., Any] | None, arguments: Mapping[str, object]) -> None:
    if not isinstance(arguments, Mapping):
        raise InvalidOption(f"arguments={arguments!r}: pass a mapping of names to values")
    if task is None:
        return
    names = [parameter.name for parameter in _parameters(task)]
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise InvalidArguments(
            f"{task.name} has no parameter {unknown[0]!r}: it has {', '.join(names) or 'none'}"
        )


def _arguments(task: Task[..., Any] | None, payload: bytes, codec: Codec) -> dict[str, Any]:
    if task is None:
        return _plain(payload, codec)
    try:
        args, kwargs = task.signature.decode(payload)
    except msgspec.MsgspecError:
        return _plain(payload, codec)  # the worker will find it undecodable
    parameters = _parameters(task)
    given = {**dict(zip((p.name for p in parameters), args, strict=False)), **kwargs}
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {p.name: given.get(p.name, defaults.get(p.name)) for p in parameters}


def _plain(payload: bytes, codec: Codec) -> dict[str, Any]:
    decoded = read(codec.decoder(Any), payload)
    return decoded if isinstance(decoded, dict) else {}


def _is_equal(expected: object, actual: object) -> bool:
    """Whether they are equal as they are, or as JSON: a tuple was stored as a list."""
    if expected == actual:
        return True
    try:
        return _encode(expected, "") == _encode(actual, "")
    except UsageError:
        return False  # it is no argument but a matcher, such as mock.ANY
