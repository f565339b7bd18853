"""What leads to connections of this process, and says so to who would send it to another one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from headrace.errors import UsageError

CALL = "send the task, and say its options there"
QUEUE = "send its name, and call app.queue(name) there"
TASK_REF = "send the app and the task's name, and call app.task_ref(name) there"

Made = TypeVar("Made")


def made_again(make: Callable[[str], Made], url: str, process: int) -> Made:
    """Return what was pickled with a storage in the memory of its process, in that process.

    Raises:
        UsageError: this is another one, in whose memory nobody would look for what comes here.
    """
    if os.getpid() != process:
        raise UsageError(
            f"{url} is in the memory of another process, which has sent this: use a storage that "
            "processes share, redis:// or file://"
        )
    return make(url)


class OfOneProcess:
    """A thing that is never pickled, also not as a part of a function that Spark sends.

    A class says by ``instead=`` what to send, and how to come by another such thing there.
    """

    __slots__ = ()

    _instead: ClassVar[str]

    def __init_subclass__(cls, instead: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if instead:
            cls._instead = instead

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            f"{type(self).__name__} is of this process and its connections, and can't be pickled: "
            f"{self._instead}"
        )
