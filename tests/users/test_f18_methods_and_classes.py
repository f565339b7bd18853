"""F18: what is no function of storable arguments is refused when it is declared as a task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from headrace import App, Blueprint, UsageError


@pytest.fixture
def app() -> App[None]:
    return App("memory://f18")


def test_f18_a_method_is_refused(app: App[None]) -> None:
    """F18: its `self` is no argument that could be stored."""
    with pytest.raises(UsageError, match=r"Mailer\.send is a method.*@staticmethod above"):

        class Mailer:
            @app.task
            async def send(self, to: str) -> None: ...

    with pytest.raises(UsageError, match=r"Shop\.make is a method"):

        class Shop:
            @app.task(queue="q")
            def make(cls, to: str) -> None: ...


def test_f18_a_class_is_refused(app: App[None]) -> None:
    """F18: also where calling it would do something."""
    with pytest.raises(UsageError, match="Job is a class: decorate a def or an async def"):

        @app.task
        class Job:
            def __call__(self, x: int) -> None: ...


@pytest.mark.parametrize("wrapper", [staticmethod, classmethod])
def test_f18_the_object_of_a_decorator_for_methods_is_refused(
    app: App[None], wrapper: type[Any]
) -> None:
    """F18: it is no function yet; the other order of the decorators is right."""

    async def send(to: str) -> None: ...

    with pytest.raises(UsageError, match=r"send.*@staticmethod above @app\.task"):
        app.task(wrapper(send))


async def test_f18_a_static_method_in_the_other_order_is_a_task(app: App[None]) -> None:
    """F18: what the message says works."""

    class Mailer:
        @staticmethod
        @app.task
        async def send(to: str) -> str:
            return to

    assert await Mailer.send("a") == "a"
    assert Mailer.send.job("a").payload == b'{"to":"a"}'


async def test_f18_a_bound_method_is_a_function(app: App[None]) -> None:
    """F18: its object is given already."""

    class Mailer:
        async def send(self, to: str) -> str:
            return to

    task = app.task(Mailer().send)
    assert await task("a") == "a"
    assert task.job("a").payload == b'{"to":"a"}'


def test_f18_generators_are_refused(app: App[None]) -> None:
    """F18: what they yield would go nowhere."""

    def pieces() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    for handler in (pieces, later):
        with pytest.raises(UsageError, match=r"is a generator.*context\.emit"):
            app.task(handler)


@pytest.mark.parametrize("thing", [5, "send", object()])
def test_f18_what_can_not_be_called_is_refused(app: App[None], thing: Any) -> None:
    """F18: with what it is."""
    with pytest.raises(UsageError, match="is not a function"):
        app.task(thing)


def test_p10_an_empty_name_is_refused(app: App[None]) -> None:
    """P10: it is no way to ask for the default one."""

    async def send() -> None: ...

    for registry in (app, Blueprint()):
        with pytest.raises(UsageError, match="task name '' is not valid"):
            registry.task(name="")(send)
