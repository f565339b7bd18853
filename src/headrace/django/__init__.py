"""Django's tasks on headrace: the backend for the setting ``TASKS``, and the apps of its workers.

    TASKS = {"default": {"BACKEND": "headrace.django.TaskBackend"}}

    DJANGO_SETTINGS_MODULE=shop.settings headrace worker headrace.django:app

`app` is the app of the backend ``default`` with the tasks of all installed applications;
``apps.<alias>`` is that of another one. Django 6 has tasks, and earlier ones have them by the
package django-tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.django.backend import TaskBackend

if TYPE_CHECKING:
    from headrace.app import App

    app: App[Any]

__all__ = ["TaskBackend", "app", "apps"]

DEFAULT_ALIAS = "default"


class Apps:
    """The apps of the backends, each an attribute of its alias."""

    def __getattr__(self, alias: str) -> App[Any]:
        """Return the app of a backend with all its tasks; Django is set up if nobody has.

        Raises:
            AppImportError: no backend of headrace has that alias.
        """
        if alias.startswith("_"):
            raise AttributeError(alias)
        from headrace.django.setup import app_of

        return app_of(alias)


apps: Apps = Apps()


def __getattr__(name: str) -> Any:
    if name == "app":
        return getattr(apps, DEFAULT_ALIAS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
