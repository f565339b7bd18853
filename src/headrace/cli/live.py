"""What looks again and again until it is interrupted: the events that come, the live view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import anyio

from headrace.cli.output import note, one_line
from headrace.errors import StorageUnavailable


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
        except StorageUnavailable as error:
            if not is_away:
                remark(f"Note: {one_line(str(error))}: trying again until it is back.")
            is_away = True
        else:
            if is_away:
                remark("Note: the storage is back.")
            is_away = False
        await anyio.sleep(every_s)
