"""Exceptions that are hard to describe, and that end an attempt as any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Untold(Exception):
    """One whose text raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Quitting(Exception):
    """One whose text would end the program."""

    def __str__(self) -> str:
        raise SystemExit(9)


class Grasping(Exception):
    """One that has no attribute, and says so by the wrong error."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class Noted(Exception):
    """One whose notes raise."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]  # the base's can be set
        raise ValueError("no notes")


class Demanding(Exception):
    """One that pickle can't make again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


ODD: tuple[Callable[[], BaseException], ...] = (
    Untold,
    Quitting,
    Grasping,
    Noted,
    lambda: Demanding(1, 2),
    lambda: SyntaxError("x", ("f", 1, 1, b"text")),  # type: ignore[arg-type]  # what must not be
    lambda: ExceptionGroup("many", [ValueError("\ud800"), ExceptionGroup("in it", [Untold()])]),
    lambda: SystemExit(3),
    lambda: ValueError("x" * 1_000_000),
)


def odd_error(number: int) -> BaseException:
    """Return one of them."""
    return ODD[number % len(ODD)]()
