"""Handlers of every kind for end-to-end tests; the address comes from the environment."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import App, Context, Retry
from tests.support.adopt import adopt_task

app = App()

SOON = Retry(min=0.001, max=0.01)


@dataclass
class Point:
    """An argument and a result with a type of its own."""

    x: int
    y: int


class Awkward(Exception):
    """Can't be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def adopt(other: App[Any]) -> App[Any]:
    """Give another app these tasks."""
    for task in app.tasks.values():
        adopt_task(other, task)
    return other


def note(path: str) -> None:
    """Say in which process the handler runs."""
    draft = Path(f"{path}.draft")
    draft.write_text(str(os.getpid()))
    draft.rename(path)


@app.task(name="mirror", queue="cpu", executor="process")
def mirror(point: Point) -> Point:
    assert type(point) is Point
    return Point(point.y, point.x)


@app.task(name="mirror_in_thread", queue="cpu")
def mirror_in_thread(point: Point) -> Point:
    assert type(point) is Point
    assert threading.current_thread() is not threading.main_thread()
    return Point(point.y, point.x)


@app.task(name="mirror_in_loop", queue="cpu")
async def mirror_in_loop(point: Point) -> Point:
    assert type(point) is Point
    return Point(point.y, point.x)


@app.task(name="fail", queue="cpu", executor="process", max_attempts=2, retry=SOON)
def fail(text: str) -> None:
    raise Awkward(text)


@app.task(name="die", queue="cpu", executor="process", max_stalls=2)
def die() -> None:
    os._exit(3)


@app.task(name="spin", queue="cpu", executor="process", timeout=1, max_attempts=1)
def spin(path: str) -> None:
    note(path)
    while True:
        pass


@app.task(name="wait_for", queue="cpu", executor="process")
def wait_for(path: str, go: str) -> int:
    note(path)
    while not Path(go).exists():
        time.sleep(0.01)
    return os.getpid()


@app.task(name="talk", queue="cpu", executor="process")
def talk(context: Context, count: int) -> int:
    for number in range(count):
        context.emit(number)
        context.progress((number + 1) / count, f"piece {number}")
    return count


@app.task(name="talk_in_thread", queue="cpu")
def talk_in_thread(context: Context, count: int) -> int:
    for number in range(count):
        context.emit(number)
        context.progress((number + 1) / count, f"piece {number}")
    return count


@app.task(name="talk_in_loop", queue="cpu")
async def talk_in_loop(context: Context, count: int) -> int:
    for number in range(count):
        await context.emit(number)
        await context.progress((number + 1) / count, f"piece {number}")
    return count
