"""Schedules that code declares: what each comes to, and what tells one release from another."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from headrace.errors import InvalidOption, UsageError
from headrace.job import Job
from headrace.occurrences import ScheduledJobOptions, arguments_of, job_body, options_of
from headrace.policy import check_body, check_schedule_id, check_timing
from headrace.schedule import ScheduleBody, encode_body
from headrace.signature import LateSignature
from headrace.storage.limits import SCHEDULES_LIMIT
from headrace.task import Task
from headrace.timing import Timing


class Declared(msgspec.Struct, frozen=True):
    """All schedules that a release of an app declares.

    Attributes:
        app: the app's name.
        release: the digest that tells it from a release that declares others.
        schedules: what is to be stored of each, by its id.
    """

    app: str
    release: str
    schedules: dict[str, ScheduleBody]


class Declaration(Protocol):
    """A schedule that is declared."""

    @property
    def body(self) -> ScheduleBody:
        """What is to be stored of it."""

    def is_replaced(self, tasks: Mapping[str, Task[..., Any]]) -> bool:
        """Whether it was of a task that another one of its name has replaced."""


class OfJob:
    """A schedule of a job that was made of a task.

    Raises:
        UsageError: the job can be no schedule's, or the parts don't go together.
    """

    def __init__(
        self,
        job: Job,
        timing: Timing,
        policy: Mapping[str, Any],
        tasks: Mapping[str, Task[..., Any]],
    ) -> None:
        body = ScheduleBody(job=job_body(job, tasks), timing=check_timing(timing), **policy)
        self.body: ScheduleBody = _declared(check_body(body))

    def is_replaced(self, _tasks: Mapping[str, Task[..., Any]]) -> bool:
        """Whether its task was replaced: no matter, the job says its name."""
        return False


class OfTask:
    """A schedule of one task, as a decorator declares it; the task may have no app yet.

    Args:
        task: the task.
        timing: when its jobs are due.
        args: the arguments of each job by name.
        options: what each asks for beside what the task says.
        policy: fields of `ScheduleBody`.

    Raises:
        InvalidArguments: the arguments don't fit the signature.
        InvalidOption: an option is out of bounds, or the parts don't go together.
    """

    def __init__(
        self,
        task: Task[..., Any],
        timing: Timing,
        *,
        args: Mapping[str, Any] | None,
        options: ScheduledJobOptions | None,
        policy: Mapping[str, Any],
    ) -> None:
        self.task = task
        self._timing = check_timing(timing)
        self._args = arguments_of(args)
        self._options = options_of(options)
        self._policy = policy
        task.signature.bind((), self._args)
        task.options(**self._options)

    @cached_property
    def body(self) -> ScheduleBody:
        """What is to be stored of it.

        Raises:
            InvalidArguments: an argument is not of its type.
            NotSerializable, PayloadTooLarge: the arguments can't be stored.
        """
        job = self.task.options(**self._options).job(**self._args)
        made = job_body(job, {self.task.name: self.task})
        return _declared(check_body(ScheduleBody(job=made, timing=self._timing, **self._policy)))

    def check(self) -> None:
        """Make the body now, unless types of the task are yet to be defined."""
        if not isinstance(self.task.signature, LateSignature):
            _ = self.body

    def is_replaced(self, tasks: Mapping[str, Task[..., Any]]) -> bool:
        """Whether another task of its name has replaced its task, as at a prompt."""
        return tasks.get(self.task.name) is not self.task


class Declarations:
    """The schedules that an app declares, by their ids.

    Args:
        tasks: the app's, by name.
    """

    def __init__(self, tasks: Mapping[str, Task[..., Any]]) -> None:
        self._tasks = tasks
        self._found: dict[str, Declaration] = {}

    def add_job(
        self, schedule_id: str, job: Job, timing: Timing, policy: Mapping[str, Any]
    ) -> None:
        """Declare a schedule of a job.

        Raises:
            UsageError: the id is taken or not valid, or as for `OfJob`.
        """
        schedule_id = check_schedule_id(schedule_id)
        self._enter(schedule_id, OfJob(job, timing, policy, self._tasks))

    def add_task(self, schedule_id: str | None, schedule: OfTask) -> None:
        """Declare a schedule of a task.

        Args:
            schedule_id: None for the task's name, with a number from the second on.
            schedule: the schedule.

        Raises:
            UsageError: the task is not the app's, or the id is taken.
            InvalidOption: the id is not valid.
        """
        task = schedule.task
        if schedule.is_replaced(self._tasks):
            raise UsageError(
                f"the task {task.name!r} is not of this app: schedule it where it is declared, or "
                "include its blueprint first"
            )
        schedule.check()
        self._forget_replaced()
        if schedule_id is None:
            schedule_id = self._free_id(task.name)
        self._enter(check_schedule_id(schedule_id), schedule)

    def _enter(self, schedule_id: str, declaration: Declaration) -> None:
        # At a prompt a cell is run again.
        if schedule_id in self._found and not hasattr(sys, "ps1"):
            raise UsageError(f"the schedule id {schedule_id!r} is taken: pass another id")
        if len(self._found) >= SCHEDULES_LIMIT:
            raise InvalidOption(
                f"schedule {schedule_id!r} would be one too many: a tenant has {SCHEDULES_LIMIT:,} "
                "at most; let one schedule's task enqueue what several would"
            )
        self._found[schedule_id] = declaration

    def _free_id(self, name: str) -> str:
        number, found = 1, name
        while found in self._found:
            number += 1
            found = f"{name}-{number}"
        return found

    def _forget_replaced(self) -> None:
        for schedule_id, declaration in list(self._found.items()):
            if declaration.is_replaced(self._tasks):
                del self._found[schedule_id]

    def declared(self, app: str) -> Declared:
        """Return them all.

        Raises:
            UsageError: a type that was not defined yet when a task was declared is still not, or
                an argument is not of it.
        """
        self._forget_replaced()
        bodies = {schedule_id: each.body for schedule_id, each in self._found.items()}
        release = _digest(
            f"{schedule_id}\n{bodies[schedule_id].declaration}" for schedule_id in sorted(bodies)
        )
        stamped = {key: replace(body, release=release) for key, body in bodies.items()}
        return Declared(app, release, stamped)


def _declared(body: ScheduleBody) -> ScheduleBody:
    return replace(body, set_by="code", declaration=_digest([encode_body(body).hex()]))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
