"""Opens the database: which places are taken, how it is set up, and which schema it has."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headrace.errors import StorageRefused
from headrace.storage.sqlite.engine.errors import code_of
from headrace.storage.sqlite.engine.location import PRIVATE, DatabaseLocation

APPLICATION_ID = 0x68656164  # "head"
SCHEMA = 12
"""The schema's number. Each has a script that makes it of the one before: `steps/<number>.sql`.

`schema.sql` makes the whole of an empty database. Processes of the release before should have ended
when a step has renamed or rebuilt a table; they go on with one that has only added something.
"""

LEAST_SQLITE = (3, 37)
BUSY_TIMEOUT_S = 5.0
MOUNTS = Path("/proc/self/mountinfo")
NETWORK_FILESYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph",
        "fuse.davfs2",
        "fuse.glusterfs",
        "fuse.gcsfuse",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    }
)


def open_database(place: DatabaseLocation) -> sqlite3.Connection:
    """Open the database, made or brought to this release's schema.

    Raises:
        StorageRefused: it can't be used, and why.
        sqlite3.Error, OSError: as they are.
    """
    if sqlite3.sqlite_version_info[:2] < LEAST_SQLITE:
        raise StorageRefused(
            f"SQLite {sqlite3.sqlite_version} is too old: headrace needs "
            f"{'.'.join(map(str, LEAST_SQLITE))} at least; install a newer Python or SQLite"
        )
    target = ":memory:"
    if place.is_file:
        check_directory(Path(place.name))
        target = str(place.path)
        _make_private(place.path)
    try:
        return _open(target, place)
    except sqlite3.OperationalError as error:
        if code_of(error) == sqlite3.SQLITE_CANTOPEN:
            _check_descriptors()
        raise


def _open(target: str, place: DatabaseLocation) -> sqlite3.Connection:
    # The thread that uses it changes when a storage in memory is closed and opened again.
    connection = sqlite3.connect(
        target,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        if place.is_file:
            _write_ahead(connection, place)
        connection.execute("PRAGMA temp_store = MEMORY")
        migrate(connection, str(place), steps(), whole=schema())
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make an empty database file for its owner alone; one that is there stays as it is.

    SQLite would make it as the umask says, and gives what it makes beside it the same mode.
    """
    with suppress(FileExistsError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        try:
            os.fchmod(file, PRIVATE)
        finally:
            os.close(file)


def _check_descriptors() -> None:
    """Raise `OSError` if the process has no file descriptor left, which SQLite does not tell."""
    os.close(os.open(os.devnull, os.O_RDONLY))


def check_directory(directory: Path) -> None:
    """See that the directory can hold a database; make it if it is missing.

    Raises:
        StorageRefused: it is no directory, can't be written, or is on a network filesystem.
    """
    if directory.exists() and not directory.is_dir():
        raise StorageRefused(f"{directory} is a file: name a directory, as in file:///var/lib/app")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    kind = filesystem(directory)
    if kind in NETWORK_FILESYSTEMS:
        raise StorageRefused(
            f"{directory} is on a network filesystem ({kind}), where SQLite's locks can't be "
            "trusted: use a local directory, or Redis for several hosts"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StorageRefused(f"{directory} is read-only for this user: make it writable")


def filesystem(directory: Path) -> str:
    """Return the type of the filesystem that holds a directory, "" if the system doesn't tell."""
    device = directory.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}".encode()
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except (FileNotFoundError, PermissionError):
        return ""
    # id, parent, major:minor, root, mount point, options, ... "-", type
    for line in lines:
        mount, _, rest = line.partition(b" - ")
        fields = mount.split()
        if len(fields) > 2 and fields[2] == wanted:
            return rest.split(b" ", 1)[0].decode()
    return ""


def _write_ahead(connection: sqlite3.Connection, place: DatabaseLocation) -> None:
    give_up_at = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            [mode] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # Two that open a new file at once: the busy time-out does not count here.
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
            continue
        break
    if mode != "wal":
        raise StorageRefused(
            f"{place} can't have a write-ahead log (journal mode {mode}): use a local directory"
        )
    connection.execute("PRAGMA wal_autocheckpoint = 2000")
    connection.execute(f"PRAGMA journal_size_limit = {64 * 1024 * 1024}")
    connection.execute("PRAGMA cache_size = -16000")


def _script(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def schema() -> str:
    """Return what makes the newest schema of an empty database."""
    return _script("schema.sql")


def steps() -> list[str]:
    """Return what makes each schema of the one before."""
    return [_script(f"steps/{number}.sql") for number in range(1, SCHEMA + 1)]


def migrate(
    connection: sqlite3.Connection, where: str, scripts: Sequence[str], *, whole: str | None = None
) -> None:
    """Bring a database to the newest schema, in one transaction.

    Args:
        connection: in autocommit mode.
        where: its place, for errors.
        scripts: what makes each version of the one before; an empty database has version 0.
        whole: what makes the newest version of an empty database at once.

    Raises:
        StorageRefused: it is of a newer release, or of another program.
    """
    newest = len(scripts)
    if _version(connection, where, newest) == newest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster.
        version = _version(connection, where, newest)
        for script in [whole] if whole is not None and version == 0 else scripts[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, where: str, newest: int) -> int:
    # In this order, who finds what another process has just made finds its mark too.
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [application] = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StorageRefused(
            f"the database in {where} is of another program: name another directory"
        )
    if version > newest:
        raise StorageRefused(
            f"the database in {where} has schema {version}, this release knows {newest}: "
            "update headrace here too"
        )
    return int(version)


def _statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [part for part in "\n".join(lines).split(";\n") if part.strip()]
