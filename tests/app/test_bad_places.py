"""Mistakes about turns, slots, lanes, bursts of calls and strikes are told before anything is sent.

Each is made with an app whose server does not exist: what raises anything but `StorageError` sent
nothing. What it says names the value that is wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from typing import Any

import pytest

from headrace import (
    App,
    InvalidArguments,
    InvalidOption,
    Limit,
    StorageUnavailable,
    Task,
    UsageError,
    Worker,
)
from tests.support.nowhere import unreachable_app

Mistake = Callable[["Bench"], Any]
Case = tuple[Mistake, type[UsageError], str]
FOUR = [Limit(f"limit-{n}", concurrency=1) for n in range(4)]


class Bench:
    """An app that can't send anything, and what is tried on it."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue("default")

    def declare(self, name: str = "take", **options: Any) -> Task[..., None]:
        """Declare a task of one argument."""

        @self.app.task(name=name, **options)
        async def take(customer: Any = None) -> None: ...

        return take

    def option(self, of_task: dict[str, Any] | None = None, **options: Any) -> Any:
        """Ask for something on a call of a task."""
        return self.declare(**(of_task or {})).options(**options)

    async def work(self, *, lanes: Any = None, **of_task: Any) -> None:
        """Start a worker of a task."""
        self.declare(**of_task)
        await Worker(self.app, lanes=lanes, concurrency=10).run()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with unreachable_app() as app:
        yield Bench(app)


def declared(**options: Any) -> Mistake:
    """Return that a task asks for something."""
    return lambda bench: bench.declare(**options)


def asked(of_task: dict[str, Any] | None = None, **options: Any) -> Mistake:
    """Return that a call does."""
    return lambda bench: bench.option(of_task, **options)


def worked(lanes: Any = None, **of_task: Any) -> Mistake:
    """Return that a worker is started."""
    return lambda bench: bench.work(lanes=lanes, **of_task)


def struck(**said: Any) -> Mistake:
    """Return that jobs are struck."""
    return lambda bench: bench.queue.strike(**said)


CASES: dict[str, Case] = {
    # Turns
    "turns by no parameter": (
        declared(fair_by="custmer"),
        InvalidOption,
        "fair_by='custmer' of take names no parameter of it: use one of customer",
    ),
    "turns and four limits": (
        declared(fair_by="customer", limits=FOUR),
        InvalidOption,
        "5 limits are too many: a job has 4 at most",
    ),
    "turns by a float": (asked(fair_key=1.5), InvalidArguments, "fair_key=1.5"),
    "turns by a long key": (asked(fair_key="x" * 257), InvalidArguments, "1 to 256 bytes"),
    "a limit with their name": (
        lambda _: Limit("fair", concurrency=1),
        InvalidOption,
        "'fair' is not valid: it stands for fairness",
    ),
    "a key with their name": (asked(limit_keys={"fair": "x"}), InvalidOption, "fair_key="),
    # Slots
    "no slots": (declared(slots=0), InvalidOption, "slots=0"),
    "slots less than none": (asked(slots=-1), InvalidOption, "slots=-1"),
    "too many slots": (declared(slots=1_001), InvalidOption, "1 to 1,000"),
    "a part of a slot": (asked(slots=0.5), InvalidOption, "slots=0.5"),
    "slots that no worker has": (
        worked(slots=11),
        InvalidOption,
        "slots=11 of the task 'take' is more than the 10 of its lane 'default' here",
    ),
    "slots that a lane has not": (
        worked({"default": 10, "gpu": 2}, needs="gpu", slots=3),
        InvalidOption,
        "slots=3 of the task 'take' is more than the 2 of its lane 'gpu' here",
    ),
    # Lanes
    "a lane with a blank": (declared(needs="g pu"), InvalidOption, "needs 'g pu' is not valid"),
    "a lane without a name": (declared(needs=""), InvalidOption, "needs '' is not valid"),
    "the lane of all": (declared(needs="default"), InvalidOption, "needs='default'"),
    "the lane of processes": (declared(needs="process"), InvalidOption, "executor='process'"),
    "no lanes": (worked({}), InvalidOption, "lanes names none"),
    "lanes that are a text": (worked("gpu"), InvalidOption, "lanes='gpu'"),
    "a worker's lane with a blank": (worked({"g pu": 1}), InvalidOption, "'g pu' is not valid"),
    "a lane of no slots": (worked({"gpu": 0}), InvalidOption, "slots of lane 'gpu'=0"),
    # Bursts of calls
    "less than no debounce": (declared(debounce=-1), InvalidOption, "debounce=-1"),
    "a long throttle": (asked(throttle=10**9), InvalidOption, "throttle=1000000000"),
    "both": (declared(debounce=1, throttle=1), InvalidOption, "say one of them"),
    "a delay of a debounced call": (asked({"debounce": 1}, delay=2), InvalidOption, "delay=2"),
    "an update by a debounced call": (
        asked({"debounce": 1}, id="x", on_conflict="update"),
        InvalidOption,
        "on_conflict='update' makes no sense with debounce=1",
    ),
    "a key of a throttled call": (
        asked({"throttle": 1}, idempotency_key="x"),
        InvalidOption,
        "idempotency_key='x' makes no sense with throttle=1",
    ),
    # What operators say
    "a strike of all": (struck(), InvalidOption, "to stop all jobs of a queue, pause it"),
    "another action": (struck(task="x", action="kill"), InvalidOption, "action='kill'"),
    "a strike by a list": (struck(where={"a": [1]}), InvalidOption, "where['a']=[1]"),
    "a strike by no number": (struck(where={"a": float("nan")}), InvalidOption, "where['a']=nan"),
    "a strike by too much": (
        struck(where={str(n): n for n in range(9)}),
        InvalidOption,
        "9 conditions are too many: a strike has 8 at most",
    ),
    "a strike of no task": (struck(task="a\nb"), InvalidOption, "task name 'a\\nb'"),
    "a lift of nothing": (lambda b: b.queue.lift(""), InvalidOption, "strike ''"),
    "a pause of no task": (lambda b: b.queue.pause(task=""), InvalidOption, "task name ''"),
    "a weight below 0": (lambda b: b.queue.configure(weight=-1), InvalidOption, "weight=-1"),
    "a cancel of nothing": (lambda b: b.queue.cancel(), InvalidOption, "say which jobs"),
}


@pytest.mark.parametrize(("mistake", "kind", "said"), CASES.values(), ids=CASES)
async def test_a_mistake(bench: Bench, mistake: Mistake, kind: type[UsageError], said: str) -> None:
    async def make() -> None:
        made = mistake(bench)
        if isawaitable(made):
            await made

    with pytest.raises(kind) as caught:
        await make()
    assert said in str(caught.value)


async def test_what_is_no_mistake_would_be_sent(bench: Bench) -> None:
    task = bench.declare(fair_by="customer", limits=FOUR[:3], slots=10)
    with pytest.raises(StorageUnavailable):
        await task.options(fair_key="x" * 256).enqueue()
    with pytest.raises(StorageUnavailable):
        await bench.queue.strike(task="take", where={str(n): n for n in range(8)})
    with pytest.raises(StorageUnavailable):
        await bench.work(name="gpu", lanes={"default": 10, "gpu": 2}, needs="gpu", slots=2)


async def test_a_debounced_call_is_no_job_of_a_bulk_write() -> None:
    app: App[None] = App("memory://")

    @app.task(name="take", debounce=1)
    async def take() -> None: ...

    async with app, app.bulk("w") as bulk:
        with pytest.raises(UsageError, match="take"):
            await bulk.add(take.job())
