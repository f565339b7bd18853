"""Files of an archive on which nothing more is changed after a while: what a kill leaves."""

from __future__ import annotations

from itertools import count

from headrace.spark.pipeline.files import Files


class Killed(Exception):
    """The disk did nothing more."""


def breaking(after: int) -> type[Files]:
    """Return files on which only so many changes are made."""
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
                raise Killed

    return BreakingFiles
