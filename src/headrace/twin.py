"""What stands for an app wherever one is asked for, and has it inside."""

from __future__ import annotations

from typing import Generic

from typing_extensions import TypeVar

from headrace.app import App

S = TypeVar("S", default=None)


class AppTwin(Generic[S]):
    """Another front door of an app, as `SyncApp` is.

    Attributes:
        app: the app.
    """

    def __init__(self, app: App[S]) -> None:
        self.app: App[S] = app


def app_of(app: App[S] | AppTwin[S]) -> App[S]:
    """Return the app itself."""
    return app.app if isinstance(app, AppTwin) else app
