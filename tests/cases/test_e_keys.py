"""Large numbers and strange texts as arguments and as keys of limits, and many jobs of a key."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import (
    App,
    EnqueueOutcome,
    FailPermanently,
    Failure,
    InvalidArguments,
    InvalidOption,
    JobState,
    Limit,
    RetryLater,
    Task,
    Worker,
)
from headrace.testing import running
from tests.support.jobs import drained, reached
from tests.support.until import patience, until

QUEUE = "mail"
NUMBERS = [130775545883395173, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, -0.0]
TEXTS = ["123", "00123", "a:b", "a:exp", "{x}", "*", "../x", "é", "e\u0301", "😀", " a", "a "]
REFUSED = ["a\nb", "a\x00b", "a\tb", "x" * 257, "x" * 10_000, "\ud800"]


class Site:
    """A task whose jobs come by many routes, and the arguments that its handlers were given."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue(QUEUE)
        self.ran: dict[str, list[Any]] = {}
        self.is_mended = False

        @app.task(name="mourn", queue=QUEUE)
        async def mourn(job_id: str, arguments: Any, failure: Failure) -> None:
            self.ran[f"{job_id} mourned"] = arguments["values"]

        @app.task(
            name="send",
            queue=QUEUE,
            max_attempts=2,
            on_failed=mourn,
            limits=[Limit("route", by="route", concurrency=1)],
        )
        async def send(route: str, values: list[Any]) -> None:
            if route == "retried" and route not in self.ran:
                self.ran[route] = []
                raise RetryLater(0.01)
            if route in ("failed", "redriven") and not self.is_mended:
                raise FailPermanently("not now")
            self.ran[route] = values

        self.send: Task[[str, list[Any]], None] = send


@pytest.fixture
def site(app: App[None]) -> Site:
    return Site(app)


async def test_numbers_arrive_as_they_were_by_whatever_route(site: Site) -> None:
    # BC-60: large integers lost digits where a script decoded and encoded them again.
    def call(route: str, **options: Any) -> Any:
        return site.send.options(id=route, **options).enqueue(route, NUMBERS)

    async with running(Worker(site.app, [QUEUE])):
        await call("delayed", delay=0.01)
        await call("retried")
        await site.send.options(id="updated", delay=3600).enqueue("updated", [])
        await call("updated", on_conflict="update")
        await call("redriven")
        await call("failed")
        await site.send.options(id="a").enqueue("blocked", [])
        await call("blocked")
        await drained(site.queue, within=30)
        site.is_mended = True
        assert await site.queue.redrive("redriven") == 1
        await drained(site.queue, within=30)
    for route in ("delayed", "retried", "updated", "redriven", "blocked", "failed mourned"):
        assert [repr(value) for value in site.ran[route]] == [repr(value) for value in NUMBERS]


@pytest.mark.parametrize("number", NUMBERS[:4], ids=str)
async def test_a_key_that_is_a_large_number_has_all_its_digits(app: App[None], number: int) -> None:
    # BC-60: two keys that are equal as doubles are two keys.
    @app.task(name="send", queue=QUEUE, limits=[Limit("to", by="to", concurrency=1)])
    async def send(to: int) -> int:
        return to

    first, beside, second = [await send.enqueue(n) for n in (number, number - 1, number)]
    assert (first.outcome, beside.outcome, second.outcome) == (
        EnqueueOutcome.QUEUED,
        EnqueueOutcome.QUEUED,
        EnqueueOutcome.BLOCKED,
    )
    assert (await second.status()).limits == {"to": str(number)}
    async with running(Worker(app, [QUEUE])):
        assert await second.result(timeout=patience(20)) == number


async def test_texts_are_keys_of_their_own(app: App[None]) -> None:
    # BC-66: digits, colons, braces and stars split keys, or met one another.
    @app.task(name="send", queue=QUEUE, limits=[Limit("to", by="to", concurrency=1)])
    async def send(to: str) -> str:
        return to

    texts = [*TEXTS, "x" * 256]
    first = [await send.options(idempotency_key=text).enqueue(text) for text in texts]
    assert {job.outcome for job in first} == {EnqueueOutcome.QUEUED}
    second = [await send.enqueue(text) for text in texts]
    assert {job.outcome for job in second} == {EnqueueOutcome.BLOCKED}
    again = [await send.options(idempotency_key=text).enqueue(text) for text in texts]
    assert [job.id for job in again] == [job.id for job in first]
    for text in texts:
        gate = await app.queue(QUEUE).gate("to", text)
        assert (gate.key, gate.ready, gate.active, gate.blocked) == (text, 1, 0, 1)
    async with running(Worker(app, [QUEUE])):
        assert [await job.result(timeout=patience(20)) for job in second] == texts


