"""Tasks without an app, which an app includes later: modules that declare tasks import none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NoReturn, Protocol, Unpack

import msgspec
from typing_extensions import TypeVar

from headrace.codec import Decode, Encode, EncodeArguments
from headrace.errors import InvalidOption, UsageError
from headrace.handle import JobHandle
from headrace.job import Job, check_text
from headrace.options import (
    SharedOptions,
    TaskDefaults,
    TaskOptions,
    over,
    spelled_out,
    task_settings,
)
from headrace.plain import plain_text, shown
from headrace.registry import function_of, new_task, with_executor
from headrace.scheduled import OfTask
from headrace.scheduling import AwaitedTasks
from headrace.task import Task

S = TypeVar("S", default=Any)


class Adopt(Protocol):
    """Takes a blueprint's task in: under a prefix, with what was said of it on the way."""

    def __call__(self, task: Task[..., Any], prefix: str, options: TaskOptions) -> None:
        """Do so."""


class Inclusion(msgspec.Struct, frozen=True):
    """Where a blueprint is included, and what that says of its tasks.

    ``schedule`` takes a schedule in, by the id that it says. ``outer`` is the blueprint that
    includes it, None if the app does.
    """

    adopt: Adopt
    schedule: Callable[[str | None, OfTask], None]
    prefix: str
    defaults: TaskDefaults
    outer: Blueprint[Any] | None


class Blueprint(AwaitedTasks[S]):
    """Tasks that an app includes, for modules that should not import the app.

    `task`, `cron` and `every` declare them as an `App`'s do; `App.include` brings them into an app,
    and so does `include` into another blueprint. From then on they are the app's, and can be
    enqueued. Those that are declared later are included too. A blueprint is included once.

    It knows of no lifespan, so type checkers take a `Context` of any state in it; as in
    ``Blueprint[State]()`` they see to it that it is that of the app which is to include it.

    Args:
        prefix: begins the tasks' names, as in ``mail.``. A task without a name of its own is then
            called by it and the function's name, not by the module's.
        **defaults: options of its tasks where these say nothing, see `TaskDefaults`.

    Raises:
        InvalidOption: an option is out of bounds, or the prefix can't begin a name.
    """

    @spelled_out(SharedOptions, TaskDefaults)
    def __init__(self, *, prefix: str = "", **defaults: Unpack[TaskDefaults]) -> None:
        self._prefix = check_prefix(prefix)
        task_settings(**defaults)
        self._defaults = defaults
        self._declared: list[tuple[Task[..., Any], str, TaskOptions]] = []
        self._schedules: list[tuple[str | None, OfTask]] = []
        self._inclusion: Inclusion | None = None

    def __repr__(self) -> str:
        return f"<Blueprint of {len(self._declared)} tasks>"

    @property
    def tasks(self) -> dict[str, Task[..., Any]]:
        """Its tasks and those of included blueprints, by the names that they have now."""
        return {task.name: task for task, _, _ in self._declared}

    def _declare(self, function: Callable[..., Any], options: TaskOptions) -> Task[..., Any]:
        function = function_of(function)
        own_name = options.get("name")
        if own_name is None:
            own_name = f"{function.__module__}.{function.__qualname__}"
        settings = task_settings(**over(self._defaults, options))
        task = new_task(
            function,
            name=own_name,
            settings=with_executor(settings, function, options.get("executor")),
            submitter=NOWHERE,
            codec=NOWHERE,
            is_early=True,
        )
        self._adopt(task, "", options)
        return task

    @spelled_out(SharedOptions, TaskDefaults)
    def include(
        self, blueprint: Blueprint[Any], *, prefix: str = "", **defaults: Unpack[TaskDefaults]
    ) -> None:
        """Include another blueprint's tasks, see `App.include`; this one's prefix comes first.

        Args:
            blueprint: included nowhere else.
            prefix: begins the tasks' names, before the blueprint's own prefix.
            **defaults: options where neither they nor a blueprint further in say anything.

        Raises:
            UsageError: it is included already, or would include itself.
            InvalidOption: an option is out of bounds, or the prefix can't begin a name.
        """
        if isinstance(blueprint, Blueprint) and self.is_within(blueprint):
            raise UsageError("a blueprint can't include itself, nor one that includes it")
        join(blueprint, self._adopt, self._schedule, prefix, defaults, outer=self)

    def is_within(self, other: Blueprint[Any]) -> bool:
        """Whether it is another blueprint, or included in that, however far in."""
        outer = None if self._inclusion is None else self._inclusion.outer
        return self is other or (outer is not None and outer.is_within(other))

    def _adopt(self, task: Task[..., Any], prefix: str, options: TaskOptions) -> None:
        self._declared.append((task, prefix, options))
        if self._inclusion is not None:
            self._pass_on(self._inclusion, task, prefix, options)

    def _schedule(self, schedule_id: str | None, schedule: OfTask) -> None:
        if all(task is not schedule.task for task, _, _ in self._declared):
            raise UsageError(
                f"the task {schedule.task.name!r} is not of this blueprint: schedule it where it "
                "is declared"
            )
        self._schedules.append((schedule_id, schedule))
        if self._inclusion is not None:
            self._inclusion.schedule(schedule_id, schedule)

    def join(self, inclusion: Inclusion) -> None:
        """Be included; `App.include` is the usual way.

        Raises:
            UsageError: it is included already.
        """
        if self._inclusion is not None:
            raise UsageError(
                "the blueprint is included already: include it once, where the app is made"
            )
        self._inclusion = inclusion
        for task, prefix, options in self._declared:
            self._pass_on(inclusion, task, prefix, options)
        for schedule_id, schedule in self._schedules:
            inclusion.schedule(schedule_id, schedule)

    def _pass_on(
        self, inclusion: Inclusion, task: Task[..., Any], prefix: str, options: TaskOptions
    ) -> None:
        inclusion.adopt(
            task,
            inclusion.prefix + self._prefix + prefix,
            over(self._defaults, inclusion.defaults, options),
        )


