"""Whether a failed job has another attempt, and how long it waits before."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from headrace.clock import duration_ms
from headrace.errors import InvalidOption, Signal
from headrace.plain import cut, plain_number, plain_seconds, shown

RetryFunction = Callable[[int, BaseException], float]
"""A strategy of your own: (handler errors so far, the last error) to seconds."""


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exponential backoff with full jitter.

    The wait before the n-th retry is drawn evenly from ``min`` to ``min * factor**n`` seconds, and
    is never over ``max``. Drawing from the whole range keeps a crowd of failed jobs from coming
    back at one instant (Brooker, "Exponential Backoff And Jitter", 2015).

    Args:
        min: least wait in seconds, default 1, over 0.
        max: longest wait in seconds, default 300, not under ``min``.
        factor: growth per attempt, default 2, 1 or more.

    Raises:
        InvalidOption: a bound is broken.
    """

    min: float = 1.0
    max: float = 300.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            duration_ms(getattr(self, name), name=f"Retry.{name}", least_ms=1)
            seconds = plain_seconds(getattr(self, name))
            msgspec.structs.force_setattr(self, name, seconds)
        if self.max < self.min:
            raise InvalidOption(f"Retry.max={self.max!r} is under Retry.min={self.min!r}")
        factor = plain_number(self.factor)
        if factor is None or not 1 <= factor <= 100:
            raise InvalidOption(f"Retry.factor={shown(self.factor)} is out of bounds: use 1 to 100")
        msgspec.structs.force_setattr(self, "factor", factor)

    def delay(self, errors: int, draw: Callable[[], float] = random.random) -> float:
        """Return the wait in seconds after ``errors`` handler errors (1 or more)."""
        steps = min(errors, 1000)
        try:
            longest = min(self.max, self.min * self.factor**steps)
        except OverflowError:
            longest = self.max
        return self.min + draw() * (longest - self.min)


ErrorKinds = type[BaseException] | Collection[type[BaseException]]
"""One class of exceptions, or several."""


class RetryRules(msgspec.Struct, frozen=True):
    """Which errors of a handler are worth another attempt, by their classes.

    A class stands for those derived from it too, as in an ``except`` clause; an exception group is
    an error of its own class, whatever is in it.

    Args:
        retry_on: any other error is permanent; None: all are worth one.
        fail_on: these are permanent, whatever ``retry_on`` says.

    Raises:
        InvalidOption: both name the same class.
    """

    retry_on: tuple[type[BaseException], ...] | None = None
    fail_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        for kind in self.retry_on or ():
            if any(kind is other for other in self.fail_on):
                raise InvalidOption(f"{shown(kind)} is in retry_on and in fail_on: say one of them")

    def is_permanent(self, error: BaseException) -> bool:
        """Whether a job is not to run again after this error."""
        if _is_one_of(error, self.fail_on):
            return True
        return self.retry_on is not None and not _is_one_of(error, self.retry_on)


def check_retry(retry: Any) -> Retry:
    """Return what a single call may ask for, or raise `InvalidOption`."""
    # Only the fields of a Retry itself can be stored with a job.
    if type(retry) is not Retry:
        raise InvalidOption(
            f"retry={shown(retry)}: a single call takes a Retry; a strategy function goes to "
            "@app.task"
        )
    return retry


def check_stored_retry(retry: Any) -> Retry:
    """Return what is stored with a job that anybody made, or raise `InvalidOption`."""
    try:
        return msgspec.convert(retry, Retry)
    except msgspec.ValidationError as error:
        raise InvalidOption(f"retry={shown(retry)} can't be read ({cut(str(error))})") from None


def check_strategy(retry: Any) -> Retry | RetryFunction:
    """Return what a task may ask for, or raise `InvalidOption`."""
    is_plain = not isinstance(retry, type) and not inspect.iscoroutinefunction(retry)
    if not (is_plain and isinstance(retry, Retry | Callable)):
        raise InvalidOption(
            f"retry={shown(retry)}: pass a Retry, or a plain function of (errors so far, last "
            "error) to seconds"
        )
    return retry  # type: ignore[no-any-return]


def check_retry_on(kinds: Any) -> tuple[type[BaseException], ...]:
    """Return the classes that ``retry_on`` names, or raise `InvalidOption`."""
    found = _check_kinds(kinds, name="retry_on")
    if not found:
        raise InvalidOption("retry_on is empty, so nothing would be retried: say max_attempts=1")
    return found


def check_fail_on(kinds: Any) -> tuple[type[BaseException], ...]:
    """Return the classes that ``fail_on`` names, or raise `InvalidOption`."""
    return _check_kinds(kinds, name="fail_on")


def _check_kinds(kinds: Any, *, name: str) -> tuple[type[BaseException], ...]:
    several = isinstance(kinds, Collection) and not isinstance(kinds, str | bytes | type)
    found = tuple(kinds) if several else (kinds,)
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidOption(
                f"{name} has {shown(kind)}, which is no class of exceptions: pass one, or a tuple "
                "of them"
            )
        if issubclass(kind, Signal):
            raise InvalidOption(
                f"{name} has {kind.__name__}, by which a handler itself says what becomes of its "
                "job: leave it out"
            )
    return found


def _is_one_of(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    # As an except clause does: neither the class of the error nor a kind's is asked.
    return any(type.__subclasscheck__(kind, type(error)) for kind in kinds)
