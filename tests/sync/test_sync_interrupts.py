"""An interrupt may come between any two places of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from headrace import SyncApp


@contextmanager
def interrupt_at(place: int) -> Iterator[None]:
    """Raise `KeyboardInterrupt` at the nth place of this thread where Python looks for signals.

    It does so where a function begins, and where one that is written in C has returned.
    """
    left = iter(range(place))

    def profile(_frame: FrameType, event: str, _arg: Any) -> None:
        if event in {"call", "c_return"} and next(left, None) is None:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def is_interrupted_at(place: int, call: Callable[[], object]) -> bool:
    """Say whether a call was, or has ended before."""
    try:
        with interrupt_at(place):
            call()
    except KeyboardInterrupt:
        return True
    return False


# One may come in a finalizer, and between making a coroutine and its first step.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("verb", ["enqueue", "enqueue_many", "status"])
def test_an_interrupt_at_any_place_leaves_the_app_in_use(app: SyncApp[None], verb: str) -> None:
    @app.task(queue="q")
    def double(n: int) -> int:
        return 2 * n

    job = double.enqueue(0)
    call: Callable[[], object] = {
        "enqueue": lambda: double.enqueue(1),
        "enqueue_many": lambda: app.enqueue_many([double.job(1)]),
        "status": job.status,
    }[verb]
    places = 0
    while is_interrupted_at(places + 1, call):
        places += 1
        assert job.status().state == "queued"
    assert places > 20
    found = [each.id for each in app.queue("q").jobs("queued")]
    assert job.id in found
    assert len(found) == len(set(found))
