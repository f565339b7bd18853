"""F36: whatever looks at functions sees in a task its own."""

from __future__ import annotations

import inspect
import pydoc

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from headrace import App, Context, UsageError

app = App("memory://f36")


def greet(context: Context, name: str, *, times: int = 1) -> str:
    """Greet somebody."""
    return f"{name} {context.task} {times}"


async def shout(word: str, times: int = 1) -> str:
    """Say it loudly."""
    return word.upper() * times


def say(word: str, times: int = 1) -> str:
    return word * times


greeting = app.task(greet)
shouting = app.task(queue="loud")(shout)
saying = app.task(say)


@pytest.mark.parametrize(
    ("task", "function"), [(greeting, greet), (shouting, shout), (saying, say)]
)
def test_f36_a_task_has_the_names_and_the_text_of_its_function(
    task: object, function: object
) -> None:
    """F36: `__name__`, `__wrapped__` and the rest of what `functools.wraps` copies."""
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(task, name) == getattr(function, name)
    assert inspect.unwrap(task) is function  # type: ignore[arg-type]  # it is callable


def test_f36_the_signature_is_that_of_a_call() -> None:
    """F36: without the context, which no caller passes."""
    assert str(inspect.signature(greeting)) == "(name: 'str', *, times: 'int' = 1) -> 'str'"
    assert inspect.signature(shouting) == inspect.signature(shout)


def test_f36_help_shows_the_function() -> None:
    """F36: what a notebook's `help(task)` and an editor build on."""
    assert "Say it loudly." in pydoc.plain(pydoc.render_doc(shouting))


def test_f36_a_task_can_be_a_route() -> None:
    """F36: FastAPI reads the parameters, and knows which tasks are to be awaited."""
    api = FastAPI()
    api.get("/shout")(shouting)
    api.get("/say")(saying)
    with TestClient(api) as client:
        assert client.get("/shout", params={"word": "a", "times": 2}).json() == "AA"
        assert client.get("/say", params={"word": "a", "times": 3}).json() == "aaa"


def test_f36_a_dependency_of_fastapi_is_no_default() -> None:
    """F36: it would be passed to the handler as it is."""

    def send(to: str, pool: object = Depends(say)) -> None: ...

    with pytest.raises(UsageError, match=r"'pool'.*Depends.*lifespan"):
        app.task(send)


def test_f36_a_task_is_declared_again_under_another_name() -> None:
    """F36: for a rename, the old name stands for the same function."""
    other = app.task(name="old.name", queue="old")(saying)
    assert other.function is say
    assert other.name == "old.name"
    assert other("x") == "x"