async def test_texts_are_names_of_limits_of_their_own(app: App[None]) -> None:
    # BC-66, of names.
    queue = app.queue(QUEUE)
    task = app.task_ref("send", queue=QUEUE)
    for text in TEXTS:
        await queue.set_limit(text, concurrency=1)
        jobs = [await task.options(limit_keys={text: "k"}).enqueue() for _ in range(2)]
        assert [job.outcome for job in jobs] == [EnqueueOutcome.QUEUED, EnqueueOutcome.BLOCKED]
    assert {limit.name for limit in await queue.limits()} == set(TEXTS)
    for text in TEXTS:
        await queue.reset_limit(text)
    assert (await queue.stats()).blocked == 0
    assert await queue.limits() == []


async def test_texts_take_turns_as_keys_of_their_own(app: App[None]) -> None:
    # BC-66, of fairness: two keys that met would have one turn.
    began: list[str] = []

    @app.task(name="send", queue=QUEUE, fair_by="to")
    async def send(to: str) -> None:
        began.append(to)

    texts = [*TEXTS, "x" * 256]
    for _ in range(3):
        for text in texts:
            await send.enqueue(text)
    async with running(Worker(app, [QUEUE], concurrency=1)):
        await until(lambda: len(began) == 3 * len(texts), within=30)
    assert began == texts * 3
    for text in texts:
        gate = await app.queue(QUEUE).gate("fair:default:5", text)
        assert (gate.key, gate.ready, gate.active, gate.blocked) == (text, 0, 0, 0)


@pytest.mark.parametrize("number", [*NUMBERS[:3], 1 - 2**63, "123", "00123", "e\u0301"], ids=ascii)
async def test_a_strike_holds_the_very_value_and_none_that_is_nearly_it(
    app: App[None], number: int | str
) -> None:
    # BC-60 and BC-66, of strikes: neighbours are one double, "123" is no number, "é" is another.
    ran: list[int | str] = []

    @app.task(name="send", queue=QUEUE)
    async def send(to: int | str) -> None:
        ran.append(to)

    near: list[int | str] = ["0123", "é", 123]
    if isinstance(number, int):
        near = [number - 1, str(number)]
    queue = app.queue(QUEUE)
    strike = await queue.strike("send", where={"to": number})
    [told] = await queue.strikes()
    assert told.where == {"to": number}
    struck = await send.enqueue(number)
    for value in near:
        await send.enqueue(value)
    async with running(Worker(app, [QUEUE])):
        await until(lambda: len(ran) == len(near), within=30, what="all others have run")
        await reached(struck, JobState.BLOCKED)
        assert sorted(ran, key=repr) == sorted(near, key=repr)
        assert await queue.lift(strike)
        await until(lambda: ran[-1] == number and type(ran[-1]) is type(number), within=30)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text)[1:9])
async def test_other_texts_are_refused_by_one_clear_word(app: App[None], text: str) -> None:
    # BC-66: or one clear rejection.
    @app.task(name="send", queue=QUEUE, limits=[Limit("to", by="to", concurrency=1)])
    async def send(to: str) -> str:
        return to

    with pytest.raises(InvalidArguments, match=r"send: to .*is not valid"):
        send.job(text)
    with pytest.raises(InvalidOption, match="idempotency_key"):
        send.options(idempotency_key=text)
    with pytest.raises(InvalidOption, match="limit name"):
        send.options(limit_keys={text * 3: "k"})
    assert await app.queues() == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_very_many_jobs_of_one_key_are_due_purged_and_let_go_together(
    app: App[None], count: int
) -> None:
    # BC-64 and BC-65: too many results to unpack, and one call for a whole backlog.
    ran: list[int] = []

    @app.task(name="send", queue=QUEUE, limits=[Limit("all", concurrency=3)])
    async def send(number: int) -> None:
        ran.append(number)

    queue = app.queue(QUEUE)
    later = send.options(delay=0.05)
    await app.enqueue_many(later.job(n) for n in range(count))
    async with app.bulk("w", queue=QUEUE) as bulk:
        await bulk.add_many(send.job(count + n) for n in range(count))
    assert (await queue.gate("all")).blocked >= count - 3
    purged = await queue.purge(JobState.BLOCKED, all_jobs=True)
    assert purged >= count - 3
    await app.enqueue_many(send.job(2 * count + n) for n in range(count))
    await queue.set_limit("all", concurrency=1_000_000)

    async with running(Worker(app, [QUEUE])):
        await drained(queue, within=60 + count / 100)
    assert len(ran) == len(set(ran)) == 3 * count - purged
    gate = await queue.gate("all")
    assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)
