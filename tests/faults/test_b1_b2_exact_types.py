"""What callers pass becomes a plain value at the door, or is refused for that caller alone."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, tzinfo
from enum import Enum, IntEnum
from typing import Any

import pytest

from headrace import App, InvalidOption, JobState, Retry, Task, UsageError, Worker
from headrace.clock import duration_ms
from headrace.job import check_name
from headrace.plain import shown
from headrace.settings import check_count, check_headers
from headrace.worker.limits import queue_weights
from tests.support.nowhere import unreachable_app


class Q(str, Enum):  # noqa: UP042 (`str` of a StrEnum's member is its value)
    EMAIL = "email"
    SEND = "send"


class Tier(int, Enum):
    HIGH = 9


class Stalls(IntEnum):
    TWO = 2


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Number(int):
    def __str__(self) -> str:
        return "something else"


class Seconds(float):
    pass


class Span(timedelta):
    def total_seconds(self) -> float:
        raise KeyError("total_seconds")


class NoZone(tzinfo):
    def utcoffset(self, _when: datetime | None) -> timedelta | None:
        raise KeyError("utcoffset")

    def dst(self, _when: datetime | None) -> timedelta | None:
        return None

    def tzname(self, _when: datetime | None) -> str | None:
        return None


class Unshowable:
    def __repr__(self) -> str:
        raise KeyError("repr")


def declare(app: App[None]) -> Task[[int], int]:
    @app.task(name="double", queue="email")
    async def double(number: int) -> int:
        return 2 * number

    return double


async def test_a_queue_named_by_an_enums_member_is_the_queue_of_its_value(app: App[None]) -> None:
    double = declare(app)
    odd = await double.options(queue=Q.EMAIL, id=Text("a"), priority=Tier.HIGH).enqueue(1)
    plain = await double.options(queue="email", id="b").enqueue(2)
    assert (type(odd.queue), odd.queue, type(odd.id)) == (str, "email", str)
    assert await app.queues() == ["email"]
    record = await plain.status()
    assert (record.queue, record.state) == ("email", JobState.QUEUED)
    assert (await app.queue(Q.EMAIL).stats()).queued == 2
    assert await app.queue("email").purge("queued", Text("a")) == 1
    assert (await app.job(Text("b"), queue=Q.EMAIL).cancel()) == "cancelled"


async def test_a_tenant_named_by_an_enums_member_is_the_tenant_of_its_value(
    storage_url: str,
) -> None:
    async with App(storage_url, tenant=Q.EMAIL) as odd, App(storage_url, tenant="email") as plain:
        await declare(odd).enqueue(1)
        assert await plain.queues() == ["email"]


async def test_one_callers_odd_value_is_plain_or_fails_him_alone(app: App[None]) -> None:
    double = declare(app)
    # What comes meanwhile shares one call.
    await double.enqueue(0)
    odd: list[dict[str, Any]] = [
        {"priority": Tier.HIGH},
        {"max_stalls": Stalls.TWO},
        {"id": Text("an id")},
        {"delay": Number(1)},
        {"expires": Seconds(60.5)},
        {"timeout": Span(seconds=5)},
        {"max_attempts": Number(7)},
        {"headers": {Text("name"): Q.SEND}},
        {"keep": Seconds(5), "result_ttl": Number(5)},
        {"retry": Retry(min=Seconds(2), max=Number(9))},
    ]
    asked = [double.options(**options).enqueue(1) for options in odd]
    asked += [double.enqueue(1) for _ in range(5)]
    handles = await asyncio.gather(*asked)
    assert {handle.outcome for handle in handles} <= {"queued", "scheduled"}
    assert [(await handle.status()).priority for handle in handles[:2]] == [9, 5]


async def test_jobs_by_name_take_the_plain_value_too(app: App[None]) -> None:
    handle = await app.enqueue(Q.SEND, queue=Q.EMAIL, number=1)
    record = await handle.status()
    assert (record.task, record.queue) == ("send", "email")


async def test_a_declaration_takes_the_plain_value(storage_url: str) -> None:
    async with App(storage_url) as app:

        @app.task(name=Q.SEND, queue=Q.EMAIL, priority=Tier.HIGH, max_stalls=Stalls.TWO)
        async def send() -> None: ...

        values = (send.name, send.settings.queue, send.settings.priority, send.settings.max_stalls)
        assert [type(value) for value in values] == [str, str, int, int]
        assert values == ("send", "email", 9, 2)
        assert (await send.enqueue()).queue == "email"


async def test_a_worker_takes_the_plain_value(app: App[None]) -> None:
    declare(app)
    weights = queue_weights(app, {Q.EMAIL: Number(3)})
    assert weights == {"email": 3}
    assert {type(part) for pair in weights.items() for part in pair} == {str, int}
    assert type(Worker(app, [Q.EMAIL], name=Text("me"), concurrency=Number(3)).name) is str


def test_a_members_text_is_its_value() -> None:
    assert type(check_name(Q.EMAIL, what="queue")) is str
    assert check_name(Q.EMAIL, what="queue") == "email"
    assert type(check_count(Number(3), name="n", most=9)) is int
    assert duration_ms(Span(seconds=5), name="d") == 5000
    assert [type(part) for part in check_headers({Text("a"): Q.SEND}).popitem()] == [str, str]
    retry = Retry(min=Seconds(2), max=timedelta(seconds=9), factor=Number(3))  # type: ignore[arg-type]
    assert [type(part) for part in (retry.min, retry.max, retry.factor)] == [float, float, int]


class OtherRetry(Retry, frozen=True):
    more: int = 1


@pytest.mark.parametrize(
    "options",
    [
        {"priority": True},
        {"priority": 10**5000},
        {"max_stalls": True},
        {"max_attempts": 1.0},
        {"delay": True},
        {"delay": 10**5000},
        {"delay": Unshowable()},
        {"run_at": datetime(2030, 1, 1, tzinfo=NoZone())},
        {"queue": b"email"},
        {"queue": Unshowable()},
        {"queue": ""},
        {"id": 10**5000},
        {"id": Unshowable()},
        {"id": ""},
        {"id": "x" * 100_000},
        {"headers": ""},
        {"headers": {"a": 1}},
        {"headers": {Unshowable(): "a"}},
        {"retry": OtherRetry()},
        {"timeout": "5"},
    ],
    ids=lambda options: "-".join(options),
)
async def test_what_is_no_such_value_is_refused_before_anything_is_sent(
    options: dict[str, Any],
) -> None:
    async with unreachable_app() as nowhere:
        with pytest.raises(InvalidOption) as caught:
            await declare(nowhere).options(**options).enqueue(1)
    assert len(str(caught.value)) < 500


async def test_a_queue_is_steered_by_plain_values_only(app: App[None]) -> None:
    queue = app.queue("email")
    with pytest.raises(InvalidOption, match="limit"):
        await anext(queue.jobs("queued", limit=True))
    with pytest.raises(InvalidOption, match="task name"):
        await anext(queue.jobs("queued", task=""))
    for after in ("", "x", "(1", 5):
        with pytest.raises(InvalidOption, match="stream"):
            await anext(queue.events(after=after))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="not known"):
        await queue.purge(Unshowable(), all_jobs=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="task name"):
        app.job("x", task="")


async def test_what_is_no_list_of_jobs_is_refused(app: App[None]) -> None:
    job = declare(app).job(1)
    for jobs in (job, None, 5):
        with pytest.raises(UsageError, match="iterated"):
            await app.enqueue_many(jobs)  # type: ignore[arg-type]
    for wrong in (None, "job", declare):
        with pytest.raises(UsageError, match="is no job"):
            await app.enqueue_many([wrong])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["x" * 5000, b"x" * 5000, 10**5000, Unshowable(), ["\x1b"] * 999], ids=type
)
def test_an_error_quotes_any_value_in_one_short_line(value: object) -> None:
    text = shown(value)
    assert 0 < len(text) < 150
    assert text.isprintable()
