"""The backend that Django enqueues through, as its setting ``TASKS`` names it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import msgspec
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from headrace.django import results
from headrace.django.api import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from headrace.django.tasks import Tasks
from headrace.errors import HeadraceError, InvalidOption, JobNotFound
from headrace.job import check_name

_known: dict[str, tuple[bytes, Tasks]] = {}
"""The tasks of each alias, with the options that they were made from: tests change settings."""
_lock = threading.Lock()


class TaskBackend(BaseTaskBackend):
    """Enqueues to headrace without an event loop; workers run the tasks.

    Django makes one for each thread; those of an alias share a client. Results are found as long as
    their jobs are kept, see `headrace.Queue.configure` and ``keep`` and ``result_ttl`` among the
    options.

    In ``TASKS``: ``QUEUES`` as Django has it; ``OPTIONS`` are arguments of `headrace.App`, such as
    ``url`` and ``tenant``, and options of all the tasks, see `headrace.TaskDefaults`, such as
    ``max_attempts`` (default 3) and ``timeout``.

    Raises:
        ImproperlyConfigured: an option is not known or not valid.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.tasks: Tasks = _tasks_of(alias, self.options)

    def validate_task(self, task: Task) -> None:
        """See that a task can be run; Django asks when one is declared, and so it is known here."""
        super().validate_task(task)
        self.tasks.add(task)

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Store a job of a task; once this returns, it will run.

        Raises:
            InvalidTask: the task asks for what the backend does not do, or for another queue.
            TypeError, ValueError: an argument is not JSON.
            headrace.StorageError: it was not stored, or its answer was lost.
        """
        self.validate_task(task)
        given: dict[str, Any] = {
            "args": normalize_json(list(args)),
            "kwargs": normalize_json(dict(kwargs)),
        }
        run_at = task.run_after
        if run_at is not None and timezone.is_naive(run_at):
            run_at = timezone.make_aware(run_at)
        ours = self.tasks.of(task)
        handle = ours.options(
            queue=task.queue_name, priority=tier(task.priority), run_at=run_at
        ).enqueue(**given)
        result = TaskResult(
            task=task,
            id=results.result_id(handle.queue, handle.id),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            backend=self.alias,
            errors=[],
            worker_ids=[],
            **given,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return what is kept of a job.

        Raises:
            TaskResultDoesNotExist: there is none with that id, or its task is in no module that
                this program has imported.
        """
        queue, _, job_id = str(result_id).partition(":")
        try:
            status = self.tasks.sync.job(job_id, queue=queue).status()
        except (JobNotFound, InvalidOption):
            raise TaskResultDoesNotExist(result_id) from None
        task = self.tasks.named(status.task)
        if task is None:
            raise TaskResultDoesNotExist(
                f"{result_id}: its task {status.task} is not imported here"
            )
        return results.stored(task, self.alias, status)

    def check(self, **_kwargs: Any) -> Iterable[CheckMessage]:
        """Return what is wrong with the settings, for ``manage.py check``."""
        for name in sorted(self.queues):
            try:
                check_name(name, what="queue")
            except InvalidOption as error:
                yield Error(str(error), id="headrace.E001")


def tier(priority: int) -> int:
    """Return the tier, 0 to 9, of one of Django's priorities, -100 to 100; 5 is that of 0."""
    return min(9, 5 + int(priority / 20))


def _tasks_of(alias: str, options: dict[str, Any]) -> Tasks:
    made_from = repr(sorted(options.items())).encode()
    with _lock:
        known = _known.get(alias)
        if known is None or known[0] != made_from:
            try:
                known = made_from, Tasks(alias, options, TaskBackend)
            except (HeadraceError, TypeError, msgspec.MsgspecError) as error:
                raise ImproperlyConfigured(f"TASKS[{alias!r}]['OPTIONS']: {error}") from None
            _known[alias] = known
        return known[1]
