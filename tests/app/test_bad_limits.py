"""Mistakes about limits, ids, keys and fail tasks are told before anything is sent.

Each is made with an app whose server does not exist: what raises anything but `StorageError` sent
nothing. What it says names the value that is wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import date
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest

from headrace import (
    App,
    Failure,
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


class Bench:
    """An app that can't send anything, and what is tried on it."""

    def __init__(self, app: App[None]) -> None:
        self.app = app

    def declare(self, *limits: Any, name: str = "take", **options: Any) -> Task[..., None]:
        """Declare a task of one argument, with limits."""

        @self.app.task(name=name, limits=limits, **options)
        async def take(customer: Any = None) -> None: ...

        return take

    def call(self, value: Any) -> Any:
        """Make a job whose argument is a key."""
        return self.declare(Limit(by="customer", concurrency=1)).job(value)

    def option(self, **options: Any) -> Any:
        """Ask for something on a call."""
        return self.declare().options(**options)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with unreachable_app() as app:
        yield Bench(app)


async def test_what_is_no_mistake_would_be_sent(bench: Bench) -> None:
    # What makes the other tests of this module mean something.
    limited = bench.declare(*(Limit(f"limit-{n}", by="customer", concurrency=1) for n in range(4)))
    call = limited.options(id="x", on_conflict="update", update_data=False, on_failed="mourn")
    with pytest.raises(StorageUnavailable):
        await call.enqueue("x" * 256)
    with pytest.raises(StorageUnavailable):
        await bench.app.queue("default").set_limit("stripe", concurrency=1_000_000)


def five(bench: Bench) -> Any:
    return bench.declare(*(Limit(f"limit-{n}", concurrency=1) for n in range(5)))


def five_with_a_call(bench: Bench) -> Any:
    task = bench.declare(*(Limit(f"limit-{n}", concurrency=1) for n in range(4)))
    return task.options(limit_keys={"another": "x"})


LIMITS: dict[str, tuple[Mistake, type[UsageError], str]] = {
    "no place": (lambda b: b.declare(Limit(concurrency=0)), InvalidOption, "concurrency=0"),
    "less than none": (lambda b: b.declare(Limit(concurrency=-3)), InvalidOption, "concurrency=-3"),
    "too many": (lambda b: b.declare(Limit(concurrency=10**7)), InvalidOption, "1 to 1,000,000"),
    "a part of a place": (lambda _: Limit(concurrency=0.5), InvalidOption, "concurrency=0.5"),  # type: ignore[arg-type]  # the point
    "no start": (
        lambda _: Limit(rate="0/s"),
        InvalidOption,
        "rate='0/s' is out of bounds: a count",
    ),
    "less than no start": (lambda _: Limit(rate="-1/s"), InvalidOption, "'-1/s' can't be read"),
    "no period": (lambda _: Limit(rate="10"), InvalidOption, "'10' can't be read"),
    "a slash and no period": (lambda _: Limit(rate="10/"), InvalidOption, "'10/' can't be read"),
    "a period of nothing": (lambda _: Limit(rate="10/0s"), InvalidOption, "'10/0s'"),
    "no burst": (lambda _: Limit(rate="1/s", burst=0), InvalidOption, "burst=0"),
    "a burst of nothing": (lambda _: Limit(concurrency=1, burst=2), InvalidOption, "burst=2"),
    "nothing": (lambda _: Limit(by="customer"), InvalidOption, "concurrency=, rate= or both"),
    "five": (five, InvalidOption, "5 limits are too many: a job has 4 at most"),
    "five with those of a call": (five_with_a_call, InvalidOption, "5 limits are too many"),
    "five with turns": (
        lambda b: b.declare(*(Limit(f"l-{n}", rate="1/s") for n in range(4)), fair_by="customer"),
        InvalidOption,
        "turns by fair_by= or fair_key= are one",
    ),
    "two without a name": (
        lambda b: b.declare(Limit(concurrency=1), Limit(rate="1/s")),
        InvalidOption,
        'limit "(the task\'s own)" is there twice: a job meets it once, so say concurrency= and',
    ),
    "a key of turns that is a float": (
        lambda b: b.declare(fair_by="customer").job(1.5),
        InvalidArguments,
        "take: customer=1.5 is no key of a limit or of turns",
    ),
    "no such parameter": (
        lambda b: b.declare(Limit(by="custmer", concurrency=1)),
        InvalidOption,
        "by='custmer' of a limit of take names no parameter of it: use one of customer",
    ),
    "a key that is a float": (lambda b: b.call(1.5), InvalidArguments, "take: customer=1.5"),
    "a key that is a bool": (lambda b: b.call(value=True), InvalidArguments, "take: customer=True"),
    "a key that is a date": (
        lambda b: b.call(date(2026, 1, 1)),
        InvalidArguments,
        "use a string, a whole number or None",
    ),
    "a key that is a list": (lambda b: b.call(["a"]), InvalidArguments, "take: customer=['a']"),
    "a long key": (lambda b: b.call("é" * 129), InvalidArguments, "1 to 256 bytes"),
    "a key of a call that is long": (
        lambda b: b.option(limit_keys={"stripe": "x" * 257}),
        InvalidArguments,
        "limit_keys['stripe']",
    ),
    "a limit whose name is None": (
        lambda b: b.option(limit_keys={None: 1}),
        InvalidOption,
        "limit name None is not valid: use a str of 1 to 600 bytes",
    ),
    "a limit without a name": (
        lambda b: b.option(limit_keys={"": 1}),
        InvalidOption,
        "limit name ''",
    ),
}


