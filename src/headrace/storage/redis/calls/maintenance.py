"""The arguments and replies of what keeps a queue in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from headrace.job import ErrorInfo
from headrace.storage.incarnations import Beat
from headrace.storage.lines import error_words
from headrace.storage.redis.calls.call import Call, Word, command, read_beat, write_error
from headrace.storage.values import Repaired

PAGE = 500
"""Keys or entries that one step of a walk asks for."""

RESTORED_A_CALL = 200
"""Jobs that one call of ``restore`` looks at: 500 in line of limits would take 10 ms."""

WHOLE_WALK = "1\tf\t\t\t"
"""The cursor with which ``repair`` begins now, and looks at all places."""


def beats(root: str) -> Call[dict[str, Beat]]:
    """Build ``beats``."""
    return command("beats", root, "HGETALL", f"{root}:beats", read=_read_beats)


def _read_beats(flat: Sequence[bytes]) -> dict[str, Beat]:
    # A name that is no text is no incarnation's.
    found = {}
    for name, beat in zip(flat[::2], flat[1::2], strict=True):
        with suppress(UnicodeDecodeError):
            found[name.decode()] = read_beat(beat)
    return found


def reap(root: str, incarnation: str, seen: int, error: ErrorInfo) -> Call[int | None]:
    """Build ``reap``; None: the beat has moved."""
    words: list[Word] = [incarnation, seen, write_error(error), error_words(error)]
    return Call("reap", root, words, lambda reply: None if reply == b"moved" else int(reply))


def forget(root: str, incarnation: str) -> Call[bool]:
    """Build ``forget``."""
    return Call("forget", root, [incarnation], lambda reply: reply == b"ok")


def prune(root: str, cursor: str) -> Call[str]:
    """Build ``prune``."""
    return Call("prune", root, [cursor or "0"], bytes.decode)


def repair(root: str, cursor: str, lanes: Iterable[str]) -> Call[Repaired]:
    """Build ``repair``."""
    return Call(
        "repair", root, [cursor, *lanes], lambda reply: Repaired(reply[0].decode(), int(reply[1]))
    )


def keys_of(root: str, cursor: bytes) -> Call[tuple[bytes, list[bytes]]]:
    """Build a step through the keys of a queue: the next cursor, 0 at the end, and some keys."""
    words: tuple[Word, ...] = ("SCAN", cursor, "MATCH", f"{root}:*", "COUNT", PAGE)
    return command("repair", root, *words, read=tuple)


def entries(root: str, key: bytes, offset: int) -> Call[list[bytes]]:
    """Build a page of a line of ready jobs, counted from its tail."""
    name = "ZRANGE" if key.startswith(f"{root}:ordered:".encode()) else "LRANGE"
    return command("repair", root, name, key, -offset - PAGE, -offset - 1, read=list)


def restore(root: str, since_ms: int, seen: Sequence[tuple[bytes, bytes]]) -> Call[int]:
    """Build ``restore``: ids, with the generations of their ready entries that were seen."""
    return Call("restore", root, [since_ms, *(word for pair in seen for word in pair)], int)
