"""A child process in a terminal of its own, of any size, that a test reads and types into."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.support.processes import ROOT, dying_with_parent
from tests.support.until import until

WITHOUT = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


def _arm(before: Callable[[], None] | None) -> Callable[[], None]:
    """Return a ``preexec_fn`` that makes standard input the terminal whose keys send signals.

    Where the tests were started in the background, they ignore Ctrl-C, and so would the child.
    """

    def arm() -> None:
        if before is not None:
            before()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    return arm


class Terminal:
    """``headrace`` with some words in a terminal; leaving the ``with`` kills it and closes that.

    Args:
        words: of the command line.
        columns: its width.
        rows: its height.
        env: variables besides those of the tests.
    """

    def __init__(
        self, *words: str, columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None
    ) -> None:
        self._master, inner = pty.openpty()
        os.set_blocking(self._master, False)
        self.resize(columns, rows)
        clean = {name: value for name, value in os.environ.items() if name not in WITHOUT}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *words],
            cwd=ROOT,
            env={**clean, "TERM": "xterm-256color", **(env or {})},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=_arm(dying_with_parent()),
        )
        os.close(inner)
        self._written = b""

    def resize(self, columns: int, rows: int = 24) -> None:
        """Give it another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def text(self) -> str:
        """All that was written so far."""
        with suppress(OSError):  # nothing is there, or nobody writes any more
            while piece := os.read(self._master, 65_536):
                self._written += piece
        return self._written.decode(errors="replace").replace("\r\n", "\n")

    def enter(self, text: str) -> None:
        """Type into it."""
        os.write(self._master, text.encode())

    async def shows(self, text: str, *, after: int = 0, within: float = 15.0) -> None:
        """Wait until it has written a text, behind the first ``after`` characters."""

        def is_shown() -> bool:
            return text in self.text[after:]

        try:
            await until(is_shown, within=within)
        except AssertionError as error:
            error.add_note(f"{text!r} is not in {self.text!r}")
            raise

    async def ended(self, *, within: float = 15.0) -> int:
        """Wait for the end of the process, and return its exit code."""

        def has_ended() -> bool:
            _ = self.text  # who writes into a full terminal waits
            return self.process.poll() is not None

        await until(has_ended, within=within, what="the command has ended")
        return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)
