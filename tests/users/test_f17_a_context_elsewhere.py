"""F17: a `Context` that would never be filled in is refused when its task is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from headrace import App, Context, UsageError

FIRST = r"write `context: Context` as the first parameter"


class OwnContext(Context[None]):
    """A worker makes none of these."""


async def second(x: int, context: Context) -> None: ...


async def by_name_only(x: int, *, context: Context) -> None: ...


async def nothing_but_a_name(*, context: Context) -> None: ...


async def two(context: Context, other: Context[Any]) -> None: ...


async def optional(context: Context | None, x: int) -> None: ...


async def optional_second(x: int, context: Context[None] | None = None) -> None: ...


async def many(contexts: list[Context]) -> None: ...


async def derived(context: OwnContext, x: int) -> None: ...


def in_a_thread(x: int, context: Context) -> None: ...


async def ctx_of_arq(ctx, x: int) -> None: ...  # type: ignore[no-untyped-def]


def context_without_a_type(context, x: int) -> None: ...  # type: ignore[no-untyped-def]


def self_of_celery(self, x: int) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    "handler",
    [
        second,
        by_name_only,
        nothing_but_a_name,
        two,
        optional,
        optional_second,
        many,
        derived,
        in_a_thread,
    ],
)
def test_f17_a_context_anywhere_else_is_refused(handler: Callable[..., Any]) -> None:
    """F17: the message names the parameter and says what to write."""
    app = App("memory://f17")
    with pytest.raises(UsageError, match=FIRST) as caught:
        app.task(handler)
    assert handler.__name__ in str(caught.value)
    assert not app.tasks


@pytest.mark.parametrize("handler", [ctx_of_arq, context_without_a_type, self_of_celery])
def test_f17_a_context_without_its_type_is_refused(handler: Callable[..., Any]) -> None:
    """F17: arq's `ctx` and the `self` of a bound task would be taken for arguments."""
    app = App("memory://f17")
    with pytest.raises(UsageError, match=r"(ctx|context): Context") as caught:
        app.task(handler)
    assert handler.__name__ in str(caught.value)


def test_f17_a_context_in_its_place_is_filled_in() -> None:
    """F17: however it is spelled, it is no part of the call."""
    app = App("memory://f17")

    async def bare(context: Context, x: int) -> None: ...

    async def before(context: Context[Any], /, x: int) -> None: ...

    def annotated(context: Annotated[Context[int], "mine"], x: int) -> None: ...

    handlers: list[Callable[..., Any]] = [bare, before, annotated]
    for handler in handlers:
        assert app.task(handler).job(x=5).payload == b'{"x":5}'


def test_f17_a_parameter_of_that_name_and_another_type_is_an_argument() -> None:
    """F17: only what has no type may have been meant as the context."""
    app = App("memory://f17")

    async def handler(context: str, ctx: int) -> None: ...

    assert app.task(handler).job("a", 1).payload == b'{"context":"a","ctx":1}'
