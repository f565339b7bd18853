"""How the storages of an app are opened in a test of the asynchronous side."""

from __future__ import annotations

from collections.abc import Callable

from headrace.clients import Opening
from headrace.storage import BlockingStorage, Storage


def opening(storage: Callable[[], Storage]) -> Opening:
    """Return an opening of storages for event loops, and of none for threads."""
    return Opening(storage=storage, blocking=_none)


def _none() -> BlockingStorage:
    raise AssertionError("a storage for threads was opened")
