"""Gates at which a process waits until the test opens them, without looking again and again."""

from __future__ import annotations

import os
from pathlib import Path


class Gate:
    """A gate that is closed at first; processes know it by its path.

    Args:
        path: where its pipe is made.
    """

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path: str = str(path)
        self._held: int | None = None

    def open(self) -> None:
        """Let all go on who wait, and who will come."""
        # Opened to read as well, or it would wait for somebody who waits.
        self._held = os.open(self.path, os.O_RDWR)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            os.close(self._held)


def pass_gate(path: str) -> None:
    """Wait until the gate is open."""
    # To open a pipe takes until its other end is open.
    os.close(os.open(path, os.O_RDONLY))
