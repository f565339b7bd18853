"""The tasks of one backend: Django's, and under the same names ours, which a worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from headrace.app import App
from headrace.app_options import AppOptions
from headrace.context import Context
from headrace.django import results
from headrace.django.api import Task, TaskContext, TaskResult, task_finished, task_started
from headrace.hooks import AttemptOutcome
from headrace.options import task_settings
from headrace.sync import SyncApp, SyncTask

APP_OPTIONS = frozenset({"url", *AppOptions.__annotations__})

Attempt = tuple[str, str, int]
"""Queue, job and start: a claim is that of several jobs."""


class Tasks:
    """The tasks of an alias, shared by its threads, each of which has a backend of its own.

    Args:
        alias: the backend's.
        options: the setting ``OPTIONS``: arguments of `headrace.App`, and what the tasks have in
            common, such as ``max_attempts`` and ``timeout``, see `headrace.TaskDefaults`.
        sender: sends Django's signals.

    Raises:
        InvalidOption: an option is not valid.
        TypeError: one is not known.
    """

    def __init__(self, alias: str, options: Mapping[str, Any], sender: type) -> None:
        ours = {name: value for name, value in options.items() if name in APP_OPTIONS}
        self.alias = alias
        self.app: App[None] = App(**{"name": f"django-{alias}", **ours})
        self.sync: SyncApp[None] = SyncApp(self.app)
        self._defaults = {n: value for n, value in options.items() if n not in APP_OPTIONS}
        task_settings(**self._defaults)
        self._sender = sender
        self._known: dict[str, tuple[Task, SyncTask[..., Any]]] = {}
        self._running: dict[Attempt, TaskResult] = {}
        for hook in (self.app.on_success, self.app.on_failure):
            hook(self._has_ended)
        self.app.on_retry(self._is_retried)

    def add(self, task: Task) -> None:
        """Have a task, unless it is there: `Task.using` makes others of the same function."""
        known = self._known.get(task.module_path)
        if known is None or known[0].func is not task.func:
            declare = self.sync.task(name=task.module_path, queue=task.queue_name, **self._defaults)
            handler = (
                self._awaiting(task) if iscoroutinefunction(task.func) else self._calling(task)
            )
            self._known[task.module_path] = task, declare(handler)

    def named(self, name: str) -> Task | None:
        """Return Django's task of a name, None if it is not known here."""
        known = self._known.get(name)
        return None if known is None else known[0]

    def of(self, task: Task) -> SyncTask[..., Any]:
        """Return ours of a task of Django's."""
        return self._known[task.module_path][1]

    def _calling(self, task: Task) -> Callable[..., Any]:
        def call(context: Context[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
            given = self._begin(task, context, args, kwargs)
            task_started.send(self._sender, task_result=self._running[_attempt(context)])
            # As Django does around each request: this thread lives on, and its connections may not.
            close_old_connections()
            try:
                return task.func(*given, **kwargs)
            finally:
                close_old_connections()
                if context.cancelled():
                    self._running.pop(_attempt(context), None)

        return _looking_like(call, task)

    def _awaiting(self, task: Task) -> Callable[..., Any]:
        async def call(context: Context[Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
            given = self._begin(task, context, args, kwargs)
            await task_started.asend(self._sender, task_result=self._running[_attempt(context)])
            try:
                return await task.func(*given, **kwargs)
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._running.pop(_attempt(context), None)
                raise
            finally:
                await sync_to_async(close_old_connections)()

        return _looking_like(call, task)

    def _begin(
        self, task: Task, context: Context[Any], args: list[Any], kwargs: dict[str, Any]
    ) -> list[Any]:
        """Note an attempt, and return what its function is given."""
        result = results.started(task, self.alias, context, args, kwargs)
        self._running[_attempt(context)] = result
        return [TaskContext(task_result=result), *args] if task.takes_context else args

    async def _has_ended(self, attempt: AttemptOutcome) -> None:
        result = self._running.pop(_attempt(attempt.context), None)
        if result is not None:
            results.end(result, attempt)
            await task_finished.asend(self._sender, task_result=result)

    def _is_retried(self, attempt: AttemptOutcome) -> None:
        self._running.pop(_attempt(attempt.context), None)


def _attempt(context: Context[Any]) -> Attempt:
    return context.queue, context.job_id, context.start


def _looking_like(handler: Callable[..., Any], task: Task) -> Callable[..., Any]:
    """Return a handler under the name of the task's function, but with arguments of its own."""
    handler.__module__, handler.__qualname__ = task.func.__module__, task.func.__qualname__
    handler.__name__, handler.__doc__ = task.func.__name__, task.func.__doc__
    return handler
