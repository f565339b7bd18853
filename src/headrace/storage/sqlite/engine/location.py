"""From a URL to the place of a database; nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import msgspec

from headrace.errors import InvalidOption
from headrace.job import check_name
from headrace.plain import shown

FILE_NAME = "headrace.sqlite3"
WAKE_FOLDER = "wake"
PRIVATE = 0o600
SYNC = {"full": True, "normal": False}


class DatabaseLocation(msgspec.Struct, frozen=True):
    """Where a database is: in a directory, or in memory under a name.

    Attributes:
        name: the directory, or the name of the one in memory.
        is_file: whether it is a directory.
        is_full_sync: whether every commit reaches the disk before it is answered.
    """

    name: str
    is_file: bool
    is_full_sync: bool = True

    def __str__(self) -> str:
        return self.name if self.is_file else f"memory://{self.name}"

    @property
    def path(self) -> Path:
        """The database file."""
        return Path(self.name) / FILE_NAME

    @property
    def mode(self) -> int:
        """Who may read and write what lies beside the database file: those who may do so there.

        So SQLite makes its own files too. At first it is the owner alone.
        """
        try:
            return self.path.stat().st_mode & 0o666
        except OSError:
            return PRIVATE

    @property
    def log_path(self) -> Path:
        """SQLite's write-ahead log, which is there while anybody has the database open."""
        return Path(self.name) / f"{FILE_NAME}-wal"

    @property
    def wake_folder(self) -> Path:
        """The folder of the sockets by which processes wake each other."""
        return Path(self.name) / WAKE_FOLDER


def place_of(url: str) -> DatabaseLocation:
    """Return the place that a ``memory://`` or ``file:///`` URL names.

    Raises:
        InvalidOption: it names none.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "memory":
        name = check_name(rest, what="the name in memory://") if rest else ""
        return DatabaseLocation(name, is_file=False)
    parts = urlsplit(url)
    path = _path(parts.path)
    if parts.netloc or not path.startswith("/") or path.strip("/") == "" or "\0" in path:
        raise InvalidOption(
            f"the storage URL {shown(url)} is not valid: name an absolute directory after three "
            "slashes, as in file:///var/lib/app"
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    sync = options.pop("sync", "full")
    if options or parts.fragment or sync not in SYNC:
        raise InvalidOption(
            f"the storage URL {shown(url)} is not valid: the only option is sync=full or "
            "sync=normal"
        )
    return DatabaseLocation(os.path.realpath(path), is_file=True, is_full_sync=SYNC[sync])


def _path(quoted: str) -> str:
    # A file's name is bytes, which need not be UTF-8; what can't be text is kept by escapes.
    return os.fsdecode(unquote_to_bytes(quoted.encode("utf-8", "surrogateescape")))
