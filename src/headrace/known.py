"""What an app knows of jobs by its tasks: where one waits, and how its result is decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.codec import Codec, read
from headrace.job import DEFAULT_QUEUE, JobRecord, check_name, check_text
from headrace.task import Task
from headrace.task_ref import not_registered


class KnownTasks:
    """An app's tasks, for whoever has a job and looks for what belongs to it.

    Args:
        tasks: the app's, by name; more may come.
        codec: the app's.

    Attributes:
        decode_plain: returns stored bytes as plain data.
    """

    def __init__(self, tasks: Mapping[str, Task[..., Any]], codec: Codec) -> None:
        self._tasks = tasks
        self.decode_plain: Callable[[bytes], Any] = partial(read, codec.decoder(Any))

    def decoder_of(self, task: str) -> Callable[[bytes], Any]:
        """Return the decoder of a task's results; of any other name that of plain data."""
        known = self._tasks.get(task)
        return self.decode_plain if known is None else known.signature.decode_result

    def named_job(
        self, job_id: str, queue: str | None, task: Task[..., Any] | str | None
    ) -> tuple[str, str, Callable[[bytes], Any]]:
        """Return the id, queue and decoder of a job of which these are said, see `App.job`.

        Raises:
            InvalidOption: the id or a name is not valid.
            UnknownTask: the name is not registered.
        """
        job_id = check_text(job_id, what="job id")
        known = None if task is None else self._task(task)
        if queue is None:
            queue = DEFAULT_QUEUE if known is None else known.settings.queue
        decode = self.decode_plain if known is None else known.signature.decode_result
        return job_id, check_name(queue, what="queue"), decode

    def task_of(
        self, record: JobRecord, task: Task[..., Any] | str | None
    ) -> Task[..., Any] | str | None:
        """Return the task that a found job is of: that which is said, else its own, if known."""
        return self._tasks.get(record.task) if task is None else task

    def check_wanted(self, job_id: str, task: Task[..., Any] | str | None) -> str:
        """Return the id of a job that is to be looked for, before anything is.

        Raises:
            InvalidOption: the id or the name is not valid.
            UnknownTask: the name is not registered.
        """
        return self.named_job(job_id, None, task)[0]

    def _task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        if isinstance(task, Task):
            return task
        name = check_text(task, what="task name")
        if name not in self._tasks:
            advice = "leave task= out to get the result as plain data"
            raise not_registered(name, self._tasks, advice)
        return self._tasks[name]
