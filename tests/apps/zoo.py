"""Hostile objects: exceptions, results and numbers whose own code does what nobody expects."""

# What lives here breaks the types of what it derives from.
# mypy: disable-error-code="override,misc,assignment"

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from headrace import FailPermanently, RetryLater


class Loud(Exception):
    """What the animals raise that raise something ordinary."""


# Exceptions


class NoAttributes(Exception):
    """Python 3.11 and 3.12 look for ``__notes__`` by ``getattr``."""

    def __getattr__(self, name: str) -> NoReturn:
        raise KeyError(name)


class NoAttributesAtAll(Exception):
    def __getattribute__(self, name: str) -> NoReturn:
        raise SystemExit(7)


class OddNotes(Exception):
    @property
    def __notes__(self) -> NoReturn:
        raise Loud("notes")


class NotesOfNothing(Exception):
    __notes__ = 5


class ExitNotes(Exception):
    @property
    def __notes__(self) -> NoReturn:
        raise SystemExit(7)


class TextRaises(Exception):
    def __str__(self) -> NoReturn:
        raise Loud("text")


class TextExits(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit(7)


class TextInterrupts(Exception):
    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt


class TextCancels(Exception):
    def __str__(self) -> NoReturn:
        raise asyncio.CancelledError


class TextRecurses(Exception):
    def __str__(self) -> str:
        # At the limit a finalizer of anything that is collected fails too, and pytest reports it.
        gc.disable()
        try:
            return str(self)
        finally:
            gc.enable()


class TextRaisesItself(Exception):
    def __str__(self) -> NoReturn:
        raise self


class TextIsNone(Exception):
    def __str__(self) -> Any:
        return None


class Sly(str):
    """A text whose methods are its own."""

    __slots__ = ()

    def __getitem__(self, _key: object) -> NoReturn:
        raise SystemExit(7)

    def __str__(self) -> NoReturn:
        raise SystemExit(7)

    def __format__(self, _spec: str) -> NoReturn:
        raise SystemExit(7)

    def encode(self, *_args: object, **_options: object) -> NoReturn:
        raise SystemExit(7)


class TextIsSly(Exception):
    def __str__(self) -> str:
        return Sly("sly")


class CauseRaises(Exception):
    @property
    def __cause__(self) -> NoReturn:
        raise SystemExit(7)


class CauseNeverEnds(Exception):
    @property
    def __cause__(self) -> BaseException:
        return CauseNeverEnds("deeper")


class ContextIsNoException(Exception):
    @property
    def __context__(self) -> Any:
        return "what was before"


class TracebackRaises(Exception):
    @property
    def __traceback__(self) -> NoReturn:
        raise SystemExit(7)


class ClassRaises(Exception):
    @property
    def __class__(self) -> NoReturn:
        raise SystemExit(7)


class ClaimsToBeFinal(Exception):
    """It is no FailPermanently, whatever it says."""

    @property
    def __class__(self) -> Any:
        return FailPermanently


class ModuleIsANumber(Exception):
    pass


ModuleIsANumber.__module__ = 5


class OddMeta(type):
    def __getattribute__(cls, name: str) -> NoReturn:
        raise SystemExit(7)


class MetaRaises(Exception, metaclass=OddMeta):
    pass


class Group(ExceptionGroup[Exception]):
    @property
    def exceptions(self) -> Any:
        def endless() -> Iterator[Exception]:
            while True:
                yield Loud("inner")

        return endless()


class LaterRaises(RetryLater):
    def __init__(self) -> None:
        Exception.__init__(self, "later")

    @property
    def delay(self) -> NoReturn:
        raise SystemExit(7)


def in_circles() -> Exception:
    one, two = Loud("one"), Loud("two")
    one.__cause__, two.__cause__ = two, one
    return one


def long_chain() -> Exception:
    error = Loud("first")
    for _ in range(5_000):
        later = Loud("later")
        later.__cause__ = error
        error = later
    return error


def deep_group() -> Exception:
    group: Exception = Loud("innermost")
    for _ in range(900):
        group = ExceptionGroup("group", [group])
    return group


EXCEPTIONS: dict[str, Callable[[], BaseException]] = {
    kind.__name__: kind
    for kind in (
        NoAttributes,
        NoAttributesAtAll,
        OddNotes,
        NotesOfNothing,
        ExitNotes,
        TextRaises,
        TextExits,
        TextInterrupts,
        TextCancels,
        TextRecurses,
        TextRaisesItself,
        TextIsNone,
        TextIsSly,
        CauseRaises,
        CauseNeverEnds,
        ContextIsNoException,
        TracebackRaises,
        ClassRaises,
        ClaimsToBeFinal,
        ModuleIsANumber,
        SystemExit,
        KeyboardInterrupt,
        GeneratorExit,
        StopIteration,
        StopAsyncIteration,
        asyncio.CancelledError,
    )
} | {
    "MetaRaises": MetaRaises,
    "Group": lambda: Group("group", [Loud("inner")]),
    "SyntaxOfBytes": lambda: SyntaxError("x", ("f", 1, 1, b"text")),  # type: ignore[arg-type]
    "SyntaxOfNothing": lambda: SyntaxError("x", (None, "1", [], {})),  # type: ignore[arg-type]
    "InCircles": in_circles,
    "LongChain": long_chain,
    "DeepGroup": deep_group,
    "Surrogates": lambda: Loud("\ud800\udfff\x00\x9b"),
    "Huge": lambda: Loud("x" * 20_000_000),
    "Unicode": lambda: UnicodeDecodeError("utf-8", b"x" * 9, 0, 99, "odd"),
}
"""Each is described, counts as a failed attempt, and is retried as often as any other."""


# Results


@dataclass
class Part:
    """One whose field can't be read."""

    field: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "field":
            raise SystemExit(7)
        return super().__getattribute__(name)


class Pairs(Mapping[str, int]):
    """A mapping that can't be walked."""

    def __getitem__(self, _key: str) -> NoReturn:
        raise SystemExit(7)

    def __iter__(self) -> NoReturn:
        raise SystemExit(7)

    def __len__(self) -> int:
        return 1


class ShownBadly(float):
    def __repr__(self) -> NoReturn:
        raise SystemExit(7)


class Unclassed:
    @property
    def __class__(self) -> NoReturn:
        raise SystemExit(7)


class Nothing:
    def __getattribute__(self, name: str) -> NoReturn:
        raise SystemExit(7)


class KeyShownBadly:
    def __repr__(self) -> NoReturn:
        raise KeyboardInterrupt

    def __hash__(self) -> int:
        return 1


class Listed(list[Any]):
    def __iter__(self) -> NoReturn:
        raise SystemExit(7)


def endless_list() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


RESULTS: dict[str, Callable[[], object]] = {
    "Part": Part,
    "Pairs": Pairs,
    "NotANumber": lambda: ShownBadly("nan"),
    "Unclassed": Unclassed,
    "Nothing": Nothing,
    "BadKey": lambda: {KeyShownBadly(): 1},
    "Listed": lambda: Listed([1, object()]),
    "EndlessList": endless_list,
    "Object": object,
    "Surrogate": lambda: "\ud800",
    "Error": NoAttributesAtAll,
    "Type": lambda: MetaRaises,
    "Generator": lambda: (number for number in range(3)),
}
"""None of them can be encoded: the job fails for good."""


# Waits


class Number(int):
    """A number that is whatever is asked."""

    def __mul__(self, _other: object) -> Any:
        return self

    def __le__(self, _other: object) -> bool:
        return True

    def __ge__(self, _other: object) -> bool:
        return True

    def __ceil__(self) -> Any:
        return self


class Seconds(float):
    def __mul__(self, _other: object) -> Any:
        return "soon"

    def __repr__(self) -> NoReturn:
        raise SystemExit(7)


def _raise(error: BaseException) -> NoReturn:
    raise error


RETRIES: dict[str, Callable[[], Any]] = {
    "exits": lambda: _raise(SystemExit(7)),
    "interrupts": lambda: _raise(KeyboardInterrupt()),
    "raises": lambda: _raise(TextExits()),
    "cancels": lambda: _raise(asyncio.CancelledError()),
    "leaves": lambda: _raise(GeneratorExit()),
    "negative": lambda: Number(-5),
    "immense": lambda: Number(10**400),
    "endless": lambda: Seconds("inf"),
    "nan": lambda: ShownBadly("nan"),
    "nothing": Nothing,
    "unclassed": Unclassed,
    "none": lambda: None,
    "true": lambda: True,
}
"""With each of them a failed attempt ends its job for good."""


@dataclass(frozen=True)
class Strategy:
    """One of the above, as a task takes it and a process is passed it."""

    name: str

    def __call__(self, _errors: int, _error: BaseException) -> float:
        wait: float = RETRIES[self.name]()
        return wait


# Arguments


@dataclass
class Fussy:
    """An argument that nobody can make again from what is stored."""

    name: str

    def __post_init__(self) -> None:
        if self.name:
            _raise(EXCEPTIONS[self.name]())
