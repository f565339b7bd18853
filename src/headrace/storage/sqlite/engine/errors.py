"""Where SQLite's and the system's errors become ours; nowhere else."""

from __future__ import annotations

import errno
import sqlite3
import threading

from headrace.errors import (
    StorageError,
    StorageFault,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from headrace.plain import cut

TEXT_LIMIT = 300
"""Most characters of the system's own words, which may repeat a long path."""

# By primary result code, the low byte of an extended one.
_BY_CODE: dict[int, type[StorageError]] = {
    sqlite3.SQLITE_BUSY: StorageUnavailable,
    sqlite3.SQLITE_LOCKED: StorageUnavailable,
    sqlite3.SQLITE_INTERRUPT: StorageUnavailable,
    sqlite3.SQLITE_NOMEM: StorageUnavailable,
    sqlite3.SQLITE_FULL: StorageFull,
    sqlite3.SQLITE_READONLY: StorageRefused,
    sqlite3.SQLITE_CANTOPEN: StorageRefused,
    sqlite3.SQLITE_NOTADB: StorageRefused,
    sqlite3.SQLITE_PERM: StorageRefused,
    sqlite3.SQLITE_AUTH: StorageRefused,
}

_ADVICE: dict[int, str] = {
    sqlite3.SQLITE_BUSY: "another process held the database for 5 seconds",
    sqlite3.SQLITE_FULL: "the disk is full: let workers drain, or make room",
    sqlite3.SQLITE_READONLY: "make the directory and its files writable for this user",
    sqlite3.SQLITE_CANTOPEN: "make the directory and its files readable and writable for this user",
    sqlite3.SQLITE_NOTADB: "name another directory, or move the file away",
    sqlite3.SQLITE_CORRUPT: "stop every process that uses it and restore it from a backup",
    sqlite3.SQLITE_IOERR: "the disk failed: see the system's log, then start again",
}

_REFUSED_ERRNOS = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EEXIST,
    errno.ENOENT,
}
_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}


def code_of(error: BaseException) -> int:
    """Return SQLite's primary result code, 0 without one."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return sqlite3.SQLITE_FULL  # no room for the index of the log
    return code & 0xFF if isinstance(code, int) else 0


def start(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        StorageUnavailable: the system has none left.
    """
    try:
        thread.start()
    except RuntimeError as error:
        raise StorageUnavailable(f"SQLite needs a thread: {error}") from error


def translate(error: BaseException, where: str) -> StorageError:
    """Return our error for one of SQLite, the system or our own code.

    Args:
        error: what was raised.
        where: the storage, as shown to users.
    """
    if isinstance(error, StorageError):
        return error
    code = code_of(error)
    if code:
        kind = _BY_CODE.get(code, StorageFault)
    elif isinstance(error, OSError):
        kind = _kind_of(error)
    else:
        kind = StorageFault
    advice = _ADVICE.get(code, "")
    text = cut(str(error), TEXT_LIMIT) or type(error).__name__
    return kind(f"SQLite in {cut(where)}: {text}{f' ({advice})' if advice else ''}")


def _kind_of(error: OSError) -> type[StorageError]:
    if error.errno in _REFUSED_ERRNOS:
        return StorageRefused
    return StorageFull if error.errno in _FULL_ERRNOS else StorageUnavailable
