"""A terminal that one view has for itself, and gives back as it was. POSIX only, as workers are."""

from __future__ import annotations

import os
import shutil
import sys
import termios
import tty
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import anyio
import click

from headrace.logs.formatting import has_colors

# https://invisible-island.net/xterm/ctlseqs/ctlseqs.html: the other screen, and no cursor.
ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
REST_OF_LINE = "\x1b[K"
REST_OF_SCREEN = "\x1b[J"


class Screen:
    """Standard output as a screen, and standard input as its keys."""

    def __init__(self) -> None:
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before = None if self._keys is None else termios.tcgetattr(self._keys)

    @staticmethod
    def is_possible() -> bool:
        """Whether standard output is a terminal that knows more than lines."""
        return sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")

    @property
    def size(self) -> tuple[int, int]:
        """How many columns and rows there are now."""
        size = shutil.get_terminal_size()
        return size.columns, size.lines

    def enter(self) -> None:
        """Take the terminal."""
        if self._keys is not None:
            tty.setcbreak(self._keys)
        self._write(ENTER)

    def leave(self) -> None:
        """Give it back."""
        self._write(LEAVE)
        if self._keys is not None and self._before is not None:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines and nothing else; what has no room below is left out."""
        _, rows = self.size
        is_coloured = has_colors(sys.stdout, os.environ)
        shown = [line if is_coloured else click.unstyle(line) for line in lines[:rows]]
        # Over what stands there: a screen that is wiped first flickers.
        body = f"{REST_OF_LINE}\r\n".join(shown)
        self._write(f"{HOME}{body}{REST_OF_LINE}{REST_OF_SCREEN}")

    async def key(self) -> str:
        """Wait for what is typed; for ever where nothing can be."""
        typed = b""
        if self._keys is not None:
            await anyio.wait_readable(self._keys)
            typed = os.read(self._keys, 64)
        if not typed:
            await anyio.sleep_forever()
        return typed.decode(errors="replace")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()
