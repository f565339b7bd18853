"""F6: what can't be stored is refused where the task is declared, as argument and as result."""

from __future__ import annotations

import re
import socket
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple, Never, NoReturn, Protocol, TypedDict

import msgspec
import pytest

from headrace import App, UsageError, Worker
from headrace.testing import running
from tests.support.until import patience


class Connection:
    pass


class Greeter(Protocol):
    def greet(self) -> str: ...


class Code(str):
    __slots__ = ()


@dataclass
class Held:
    connection: Connection


class Struct(msgspec.Struct):
    held: list[Held]


class Row(NamedTuple):
    held: Held


class Entry(TypedDict):
    held: Held


REFUSED = [
    (Connection, "Connection has no JSON form: use plain data, a dataclass"),
    (Connection | None, "Connection has no JSON form"),
    (list[Connection], "Connection has no JSON form"),
    (dict[str, tuple[int, Connection]], "Connection has no JSON form"),
    (Held, "Connection has no JSON form"),
    (Struct, "Connection has no JSON form"),
    (Row, "Connection has no JSON form"),
    (Entry, "Connection has no JSON form"),
    (Greeter, "Greeter has no JSON form"),
    (Code, "Code has no JSON form"),
    (Callable, "Callable has no JSON form"),
    (Callable[[int], str], "Callable has no JSON form"),
    (type[int], "type has no JSON form"),
    (complex, "complex has no JSON form"),
    (re.Pattern[str], "Pattern has no JSON form"),
    (Exception, "Exception has no JSON form"),
    (socket.socket, "socket has no JSON form"),
    (deque, "deque has no JSON form"),
    (tzinfo, "tzinfo has no JSON form"),
    (Iterator[int], "what is iterated once can't be stored: use a list"),
    (Generator[int, None, None], "what is iterated once can't be stored: use a list"),
    (AsyncIterator[int], "what is iterated once can't be stored: use a list"),
    (Iterable[int], "Iterable is too little to be read as: use a list"),
    (dict[Path, int], "Path can't be a key"),
    (Connection | int, "may not contain any additional types"),
    (msgspec.msgpack.Ext, "JSON has no such type"),
]


@pytest.mark.parametrize(("annotation", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_f06_as_an_argument_it_is_refused_by_its_name(annotation: Any, words: str) -> None:
    async def handler(fine: int, value: object = None) -> None: ...

    handler.__annotations__["value"] = annotation
    app = App("memory://")
    with pytest.raises(UsageError, match=r"parameter 'value' of .*handler is annotated") as caught:
        app.task(handler)
    assert "can't be stored as JSON: " in str(caught.value)
    assert words in str(caught.value)
    assert app.tasks == {}


@pytest.mark.parametrize(("annotation", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_f06_as_a_result_it_is_refused_before_any_work_is_done(annotation: Any, words: str) -> None:
    def handler() -> object: ...

    handler.__annotations__["return"] = annotation
    with pytest.raises(UsageError, match=r"its return value of .*handler is annotated") as caught:
        App("memory://").task(handler)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "annotation", [NoReturn, Never, Awaitable[int], Coroutine[Any, Any, list[int]], None]
)
def test_f06_what_a_call_of_the_handler_comes_to_is_its_result(annotation: Any) -> None:
    def handler() -> object: ...

    handler.__annotations__["return"] = annotation
    App("memory://").task(handler)


async def test_f06_paths_and_bytes_are_stored(app: App[None]) -> None:
    @app.task(name="pack")
    async def pack(path: Path, content: bytes = b"") -> tuple[Path, bytes]:
        return path / "packed", content

    job = await pack.enqueue(Path("/srv"), b"\xff")
    async with running(Worker(app)):
        assert await job.result(timeout=patience(20)) == (Path("/srv/packed"), b"\xff")


async def test_f06_a_task_that_was_refused_can_be_declared_again() -> None:
    app = App("memory://")

    async def handler(value: object) -> None: ...

    handler.__annotations__["value"] = Connection
    with pytest.raises(UsageError):
        app.task(name="handler")(handler)
    handler.__annotations__["value"] = int
    assert app.task(name="handler")(handler).name == "handler"
