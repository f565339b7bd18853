"""Sets up a Django project for a worker, which begins with nothing but the name of its settings."""

from __future__ import annotations

from typing import Any

import django
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from headrace.app import App
from headrace.django.api import task_backends
from headrace.django.backend import TaskBackend
from headrace.errors import AppImportError

MODULE = "tasks"
"""In each installed application, the module whose tasks are found."""


def app_of(alias: str) -> App[Any]:
    """Return the app of a backend, with the tasks of all installed applications.

    Raises:
        AppImportError: no backend of headrace has that alias.
    """
    if not apps.ready:
        django.setup()
    if alias not in task_backends.settings:
        known = ", ".join(sorted(task_backends.settings))
        raise AppImportError(f"TASKS has no backend {alias!r}: use one of {known}")
    backend = task_backends[alias]
    if not isinstance(backend, TaskBackend):
        raise AppImportError(
            f"TASKS[{alias!r}] is a {type(backend).__name__} and no headrace.django.TaskBackend"
        )
    autodiscover_modules(MODULE)
    return backend.tasks.app
