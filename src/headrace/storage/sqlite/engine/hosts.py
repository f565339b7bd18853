"""Whether another host uses the directory: SQLite's locks hold inside one kernel only.

Network filesystems are refused by their type. For those that hide it, such as a folder shared with
a virtual machine, each host keeps a mark in the directory: a file named after the kernel's boot,
touched while a process of the host works. Containers of one host have one kernel, and one mark.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from headrace.errors import StorageRefused
from headrace.storage.sqlite.engine.location import PRIVATE

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")
PREFIX = "host-"
FRESH_S = 60.0
TOUCHED_EVERY_S = 10.0


class HostMark:
    """This host's mark in a directory. Systems that don't tell their boot, and so have none, pass.

    Args:
        directory: the database's.
        mode: of the mark, for those who share the directory.
    """

    def __init__(self, directory: Path, mode: int = PRIVATE) -> None:
        self._mode = mode
        boot = _text(BOOT_ID)
        self._path = directory / f"{PREFIX}{boot}" if boot else None
        self._due_at = 0.0
        self._is_admitted = False

    def check(self) -> None:
        """Keep the mark fresh, and see every ten seconds that no other host has a fresh one.

        Raises:
            StorageRefused: one has.
        """
        if self._path is None or time.monotonic() < self._due_at:
            return
        # What is wrong with the directory itself, SQLite finds and tells better.
        with suppress(OSError):
            self._touch(self._path)
            self._look(self._path)
            self._is_admitted = True
            self._due_at = time.monotonic() + TOUCHED_EVERY_S

    def leave(self) -> None:
        """Remove the mark, so that the directory can move to another host at once."""
        if self._path is not None and self._is_admitted:
            self._is_admitted = False
            self._path.unlink(missing_ok=True)

    def _touch(self, own: Path) -> None:
        try:
            os.utime(own)
        except FileNotFoundError:
            file = os.open(own, os.O_WRONLY | os.O_CREAT, self._mode)
            with open(file, "wb") as mark:
                os.fchmod(file, self._mode)
                mark.write(_identity().encode("utf-8", "surrogateescape"))

    def _look(self, own: Path) -> None:
        # By the clock of the filesystem: those of two hosts may differ.
        now = own.stat().st_mtime
        for other in own.parent.glob(f"{PREFIX}*"):
            if other == own:
                continue
            is_fresh = abs(now - other.stat().st_mtime) < FRESH_S
            identity = _text(other)
            if not is_fresh or identity == _identity():
                # It is long gone, or this machine before it was started again.
                other.unlink(missing_ok=True)
                continue
            if not self._is_admitted:
                own.unlink(missing_ok=True)
            raise StorageRefused(
                f"{own.parent} is in use by another host ({identity.split(' ')[0]}), and SQLite's "
                "locks hold on one only: use Redis for several hosts. If that host is gone, wait a "
                f"minute, or delete {other}"
            )


def _identity() -> str:
    """Return what stays the same when this machine is started again, as far as it can tell."""
    return f"{socket.gethostname()} {_text(MACHINE_ID)}".strip()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return ""