def without_update(name: str, value: object) -> Mistake:
    """Return that a call says what goes with updates alone."""
    return lambda bench: bench.option(id="x", **{name: value})


OTHERS: dict[str, tuple[Mistake, type[UsageError], str]] = {
    "an update without an id": (
        lambda b: b.option(on_conflict="update"),
        InvalidOption,
        "on_conflict='update' is said without an id",
    ),
    **{
        f"{name} without an update": (
            without_update(name, value),
            InvalidOption,
            f"{name} is said without an update",
        )
        for name, value in {
            "update_data": False,
            "update_run_at": "if_later",
            "update_retry": False,
            "reset_counts": True,
        }.items()
    },
    "another conflict": (
        lambda b: b.option(id="x", on_conflict="replace"),
        InvalidOption,
        "on_conflict='replace'",
    ),
    "another time": (
        lambda b: b.option(id="x", on_conflict="update", update_run_at="later"),
        InvalidOption,
        "update_run_at='later' is not valid",
    ),
    "its own fail task": (
        lambda b: b.declare(on_failed="take"),
        InvalidOption,
        "on_failed='take' is the task itself",
    ),
    "its own fail task, by a call": (
        lambda b: b.option(on_failed="take"),
        InvalidOption,
        "on_failed='take' is the task itself",
    ),
    "a fail task without a name": (lambda b: b.option(on_failed="a\nb"), InvalidOption, "'a\\nb'"),
    "a key of 257 bytes": (
        lambda b: b.option(idempotency_key="x" * 257),
        InvalidOption,
        "1 to 256 bytes",
    ),
    "an empty key": (lambda b: b.option(idempotency_key=""), InvalidOption, "idempotency_key"),
    "a time without a key": (
        lambda b: b.option(idempotency_ttl=60),
        InvalidOption,
        "idempotency_ttl",
    ),
    "a time under a second": (
        lambda b: b.option(idempotency_key="x", idempotency_ttl=0.5),
        InvalidOption,
        "idempotency_ttl=0.5",
    ),
}


