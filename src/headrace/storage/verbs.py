"""What a verb is, said once beside its signature in the port: does it read, grow, last?

Whoever needs to know it, a storage or what stands before one, looks it up in `base.VERBS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

F = TypeVar("F", bound=Callable[..., Any])


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """What a verb may do.

    Attributes:
        reads: it changes nothing.
        grows: it needs room; only such a verb may raise `StorageFull`.
        is_durable: what it has answered outlives a power loss, as far as the storage promises
            that. Of another's work a power loss may undo the last, which harms nobody.
        repeats: where its answer was lost it is asked again at once, once: it answers the same.
    """

    reads: bool = False
    grows: bool = False
    is_durable: bool = False
    repeats: bool = False


def reads(method: F) -> F:
    """Declare a verb that changes nothing."""
    return _declared(method, Verb(reads=True, repeats=True))


def writes(
    *, grows: bool = False, is_durable: bool = True, repeats: bool = False
) -> Callable[[F], F]:
    """Declare a verb that changes something; see `Verb`."""
    verb = Verb(grows=grows, is_durable=is_durable, repeats=repeats)
    return lambda method: _declared(method, verb)


def _declared(method: F, verb: Verb) -> F:
    vars(method)["verb"] = verb
    return method


def verbs_of(*roles: type) -> dict[str, Verb]:
    """Return what some roles declare, by the names of the verbs."""
    return {
        name: method.verb
        for role in roles
        for name, method in vars(role).items()
        if isinstance(getattr(method, "verb", None), Verb)
    }
