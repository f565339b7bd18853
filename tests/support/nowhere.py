"""An app whose server does not exist: what raises anything but `StorageError` sent nothing."""

from __future__ import annotations

from headrace import App
from tests.support.ports import closed_port


def unreachable_app() -> App[None]:
    """Return an app on a port where nobody listens, which gives up after 10 ms."""
    return App(f"redis://127.0.0.1:{closed_port()}", retry_for=0.01)
