"""What leads to connections of this process, and says so to who would send it to another one."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from headrace.errors import UsageError

CALL = "send the task, and say its options there"
QUEUE = "send its name, and call app.queue(name) there"
TASK_REF = "send the app and the task's name, and call app.task_ref(name) there"


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
