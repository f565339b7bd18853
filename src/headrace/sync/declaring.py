"""Where a sync app declares: tasks, schedules and hooks, which are its inner app's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from typing_extensions import TypeVar

from headrace.app import App, parts_of
from headrace.blueprint import Blueprint
from headrace.draft import Preparer
from headrace.hooks import H
from headrace.job import Job
from headrace.middleware import Middleware
from headrace.options import SharedOptions, TaskDefaults, TaskOptions, spelled_out
from headrace.policy import SchedulePolicy
from headrace.registry import Declare, TaskDecorator
from headrace.scheduled import OfTask
from headrace.scheduling import ScheduledTasks
from headrace.sync.decorator import SyncTaskDecorator
from headrace.sync.sender import SyncSender
from headrace.sync.task import SyncTask
from headrace.task import Task
from headrace.timing import Timing
from headrace.twin import AppTwin

S = TypeVar("S", default=None)
Q = TypeVar("Q", bound=Preparer)


class SyncDeclarations(AppTwin[S], ScheduledTasks[SyncTaskDecorator[S]]):
    """The part of a `SyncApp` that declares.

    `task`, `cron` and `every` are those of `App`; what they return blocks where it is called.

    Args:
        app: whose declarations these are.
        sender: what the tasks are sent by.

    Attributes:
        app: the same as an async app: it has the tasks, the URL, the tenant and the hooks.
    """

    def __init__(self, app: App[S], sender: SyncSender) -> None:
        super().__init__(app)
        self._sender = sender

    def _decorator(self, declare: Declare) -> SyncTaskDecorator[S]:
        return SyncTaskDecorator(TaskDecorator(declare, {}), self._wrapped)

    def _wrapped(self, task: Task[..., Any]) -> SyncTask[..., Any]:
        return SyncTask(task, self._sender)

    def _declare(self, function: Callable[..., Any], options: TaskOptions) -> Task[..., Any]:
        return parts_of(self.app).declare(function, options)

    def _schedule(self, schedule_id: str | None, schedule: OfTask) -> None:
        parts_of(self.app).schedule(schedule_id, schedule)

    @spelled_out(SchedulePolicy)
    def schedule(
        self, schedule_id: str, job: Job, timing: Timing, **policy: Unpack[SchedulePolicy]
    ) -> None:
        """Declare a schedule of any job, see `App.schedule`.

        Args:
            schedule_id: unique in the tenant, 1 to 200 bytes without control characters.
            job: made by ``task.job(...)`` or ``task.options(...).job(...)``.
            timing: a `Cron`, `Every` or `At`.
            **policy: see `SchedulePolicy`.
        """
        self.app.schedule(schedule_id, job, timing, **policy)

    @spelled_out(SharedOptions, TaskDefaults)
    def include(
        self, blueprint: Blueprint[Any], *, prefix: str = "", **defaults: Unpack[TaskDefaults]
    ) -> None:
        """Make a blueprint's tasks this app's, see `App.include`; `bind` makes their calls block.

        Args:
            blueprint: included nowhere else.
            prefix: begins the tasks' names.
            **defaults: options of the tasks where these say nothing, see `TaskDefaults`.
        """
        self.app.include(blueprint, prefix=prefix, **defaults)

    def load(self) -> None:
        """Import the modules of ``include``, so that all tasks are known, see `App.load`."""
        self.app.load()

    def before_enqueue(self, function: Q) -> Q:
        """Register a function that is called with each job before it is sent.

        As `App.before_enqueue`. An ``async def`` may be called here too, as long as it waits for
        nothing.
        """
        return self.app.before_enqueue(function)

    def middleware(self, function: Middleware) -> Middleware:
        """Register a function that is called around every handler, see `App.middleware`."""
        return self.app.middleware(function)

    def on_success(self, hook: H) -> H:
        """Register a function that is called when an attempt has completed, see `App`."""
        return self.app.on_success(hook)

    def on_failure(self, hook: H) -> H:
        """Register one that is called when a job is about to become a dead letter, see `App`."""
        return self.app.on_failure(hook)

    def on_retry(self, hook: H) -> H:
        """Register one that is called when another attempt follows, see `App`."""
        return self.app.on_retry(hook)
