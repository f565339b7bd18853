"""Limits on tasks: which gates a call meets, what is refused, and that workers tell of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace import (
    App,
    Blueprint,
    EnqueueOutcome,
    InvalidArguments,
    InvalidOption,
    JobState,
    Limit,
)
from headrace.limit import Gate, Terms, read_gates
from headrace.testing import Kit
from tests.support.met_limits import met


@pytest.fixture
def app() -> App[None]:
    return App("memory://")


def test_a_job_meets_its_tasks_limits_by_the_values_of_its_arguments(app: App[None]) -> None:
    @app.task(
        name="charge",
        limits=[
            Limit(by="customer", concurrency=2, rate="10/min"),
            Limit("stripe", concurrency=50),
            Limit("region", by="region", rate="5/s", burst=1),
        ],
    )
    async def charge(customer: str | int | None, amount: float, *, region: str = "eu") -> None: ...

    assert read_gates(charge.job(42, 9.5).gates) == [
        Gate("charge:customer", "42", Terms(2, 10, 60_000, 10)),
        Gate("stripe", "", Terms(50)),
        Gate("region", "eu", Terms(0, 5, 1_000, 1)),
    ]
    assert met(charge.job(customer="a", amount=1, region="us"))[::2] == [
        ("charge:customer", "a"),
        ("region", "us"),
    ]
    assert met(charge.job(None, 1))[0] == ("charge:customer", "")


def test_a_task_without_a_key_has_one_gate_for_all_its_jobs(app: App[None]) -> None:
    @app.task(name="report", limits=[Limit(concurrency=1)])
    async def report(day: str) -> None: ...

    assert met(report.job("monday")) == met(report.job("friday")) == [("report", "")]


def test_a_call_may_say_keys_itself(app: App[None]) -> None:
    @app.task(name="send", limits=[Limit("customer", by="to", concurrency=1)])
    async def send(to: str | list[str]) -> None: ...

    call = send.options(limit_keys={"customer": 7, "smtp": "mx1"})
    job = call.job(["a", "b"])
    assert read_gates(job.gates) == [Gate("customer", "7", Terms(1)), Gate("smtp", "mx1")]
    with pytest.raises(InvalidArguments, match="send: to="):
        send.job(["a", "b"])


def test_a_job_of_a_task_known_by_name_meets_what_is_said(app: App[None]) -> None:
    ref = app.task_ref("far.away", queue="mail").options(limit_keys={"customer": "x"})
    assert read_gates(ref.job(to="y").gates) == [Gate("customer", "x")]


def test_a_job_without_limits_stays_plain(app: App[None]) -> None:
    @app.task
    async def plain() -> None: ...

    job: Any = plain.job()
    assert (job.gates, job.is_plain) == ("", True)


def test_a_blueprints_limits_are_its_tasks(app: App[None]) -> None:
    shared = Blueprint(limits=[Limit("stripe", concurrency=50)])

    @shared.task(name="charge")
    async def charge() -> None: ...

    app.include(shared)
    assert met(charge.job()) == [("stripe", "")]


@pytest.mark.parametrize(
    "value", [True, 1.5, b"x", UUID(int=1), "x" * 257, "a\nb"], ids=lambda value: str(value)[:9]
)
def test_a_value_that_is_no_key_is_refused(app: App[None], value: Any) -> None:
    @app.task(limits=[Limit(by="customer", concurrency=1)])
    async def take(customer: Any) -> None: ...

    with pytest.raises(InvalidArguments, match="customer"):
        take.job(value)
    with pytest.raises(InvalidArguments, match="limit_keys"):
        take.options(limit_keys={"x": value})


def test_a_limit_by_no_parameter_is_refused(app: App[None]) -> None:
    with pytest.raises(InvalidOption, match="names no parameter of it"):

        @app.task(limits=[Limit(by="customer", concurrency=1)])
        async def take(value: str) -> None: ...


@pytest.mark.parametrize(
    "limits",
    [
        [Limit(f"limit-{n}", concurrency=1) for n in range(5)],
        [Limit("a", concurrency=1), Limit("a", rate="1/s")],
        [Limit(concurrency=1), Limit(rate="1/s")],
        Limit(concurrency=1),
        "stripe",
        ["stripe"],
        7,
    ],
    ids=["five", "twice", "unnamed", "one", "text", "texts", "number"],
)
def test_limits_that_are_no_list_of_different_ones_are_refused(app: App[None], limits: Any) -> None:
    with pytest.raises(InvalidOption):

        @app.task(limits=limits)
        async def take() -> None: ...


@pytest.mark.parametrize("keys", [{"": "x"}, {7: "x"}, ["x"], "x"], ids=str)
def test_keys_that_are_no_mapping_of_names_are_refused(app: App[None], keys: Any) -> None:
    @app.task
    async def take() -> None: ...

    with pytest.raises(InvalidOption):
        take.options(limit_keys=keys)


def test_more_than_four_limits_of_a_call_are_refused(app: App[None]) -> None:
    @app.task(limits=[Limit(f"limit-{n}", concurrency=1) for n in range(3)])
    async def take() -> None: ...

    take.options(limit_keys={"limit-0": "x", "a": "x"})
    with pytest.raises(InvalidOption, match="5 limits are too many"):
        take.options(limit_keys={"a": "x", "b": "x"})


def test_a_limit_that_two_tasks_of_a_queue_declare_differently_is_refused(app: App[None]) -> None:
    @app.task(name="one", limits=[Limit("stripe", concurrency=5)])
    async def one() -> None: ...

    @app.task(name="elsewhere", queue="other", limits=[Limit("stripe", concurrency=6)])
    async def elsewhere() -> None: ...

    app.load()

    @app.task(name="two", limits=[Limit("stripe", concurrency=6)])
    async def two() -> None: ...

    with pytest.raises(InvalidOption, match="one and two both declare the limit 'stripe'"):
        app.load()


async def test_a_job_is_blocked_until_there_is_room(app: App[None]) -> None:
    seen: list[str] = []

    @app.task(name="take", limits=[Limit(by="customer", concurrency=1)])
    async def take(customer: str, what: str) -> None:
        seen.append(what)

    async with Kit(app) as kit:
        first = await take.enqueue("a", "first")
        second = await take.enqueue("a", "second")
        assert (first.outcome, second.outcome) == (EnqueueOutcome.QUEUED, EnqueueOutcome.BLOCKED)
        status = await second.status()
        assert status is not None
        assert status.state is JobState.BLOCKED
        assert (status.limits, status.blocked_by) == ({"take:customer": "a"}, "take:customer")
        await kit.run_until_idle()
        assert seen == ["first", "second"]


async def test_a_rate_holds_jobs_up_until_their_time(app: App[None]) -> None:
    seen: list[int] = []

    @app.task(name="take", limits=[Limit(rate="2/min")])
    async def take(n: int) -> None:
        seen.append(n)

    async with Kit(app) as kit:
        for n in range(5):
            await take.enqueue(n)
        await kit.run_until_idle()
        assert seen == [0, 1]
        await kit.advance(30)
        await kit.run_until_idle()
        assert seen == [0, 1, 2]
        await kit.run_until_idle(advance=True)
        assert seen == [0, 1, 2, 3, 4]
