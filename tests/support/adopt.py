"""Tasks of one app in another, such as one on a test's own storage."""

from __future__ import annotations

from typing import Any

from headrace import App, Task
from headrace.app import sender_of
from headrace.registry import new_task


def adopt_task(app: App[Any], task: Task[..., Any]) -> None:
    """Give an app a task of another one, with its name and settings."""
    app.tasks[task.name] = new_task(
        task.function,
        name=task.name,
        settings=task.settings,
        submitter=sender_of(app),
        codec=app.codec,
    )
