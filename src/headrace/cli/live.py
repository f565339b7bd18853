"""What looks again and again until it is interrupted: the events that come, the live view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import anyio

from headrace.cli.output import note, one_line
from headrace.errors import ReplyLost, StorageUnavailable


async def look_forever(
    look: Callable[[], Awaitable[None]],
    *,
    every_s: float,
    remark: Callable[[str], None] = note,
) -> NoReturn:
    """Call ``look`` every few seconds, also after a time in which the storage is away.

    Args:
        look: one look.
        every_s: the pause between two of them.
        remark: is told that the storage is away, once, and that it is back.
    """
    is_away = False
    while True:
        try:
            await look()
        except (StorageUnavailable, ReplyLost) as error:
            if not is_away:
                remark(f"The storage is away, and is tried again: {one_line(str(error))}")
            is_away = True
        else:
            if is_away:
                remark("The storage is back.")
            is_away = False
        await anyio.sleep(every_s)
