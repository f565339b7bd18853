"""Files of an archive on which nothing more is changed after a while: what a kill leaves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from headrace.spark.pipeline.files import Files


class Killed(Exception):
    """The disk did nothing more."""


def kill() -> None:
    """End what is on the way."""
    raise Killed


def breaking(after: int, then: Callable[[], None] = kill) -> type[Files]:
    """Return files on which only so many changes are made.

    Args:
        after: how many.
        then: what is done in place of the next one, in which it ends or waits for good.
    """
    left = count(after, -1)

    class BreakingFiles(Files):
        def rename(self, path: str, to: str) -> None:
            self._change()
            super().rename(path, to)

        def delete(self, path: str) -> None:
            self._change()
            super().delete(path)

        def _change(self) -> None:
            if next(left) == 0:
                then()

    return BreakingFiles
