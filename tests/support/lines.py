"""A file to which many processes append whole lines, and which survives their deaths."""

from __future__ import annotations

import os
from pathlib import Path


class Lines:
    """Appends lines of words; those of one call are one write, so no other's come in between.

    Args:
        path: the file, made at the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def write(self, *lines: str) -> None:
        """Append lines; a process killed meanwhile has written all of them or none."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())

    def read(self) -> list[list[str]]:
        """Return the words of each whole line so far."""
        if not self.path.exists():
            return []
        # Of a write that crosses a page a reader may see the first half.
        lines = self.path.read_text().split("\n")[:-1]
        return [line.split(" ") for line in lines]
