"""How processes that share a directory wake each other: a datagram socket each.

A commit that others should hear of sends one byte to every socket in the folder, without waiting:
a full one has enough to read, and whose owner is gone is removed.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.forks import keep
from headrace.guard import Guard
from headrace.storage.sqlite.engine.errors import start
from headrace.storage.sqlite.engine.location import PRIVATE

PATH_LIMIT = 100
"""Bytes that fit a socket's address, with some to spare."""


class WakeupSocket:
    """This process's socket, and the byte to all others.

    Args:
        folder: where the sockets are.
        name: this process's.
        mode: of the socket, for those who may write to it; the folder's is made of it.
    """

    def __init__(self, folder: Path, name: str, mode: int = PRIVATE) -> None:
        self._mode = mode
        self._folder = folder
        self._name = name
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.settimeout(0)
        keep(self._sender)
        self._directory: int | None = None
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._socket is not None

    def listen(self, on_wakeup: Callable[[], None]) -> bool:
        """Open the socket; False: it was.

        Args:
            on_wakeup: called in a thread when others have something to tell.
        """
        if self._socket is not None:
            return False
        self._make_folder()
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        keep(receiver)
        thread = threading.Thread(
            target=Guard().keep_thread,
            args=("wakeups", partial(self._read, receiver, on_wakeup)),
            name="headrace-wakeups",
            daemon=True,
        )
        try:
            receiver.bind(self._address(self._name))
            (self._folder / self._name).chmod(self._mode)
            start(thread)
        except BaseException:
            receiver.close()
            with suppress(OSError):
                (self._folder / self._name).unlink()
            raise
        self._socket, self._thread = receiver, thread
        return True

    def _make_folder(self) -> None:
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
            # Whoever may read may look into it, and a group that the directory hands down stays.
            inherited = self._folder.stat().st_mode & 0o7000
            self._folder.chmod(inherited | self._mode | (self._mode & 0o444) >> 2)

    def nudge(self) -> None:
        """Send a byte to every other process that listens."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return  # nobody has listened yet
        for name in names:
            if name == self._name:
                continue
            try:
                self._sender.sendto(b"!", self._address(name))
            except ConnectionRefusedError:
                with suppress(OSError):
                    (self._folder / name).unlink()
            except OSError:
                continue  # it is full, or was just removed

    def close(self) -> None:
        """Close everything."""
        self._is_closing = True
        if self._socket is not None and self._thread is not None:
            with suppress(OSError):
                self._sender.settimeout(None)
                self._sender.sendto(b".", self._address(self._name))
                self._thread.join()
            self._socket.close()
            with suppress(OSError):
                (self._folder / self._name).unlink()
        self._sender.close()
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None

    def _read(self, receiver: socket.socket, on_wakeup: Callable[[], None]) -> None:
        while True:
            try:
                receiver.recv(16)
            except OSError:
                if self._is_closing:
                    return
                raise
            if self._is_closing:
                return
            on_wakeup()

    def _address(self, name: str) -> str:
        path = str(self._folder / name)
        if len(os.fsencode(path)) <= PATH_LIMIT:
            return path
        # Linux takes the way over an open directory, however deep that is.
        if self._directory is None:
            self._directory = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._directory}/{name}"