@pytest.mark.parametrize(("mistake", "kind", "said"), LIMITS.values(), ids=LIMITS)
async def test_a_mistake_about_limits(
    bench: Bench, mistake: Mistake, kind: type[UsageError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        mistake(bench)
    assert said in str(caught.value)


class Colour(Enum):
    RED = "red"


class Tier(StrEnum):
    GOLD = "gold"


@pytest.mark.parametrize(
    "kind",
    [float, bool, bytes, UUID, date, Colour, list[str], float | None, Annotated[UUID, "of whom"]],
    ids=str,
)
@pytest.mark.parametrize("option", ["limits", "fair_by"])
async def test_a_parameter_whose_values_are_no_keys_is_refused(
    bench: Bench, kind: Any, option: str
) -> None:
    async def take(customer: Any = None) -> None: ...

    take.__annotations__["customer"] = kind
    said: dict[str, Any] = {"limits": [Limit(by="customer", concurrency=1)], "fair_by": "customer"}
    with pytest.raises(
        InvalidOption, match=r"names a parameter annotated .*annotate it str or int"
    ):
        bench.app.task(name="take", **{option: said[option]})(take)


@pytest.mark.parametrize(
    "kind",
    [str, int, Tier, int | None, str | list[str], Annotated[str, "of whom"], Literal["a", 1], Any],
    ids=str,
)
async def test_a_parameter_that_may_have_a_key_is_taken(bench: Bench, kind: Any) -> None:
    async def take(customer: Any = None) -> None: ...

    take.__annotations__["customer"] = kind
    bench.app.task(name="take", fair_by="customer")(take)


@pytest.mark.parametrize(("mistake", "kind", "said"), OTHERS.values(), ids=OTHERS)
async def test_a_mistake_about_ids_keys_and_fail_tasks(
    bench: Bench, mistake: Mistake, kind: type[UsageError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        mistake(bench)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [{}, {"concurrency": 0}, {"rate": "10"}, {"rate": "1/s", "burst": 0}, {"burst": 1}],
    ids=["nothing", "zero", "no-period", "no-burst", "burst"],
)
async def test_a_mistake_of_an_operator(bench: Bench, said: dict[str, Any]) -> None:
    queue = bench.app.queue("default")
    with pytest.raises(InvalidOption):
        await queue.set_limit("stripe", **said)
    for name in ("", "a\tb", "x" * 601):
        with pytest.raises(InvalidOption, match="limit name"):
            await queue.set_limit(name, concurrency=1)
        with pytest.raises(InvalidOption, match="limit name"):
            await queue.reset_limit(name)
        with pytest.raises(InvalidOption, match="limit name"):
            await queue.gate(name)
    with pytest.raises(InvalidArguments, match="key"):
        await queue.gate("stripe", "x" * 257)
    for bound in ("max_active", "max_length"):
        bad: dict[str, Any] = {bound: -1}
        with pytest.raises(InvalidOption, match=f"{bound}=-1"):
            await queue.configure(**bad)


async def test_a_limit_that_two_tasks_declare_differently_stops_a_worker_before_it_connects(
    bench: Bench,
) -> None:
    bench.declare(Limit("stripe", concurrency=5), name="one")
    bench.declare(Limit("stripe", by="customer", concurrency=5), name="its own key")
    bench.declare(Limit("stripe", concurrency=6), name="elsewhere", queue="other")
    with pytest.raises(StorageUnavailable):
        await Worker(bench.app).run()
    bench.declare(Limit("stripe", rate="5/s"), name="two")
    with pytest.raises(InvalidOption) as caught:
        await Worker(bench.app).run()
    assert str(caught.value) == (
        "one and two both declare the limit 'stripe' of queue 'default', one 5 at once and "
        "one 5/s: share one Limit, or name them apart"
    )


async def test_a_fail_task_that_takes_no_failure_stops_a_worker_before_it_connects(
    bench: Bench,
) -> None:
    @bench.app.task(name="mourn")
    async def mourn(job_id: str, arguments: Any, failure: Failure) -> None: ...

    bench.declare(name="one", on_failed=mourn)
    with pytest.raises(StorageUnavailable):
        await Worker(bench.app).run()

    bench.declare(name="takes one")
    bench.declare(name="two", on_failed="takes one")
    with pytest.raises(InvalidOption, match="takes one"):
        await Worker(bench.app).run()
