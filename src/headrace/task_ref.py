"""A task by its name: one of this app's, or one that only its workers know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from headrace.codec import Codec, EncodeArguments
from headrace.errors import InvalidArguments, UnknownTask
from headrace.foreign import OF_TASKS, WithForeignWords
from headrace.handle import JobHandle
from headrace.job import Job, check_name, check_text
from headrace.nearest import nearest
from headrace.one_process import TASK_REF, OfOneProcess
from headrace.options import JobOptions, SharedOptions, spelled_out, task_settings
from headrace.plain import cut, shown
from headrace.task import Submitter, Task, TaskCall
from headrace.template import JobTemplate

MOST_SHOWN = 400
"""Most characters of an app's names that an error lists."""


def not_registered(name: str, tasks: Iterable[str], advice: str) -> UnknownTask:
    """Return the error of a name that no task of the app has, with the one that may be meant."""
    known = cut(", ".join(sorted(tasks)), MOST_SHOWN) or "none"
    meant = nearest(name, tasks)
    perhaps = f"did you mean {shown(meant)}? " if meant else ""
    return UnknownTask(
        f"the task {shown(name)} is not registered in this app ({perhaps}known: {known}): {advice}"
    )


class NamedArguments:
    """The arguments of a task of which only the name is known: whatever is passed, by name.

    Args:
        task: its name.
        codec: for the arguments.
    """

    names: frozenset[str] = frozenset()

    def __init__(self, task: str, codec: Codec) -> None:
        self._task = task
        self.encode: EncodeArguments = codec.arguments_encoder({})

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Return the arguments by name.

        Raises:
            InvalidArguments: some are positional.
        """
        if args:
            raise InvalidArguments(
                f"{self._task}: a task that this app doesn't know takes arguments by name only, "
                f"got {len(args)} positional"
            )
        return kwargs

    def default_of(self, name: str) -> object:
        """Return None: what a task of which only the name is known has for an argument."""
        return None


class TaskRef(
    OfOneProcess,
    WithForeignWords,
    words=OF_TASKS,
    instead=TASK_REF,
):
    """A task by its name; made by `App.task_ref`.

    It is looked up at each call. One that the app has registered by then has its own options, and
    the arguments are held against its signature. Of any other the queue must be said, and its
    arguments are passed by name.
    """

    def __init__(
        self,
        name: str,
        queue: str | None,
        *,
        tasks: Mapping[str, Task[..., Any]],
        submitter: Submitter,
        codec: Codec,
    ) -> None:
        self.name: str = check_text(name, what="task name")
        self.queue: str | None = None if queue is None else check_name(queue, what="queue")
        self._tasks = tasks
        self._submitter = submitter
        self._codec = codec

    def __repr__(self) -> str:
        place = "" if self.queue is None else f" on queue {self.queue!r}"
        return f"<TaskRef {self.name!r}{place}>"

    def job(self, /, *args: Any, **arguments: Any) -> Job[Any]:
        """Return a call as a `Job`, see `TaskCall.job`.

        Raises:
            UnknownTask: it is not registered in this app, and no queue is said.
            InvalidArguments, NotSerializable, PayloadTooLarge: as `TaskCall.job`.
        """
        return self._call({}).job(*args, **arguments)

    async def enqueue(self, /, *args: Any, **arguments: Any) -> JobHandle[Any]:
        """Store a job, see `TaskCall.enqueue`; raises as `job` does, too."""
        return await self._call({}).enqueue(*args, **arguments)

    async def enqueue_and_wait(self, /, *args: Any, **arguments: Any) -> Any:
        """Store a job and return its result, see `TaskCall.enqueue_and_wait`."""
        return await self._call({}).enqueue_and_wait(*args, **arguments)

    @spelled_out(SharedOptions, JobOptions)
    def options(self, **options: Unpack[JobOptions]) -> TaskCall[..., Any]:
        """Return the task with options for one call.

        Args:
            **options: see `JobOptions`.

        Raises:
            UnknownTask: it is not registered in this app, and no queue is said.
            InvalidOption: a value is out of bounds.
        """
        return self._call(options)

    def _call(self, said: JobOptions) -> TaskCall[..., Any]:
        if self.queue is not None and said.get("queue") is None:
            said = {**said, "queue": self.queue}
        task = self._tasks.get(self.name)
        if task is not None:
            return task.options(**said)
        if said.get("queue") is None:
            advice = "for one that only workers know, say its queue="
            raise not_registered(self.name, self._tasks, advice)
        # Workers have told the storage in which lane the task runs.
        template = JobTemplate(self.name, task_settings(), said, lane="")
        return TaskCall(template, NamedArguments(self.name, self._codec), self._submitter)
