"""What must hold while a database is open: its files are those that were opened, on one host."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from headrace.errors import StorageRefused
from headrace.storage.sqlite.engine.hosts import HostMark
from headrace.storage.sqlite.engine.location import DatabaseLocation

Identity = tuple[int, int]


class Presence:
    """Watches one place; what is in memory is always there.

    Args:
        place: which database.
    """

    def __init__(self, place: DatabaseLocation) -> None:
        self._place = place
        self._host = HostMark(Path(place.name), place.mode) if place.is_file else None
        self._opened: list[Identity | None] | None = None

    def check(self) -> None:
        """See that this process may write: to the files that it opened, and beside no other host.

        What is written to a removed file is lost for all.

        Raises:
            StorageRefused: it may not.
        """
        if self._opened is not None and self._opened != self._files():
            raise StorageRefused(
                f"the database file {self._place.path} was removed or replaced while it was in "
                "use: stop every process that uses it, then start again"
            )
        if self._host is not None:
            self._host.check()

    def opened(self) -> None:
        """Remember the files that were opened just now.

        Raises:
            StorageRefused: another host uses them.
        """
        self._opened = self._files()
        self.check()  # in a directory that was just made there was no place for a mark

    def closed(self) -> None:
        """Say that the files were closed, and will be opened again."""
        self._opened = None

    def ended(self) -> None:
        """Say that the database was closed here."""
        with suppress(OSError):
            # SQLite removes the log with the last connection of all processes.
            if self._host is not None and not self._place.log_path.exists():
                self._host.leave()

    def _files(self) -> list[Identity | None]:
        if not self._place.is_file:
            return []
        return [_identity(path) for path in (self._place.path, self._place.log_path)]


def _identity(path: Path) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
