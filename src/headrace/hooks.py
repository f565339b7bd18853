"""What is called once it is decided what an attempt came to: the types, and checks of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from headrace.context import Context
from headrace.errors import InvalidOption
from headrace.job import ErrorInfo
from headrace.plain import shown


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptOutcome:
    """What an attempt came to, as a hook is told.

    Attributes:
        context: the attempt, as its handler saw it; its ``progress`` and ``emit`` say nothing more.
        outcome: ``completed``, ``retrying`` or ``failed``.
        result: what the handler returned, as who waits for the job gets it; None unless it
            completed.
        error: type, text and traceback of what it raised, wherever it ran; None if it completed.
        reason: why the job becomes a dead letter, one of `FailReason`; empty if it does not.
        retry_in_s: seconds until the job runs again, 0 if it does not.
        run_s: seconds that the attempt took.
    """

    context: Context[Any]
    outcome: str
    result: Any = None
    error: ErrorInfo | None = None
    reason: str = ""
    retry_in_s: float = 0.0
    run_s: float = 0.0


Hook = Callable[[AttemptOutcome], Any]
"""``def`` or ``async def hook(attempt)``, called in the worker; what it returns does not count."""

H = TypeVar("H", bound=Hook)


class Hooks(msgspec.Struct, frozen=True):
    """Who is called when an attempt completes, fails for good, or is to be retried."""

    on_success: tuple[Hook, ...] = ()
    on_failure: tuple[Hook, ...] = ()
    on_retry: tuple[Hook, ...] = ()

    def of(self, name: str) -> tuple[Hook, ...]:
        """Return those of one of the three names."""
        found: tuple[Hook, ...] = getattr(self, name)
        return found

    def with_one(self, name: str, hook: Hook) -> Hooks:
        """Return these and one more.

        Args:
            name: ``on_success``, ``on_failure`` or ``on_retry``.
            hook: what is to be called.

        Raises:
            InvalidOption: it can't be called with one argument.
        """
        return msgspec.structs.replace(
            self, **{name: (*self.of(name), check_hook(hook, name=name))}
        )


def check_hook(hook: Any, *, name: str, given: str = "the attempt") -> Hook:
    """Return a hook, or raise `InvalidOption` if it can't be called with one argument."""
    if not callable(hook) or isinstance(hook, type):
        raise InvalidOption(f"{name}={shown(hook)}: pass a function of one argument, {given}")
    if inspect.isgeneratorfunction(hook) or inspect.isasyncgenfunction(hook):
        raise InvalidOption(f"{name}={shown(hook)} is a generator: pass a plain or async function")
    try:
        inspect.signature(hook).bind(None)
    except TypeError as error:
        raise InvalidOption(
            f"{name}={shown(hook)} is called with one argument, {given}, and does not take it "
            f"so ({error})"
        ) from None
    except ValueError:  # of a builtin nobody can say
        pass
    return hook  # type: ignore[no-any-return]
