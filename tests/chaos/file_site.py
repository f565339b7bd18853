"""A run in a directory: an SQLite database on a filesystem in memory that a fault can fill."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Self

from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.storage import SqliteStorage
from tests.apps.chaos_app import TENANT
from tests.chaos.crew import Crew
from tests.chaos.settings import Settings
from tests.chaos.site import Site
from tests.storage.sqlite.apart import mount_tmpfs, unmount
from tests.support import sqlite_check

SIZE = "size=1g"


class FileSite(Site):
    """A directory of its own; the process has mounts of its own."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        super().__init__(settings, directory)
        self.folder = directory / "disk"
        self.crew = Crew(settings, directory, self.database)

    async def __aenter__(self) -> Self:
        self.folder.mkdir()
        mount_tmpfs(str(self.folder), SIZE)
        await self.start(lambda _name: self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.crew.close()
        unmount(self.folder)

    @property
    def url(self) -> str:
        return f"file://{self.folder}/data"

    @property
    def database(self) -> Path:
        """The database's file."""
        return place_of(f"file://{self.directory}/disk/data").path

    @property
    def wake_folder(self) -> Path:
        """Where the sockets are that wake processes."""
        return place_of(self.url).wake_folder

    @property
    def ballast(self) -> Path:
        """What fills the disk."""
        return self.folder / "ballast"

    def problems(self) -> list[str]:
        storage = SqliteStorage(self.url).for_tenant(TENANT)
        # The rules ask nothing of the time.
        return storage.engine().writer.call(sqlite_check.problems, lambda: 0, timeout_s=60)

    def forget_events(self) -> None:
        with self._connection() as connection:
            connection.execute("DELETE FROM events")
            connection.commit()

    def memory(self) -> int:
        with self._connection() as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def _connection(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self.database, timeout=10))

    async def heal(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def crashes(self) -> list[str]:
        return []
