"""Where an error was raised, read from the text of its traceback."""

from __future__ import annotations

import re

from headrace.description import TRACEBACK_LIMIT
from headrace.job import ErrorInfo

# The head of an error's own traceback: those of its causes come before it, and those of the errors
# in a group are indented behind it.
_HEAD = re.compile(
    r"(?:\A|following exception:\n\n|exception occurred:\n\n)"
    r"(?:Traceback|  \+ Exception Group Traceback) \(most recent call last\):\n"
)
_FRAME = re.compile(r'(?:  \| )?  File "(.+)", line (\d+), in (.+)')
_AMONG_FRAMES = re.compile(r"  \|   |  (?!\|)")


def innermost_frame(error: ErrorInfo) -> str:
    """Return ``file:line in name`` of the last frame of an error's own traceback.

    Not of its causes, nor of the errors in it if it is a group. It is "" where the text shows none:
    an error of ours has no traceback, and of a long one the end alone is kept.
    """
    text = error.traceback[-TRACEBACK_LIMIT:]
    if "\n" in error.message:
        # It may quote another traceback.
        text = text.rpartition(error.message)[0] or text
    start = 0
    for head in _HEAD.finditer(text):
        start = head.end()
    found = None
    for line in text[start:].split("\n"):
        frame = _FRAME.fullmatch(line)
        if frame is not None:
            found = frame
        elif found is not None and not _AMONG_FRAMES.match(line):
            break
    return "" if found is None else f"{found[1]}:{found[2]} in {found[3]}"