def join(
    blueprint: Blueprint[Any],
    adopt: Adopt,
    schedule: Callable[[str | None, OfTask], None],
    prefix: str,
    defaults: TaskDefaults,
    *,
    outer: Blueprint[Any] | None = None,
) -> None:
    """Include a blueprint, in an app or another one, where its tasks and schedules are adopted.

    Raises:
        UsageError: it is none, or is included already.
        InvalidOption: an option is out of bounds, or the prefix can't begin a name.
    """
    if not isinstance(blueprint, Blueprint):
        raise InvalidOption(
            f"{shown(blueprint)} is no Blueprint: modules of tasks go to App(include=[...])"
        )
    task_settings(**defaults)
    blueprint.join(Inclusion(adopt, schedule, check_prefix(prefix), defaults, outer))


def check_prefix(prefix: str) -> str:
    """Return a prefix as plain text if a task's name can begin so, or raise `InvalidOption`."""
    text = plain_text(prefix)
    return text if text == "" else check_text(prefix, what="prefix")


class Nowhere:
    """Stands for the app of a task whose blueprint none includes yet: refuses what takes one."""

    name = "what the app stores"

    # Whether values of some type can be stored, the app will say.

    def encoder(self, _annotation: Any) -> Encode:
        """Return what refuses."""
        return lambda _value, _path: self.refuse()

    def decoder(self, _annotation: Any) -> Decode:
        """Return what refuses."""
        return lambda _data: self.refuse()

    def arguments_encoder(self, _annotations: Mapping[str, Any]) -> EncodeArguments:
        """Return what refuses."""
        return lambda _arguments: self.refuse()

    def arguments_decoder(
        self, _annotations: Mapping[str, Any], _optional: Collection[str]
    ) -> Decode:
        """Return what refuses."""
        return lambda _data: self.refuse()

    def submit(self, _job: Job) -> Awaitable[JobHandle[Any]]:
        """Refuse."""
        self.refuse()

    async def submit_and_wait(self, _job: Job, *, timeout_ms: int | None = None) -> NoReturn:
        """Refuse."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raise `UsageError`."""
        raise UsageError(
            "the task is of a blueprint that no app includes yet: app.include(blueprint) first"
        )


NOWHERE = Nowhere()
