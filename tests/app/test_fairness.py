"""Fairness on tasks and calls: whose keys take turns, what is refused, and what is shown of it."""

from __future__ import annotations

from typing import Any

import msgspec
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
from headrace.limit import Gate, Terms, gates_text
from headrace.testing import Kit
from tests.support.met_limits import met


@pytest.fixture
def app() -> App[None]:
    return App("memory://")


def test_a_job_takes_turns_by_the_value_of_a_parameter(app: App[None]) -> None:
    @app.task(name="send", fair_by="customer")
    async def send(what: str, *, customer: int | str | None = 7) -> None: ...

    assert met(send.job("x", customer="a")) == [("fair", "a")]
    assert met(send.job("x")) == [("fair", "7")]
    assert met(send.job("x", customer=None)) == [("fair", "")]


def test_turns_come_behind_the_limits_of_a_task(app: App[None]) -> None:
    stripe = Limit("stripe", concurrency=5)

    @app.task(limits=[stripe], fair_by="customer")
    async def charge(customer: int) -> None: ...

    job = charge.options(limit_keys={"other": "x"}).job(1)
    assert met(job) == [("stripe", ""), ("other", "x"), ("fair", "1")]


def test_a_call_may_say_its_key_itself(app: App[None]) -> None:
    @app.task(fair_by="customer")
    async def send(customer: str | list[str]) -> None: ...

    assert met(send.options(fair_key=42).job(["a"])) == [("fair", "42")]
    assert met(send.options(fair_key="").job(["a"])) == [("fair", "")]
    ref = app.task_ref("far.away", queue="mail").options(fair_key="x")
    assert met(ref.job(to="y")) == [("fair", "x")]
    with pytest.raises(InvalidArguments, match="customer="):
        send.job(["a"])


def test_a_blueprints_tasks_share_their_parameter(app: App[None]) -> None:
    shared = Blueprint(fair_by="customer")

    @shared.task(name="charge")
    async def charge(customer: int) -> None: ...

    app.include(shared)
    assert met(charge.job(3)) == [("fair", "3")]


@pytest.mark.parametrize("fair_by", ["nothing", "", 7, b"customer"], ids=str)
def test_what_names_no_parameter_is_refused(app: App[None], fair_by: Any) -> None:
    with pytest.raises(InvalidOption, match="fair_by="):

        @app.task(fair_by=fair_by)
        async def take(customer: str) -> None: ...


@pytest.mark.parametrize("value", [True, 1.5, b"x", "x" * 257, "a\nb"], ids=["1", *"2345"])
def test_a_value_that_is_no_key_is_refused(app: App[None], value: Any) -> None:
    @app.task(fair_by="customer")
    async def take(customer: Any) -> None: ...

    with pytest.raises(InvalidArguments, match="customer"):
        take.job(value)
    with pytest.raises(InvalidArguments, match="fair_key"):
        take.options(fair_key=value)


def test_turns_count_as_one_of_four_limits(app: App[None]) -> None:
    limits = [Limit(f"limit-{n}", concurrency=1) for n in range(4)]
    with pytest.raises(InvalidOption, match="5 limits are too many"):

        @app.task(limits=limits, fair_by="customer")
        async def take(customer: str) -> None: ...


@pytest.mark.parametrize("name", ["fair", "fair:default:5"])
async def test_no_limit_is_called_as_fairness_is(app: App[None], name: str) -> None:
    with pytest.raises(InvalidOption, match="stands for fairness"):
        Limit(name, concurrency=1)
    with pytest.raises(InvalidOption, match="stands for fairness"):

        @app.task(name=name, limits=[Limit(concurrency=1)])
        async def take() -> None: ...

    @app.task(name="other")
    async def other() -> None: ...

    with pytest.raises(InvalidOption, match="stands for fairness"):
        other.options(limit_keys={name: "x"})
    with pytest.raises(InvalidOption, match="stands for fairness"):
        await app.queue("default").set_limit(name, concurrency=1)
    gates = gates_text([Gate(name, "k", Terms(1))])
    with pytest.raises(InvalidOption, match="stands for fairness"):
        await app.enqueue_many([msgspec.structs.replace(other.job(), gates=gates)])


async def test_who_waits_for_a_turn_says_so(app: App[None]) -> None:
    seen: list[tuple[str, int]] = []

    @app.task(name="take", fair_by="customer")
    async def take(customer: str, n: int) -> None:
        seen.append((customer, n))

    async with Kit(app) as kit:
        first = await take.enqueue("a", 1)
        second = await take.enqueue("a", 2)
        third = await take.enqueue("b", 3)
        assert [handle.outcome for handle in (first, second, third)] == [
            EnqueueOutcome.QUEUED,
            EnqueueOutcome.BLOCKED,
            EnqueueOutcome.QUEUED,
        ]
        status = await second.status()
        assert status is not None
        assert (status.state, status.limits) == (JobState.BLOCKED, {})
        assert (status.fair_key, status.blocked_by) == ("a", "fair")
        await kit.run_until_idle()
    assert seen == [("a", 1), ("b", 3), ("a", 2)]


async def test_a_job_that_takes_no_turns_has_no_key(app: App[None]) -> None:
    @app.task(name="take")
    async def take() -> None: ...

    async with Kit(app):
        status = await (await take.enqueue()).status()
        assert status is not None
        assert (status.fair_key, status.blocked_by) == (None, None)
