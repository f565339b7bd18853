"""Faults of an embedded database: a full disk, a held lock, sockets that are gone."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from pathlib import Path

from tests.chaos.file_site import FileSite
from tests.chaos.strike import Fault, Strike
from tests.crash.crew import passed

LOCKED_S = 2.0
FULL_S = 3.0


def site_of(strike: Strike) -> FileSite:
    """Return the site, which is a directory."""
    assert isinstance(strike.site, FileSite)
    return strike.site


async def fill_disk(strike: Strike) -> None:
    """No room is left for a while."""
    site = site_of(strike)
    strike.on("disk")
    fill(site.ballast)
    await passed(FULL_S)
    site.ballast.unlink(missing_ok=True)


def fill(path: Path) -> None:
    """Write a file until nothing goes in."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


async def hold_lock(strike: Strike) -> None:
    """Another program writes for seconds."""
    database = site_of(strike).database
    strike.on("disk")

    connection = sqlite3.connect(
        database, timeout=10, isolation_level=None, check_same_thread=False
    )
    await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
    await passed(LOCKED_S)
    connection.close()


async def delete_sockets(strike: Strike) -> None:
    """The sockets by which processes wake each other are deleted."""
    strike.on("disk")
    for path in site_of(strike).wake_folder.iterdir():
        path.unlink(missing_ok=True)


DISK_FAULTS = tuple(
    Fault(name, strike, ("file",))
    for name, strike in (
        ("fill-disk", fill_disk),
        ("hold-lock", hold_lock),
        ("delete-sockets", delete_sockets),
    )
)
