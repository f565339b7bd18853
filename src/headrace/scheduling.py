"""Where schedules are declared: by ``@app.cron``, ``@app.every`` and ``app.schedule``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack

from typing_extensions import TypeVar

from headrace.clock import Duration
from headrace.job import Job
from headrace.occurrences import ScheduledJobOptions
from headrace.options import TaskOptions, spelled_out
from headrace.policy import SchedulePolicy, check_schedule_id, policy_fields
from headrace.registry import Declare, TaskDecorator, TaskRegistry
from headrace.scheduled import Declarations, OfTask
from headrace.task import Task
from headrace.timing import Cron, Every, Timing

S = TypeVar("S", default=None)
D = TypeVar("D")


class ScheduledTasks(TaskRegistry[D]):
    """Where tasks and their schedules are declared."""

    @spelled_out(SchedulePolicy)
    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        dst: Literal["shift", "skip"] = "shift",
        seconds: bool = False,
        id: str | None = None,
        args: Mapping[str, Any] | None = None,
        options: ScheduledJobOptions | None = None,
        **policy: Unpack[SchedulePolicy],
    ) -> D:
        """Have a task run by the clock, as in ``@app.cron("0 9 * * 1", tz="Europe/Berlin")``.

        It stands above ``@app.task`` or instead of it, several of them above one task. Workers and
        schedulers of the app store the schedule when they start, and enqueue a job of the task at
        each of its occurrences.

        Args:
            expression: see `Cron`, as for ``tz``, ``dst`` and ``seconds``.
            tz: the time zone by whose clocks it is, default UTC.
            dst: what becomes of a local time that does not exist.
            seconds: whether the expression has six fields, seconds first.
            id: the schedule's id, unique in its tenant, 1 to 200 bytes without control characters.
                Default: the task's name, with ``-2`` and so on from the second on, counted from
                the function upwards.
            args: the arguments of each job by name, held against the function's signature.
            options: what each job asks for beside what the task says, see `ScheduledJobOptions`.
            **policy: see `SchedulePolicy`.

        Raises:
            InvalidArguments: the arguments don't fit the signature, or are not of its types.
            InvalidOption: the expression, the zone, the id or an option is not valid.
            UsageError: the id is taken, the task is not of this app, or it can't be one.
        """
        timing = Cron(expression, tz=tz, dst=dst, seconds=seconds)
        fields = policy_fields(policy, taker="App.cron")
        return self._scheduled(timing, id, args, options, fields)

    @spelled_out(SchedulePolicy)
    def every(
        self,
        interval: Duration,
        *,
        id: str | None = None,
        args: Mapping[str, Any] | None = None,
        options: ScheduledJobOptions | None = None,
        **policy: Unpack[SchedulePolicy],
    ) -> D:
        """Have a task run again and again, as in ``@app.every(30)``; otherwise as `cron`.

        Args:
            interval: seconds or a `timedelta`, 0.1 seconds to ten years, see `Every`.
            id: as for `cron`.
            args: as for `cron`.
            options: as for `cron`.
            **policy: see `SchedulePolicy`.

        Raises:
            InvalidArguments: the arguments don't fit the signature, or are not of its types.
            InvalidOption: the interval, the id or an option is not valid.
            UsageError: the id is taken, the task is not of this app, or it can't be one.
        """
        fields = policy_fields(policy, taker="App.every")
        return self._scheduled(Every(interval), id, args, options, fields)

    def _scheduled(
        self,
        timing: Timing,
        schedule_id: str | None,
        args: Mapping[str, Any] | None,
        options: ScheduledJobOptions | None,
        policy: Mapping[str, Any],
    ) -> D:
        said_id = None if schedule_id is None else check_schedule_id(schedule_id)

        def declare(function: Callable[..., Any], said: TaskOptions) -> Task[..., Any]:
            task = self._declare(function, said) if said else self._task_of(function)
            schedule = OfTask(task, timing, args=args, options=options, policy=policy)
            self._schedule(said_id, schedule)
            return task

        return self._decorator(declare)

    def _task_of(self, function: Callable[..., Any]) -> Task[..., Any]:
        return function if isinstance(function, Task) else self._declare(function, {})

    @abstractmethod
    def _schedule(self, schedule_id: str | None, schedule: OfTask) -> None:
        """Declare a schedule of a task that was declared here."""


class AwaitedTasks(ScheduledTasks[TaskDecorator[S]]):
    """Where tasks are declared whose calls are awaited."""

    def _decorator(self, declare: Declare) -> TaskDecorator[S]:
        return TaskDecorator(declare, {})


class DeclaredSchedules(AwaitedTasks[S]):
    """The part of an `App` that keeps the schedules that it declares.

    Args:
        tasks: the app's, by name.
    """

    def __init__(self, tasks: Mapping[str, Task[..., Any]]) -> None:
        self._declarations = Declarations(tasks)

    def _schedule(self, schedule_id: str | None, schedule: OfTask) -> None:
        self._declarations.add_task(schedule_id, schedule)

    @spelled_out(SchedulePolicy)
    def schedule(
        self, schedule_id: str, job: Job, timing: Timing, **policy: Unpack[SchedulePolicy]
    ) -> None:
        """Declare a schedule of any job, as ``schedule("eu", report.job(region="eu"), Every(60))``.

        It is stored when a worker or scheduler of the app starts, as are those of `cron` and
        `every`, and deleted by the first that knows that the code declares it no longer.
        `schedules` stores one at once.

        Args:
            schedule_id: unique in the tenant, 1 to 200 bytes without control characters.
            job: made by ``task.job(...)`` or ``task.options(...).job(...)``, without ``id``,
                ``delay``, ``run_at`` and an instant for ``expires``.
            timing: a `Cron`, `Every` or `At`. An `At` that has passed when the schedule is first
                stored never comes.
            **policy: see `SchedulePolicy`.

        Raises:
            UsageError: the id is taken, or what is passed is no job.
            InvalidArguments: the arguments are not of the types of the task's signature.
            InvalidOption: the id, the timing or an option is not valid.
        """
        fields = policy_fields(policy, taker="App.schedule")
        self._declarations.add_job(schedule_id, job, timing, fields)
