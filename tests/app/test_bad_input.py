"""Mistakes of the caller raise a typed error before anything is sent."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import (
    App,
    FailReason,
    InvalidArguments,
    InvalidOption,
    NotSerializable,
    PayloadTooLarge,
    Retry,
    StorageUnavailable,
    Task,
    UnknownTask,
    UsageError,
    Worker,
)
from tests.support.nowhere import unreachable_app

DAY = timedelta(days=1)


@pytest.fixture
async def nowhere() -> AsyncIterator[App[None]]:
    async with unreachable_app() as app:
        yield app


@pytest.fixture
def take(nowhere: App[None]) -> Task[[Any], None]:
    @nowhere.task(name="take")
    async def take(value: Any) -> None: ...

    return take


async def test_a_call_without_a_mistake_would_be_sent(take: Task[[Any], None]) -> None:
    # What makes the other tests of this module mean something.
    with pytest.raises(StorageUnavailable):
        await take.enqueue(1)


class Connection:
    pass


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ("x" * 1_100_000, PayloadTooLarge, "1,048,576"),
        (math.nan, NotSerializable, "args.value=nan"),
        ({"rows": [0.5, math.inf]}, NotSerializable, "args.value.rows[1]=inf"),
        (b"raw", NotSerializable, "args.value is bytes"),
        ({"user": {"db": Connection()}}, NotSerializable, "args.value.user.db is a Connection"),
        ([1, Connection()], NotSerializable, "args.value[1] is a Connection"),
        ({1.5: "a"}, NotSerializable, "args.value has the key 1.5"),
        ("\ud800", NotSerializable, "args.value can't be encoded"),
    ],
    ids=["large", "nan", "inf", "bytes", "object", "item", "key", "surrogate"],
)
async def test_arguments_that_can_not_be_stored(
    take: Task[[Any], None], value: object, kind: type[UsageError], words: str
) -> None:
    for call in (take, take.options(priority=9)):
        with pytest.raises(kind) as caught:
            await call.enqueue(value)
        assert words in str(caught.value)
        with pytest.raises(kind):
            await call.enqueue_and_wait(value)
        with pytest.raises(kind):
            call.job(value)


async def test_arguments_that_do_not_fit(take: Task[..., None]) -> None:
    with pytest.raises(InvalidArguments, match="missing a required argument: 'value'"):
        await take.enqueue()
    with pytest.raises(InvalidArguments, match="too many positional"):
        await take.enqueue(1, 2)
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'other'"):
        await take.enqueue(1, other=2)


BAD_COUNTS: list[Any] = [0, -1, 2**63, 1.5, "3", True, math.nan]
BAD_DURATIONS: list[Any] = [-1, 1e18, 2**63, math.nan, math.inf, "5", True, timedelta(days=-1)]
BAD_INSTANTS: list[Any] = [
    datetime(2030, 1, 1),  # noqa: DTZ001 (that is the point)
    datetime(1950, 1, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    5,
    "2030-01-01",
]
BAD_NAMES: list[Any] = ["", "a b", "a:b", "{a}", "*", "..", "é", "x" * 101, 5]
BAD_TEXTS: list[Any] = ["", "x" * 257, "a\nb", "a\x00b", "\ud800", 5]
BAD_PRIORITIES: list[Any] = [-1, 10, 2**63, 4.5, 5.0, "5", True]
BAD_HEADERS: list[Any] = [
    {"a": 1},
    {1.5: "a"},
    {"a": None},
    {"a": b"b"},
    {"a": "x" * 9000},
    {"a": "\ud800"},
    ["a"],
    "a",
]


async def never_in_time(_errors: int, _error: BaseException) -> float:
    return 1.0


BAD_RETRIES: list[Any] = [5, "fast", Retry, never_in_time, lambda _errors, _error: 1.0]

CALL_OPTIONS = [
    *[("id", value) for value in BAD_TEXTS],
    *[("queue", value) for value in BAD_NAMES],
    *[("priority", value) for value in BAD_PRIORITIES],
    *[("delay", value) for value in BAD_DURATIONS],
    *[("run_at", value) for value in BAD_INSTANTS],
    *[("expires", value) for value in [0, *BAD_DURATIONS, *BAD_INSTANTS[:3]]],
    *[("timeout", value) for value in [0, *BAD_DURATIONS]],
    *[("max_attempts", value) for value in BAD_COUNTS],
    *[("max_stalls", value) for value in BAD_COUNTS],
    *[("result_ttl", value) for value in BAD_DURATIONS],
    *[("keep", value) for value in BAD_DURATIONS],
    *[("headers", value) for value in BAD_HEADERS],
    *[("retry", value) for value in BAD_RETRIES],
]


@pytest.mark.parametrize(("name", "value"), CALL_OPTIONS)
async def test_an_option_of_a_call_out_of_bounds(
    take: Task[[Any], None], name: str, value: Any
) -> None:
    # RELIABILITY §5 27 to 33 and 46.
    with pytest.raises(InvalidOption) as caught:
        take.options(**{name: value})
    message = str(caught.value)
    assert {"id": "job id", "headers": "header"}.get(name, name) in message
    message.encode()


async def test_delay_and_run_at_together(take: Task[[Any], None]) -> None:
    with pytest.raises(InvalidOption, match=r"delay=1 and run_at=.*: say one of them"):
        take.options(delay=1, run_at=datetime.now(UTC) + DAY)


async def test_a_result_that_would_outlive_its_record(take: Task[[Any], None]) -> None:
    with pytest.raises(InvalidOption, match="result_ttl=60 is over keep=5"):
        take.options(result_ttl=60, keep=5)


DECLARED = {"queue", "priority", "timeout", "max_attempts", "max_stalls", "result_ttl", "keep"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[pair for pair in CALL_OPTIONS if pair[0] in DECLARED],
        *[("retry", value) for value in BAD_RETRIES[:-1]],
        *[("name", value) for value in BAD_TEXTS[1:]],
    ],
)
async def test_a_setting_of_a_task_out_of_bounds(nowhere: App[None], name: str, value: Any) -> None:
    with pytest.raises(InvalidOption):

        @nowhere.task(**{name: value})
        async def handler() -> None: ...


def at_the_top(x: int) -> int:
    return x


def generate() -> Iterator[int]:
    yield 1


async def wait() -> None: ...


@pytest.mark.parametrize(
    ("handler", "executor", "words"),
    [
        (3, None, "is not a function"),
        (generate, None, "is a generator"),
        (wait, "process", "async def"),
        (wait, "thread", "async def"),
        (at_the_top, "greenlet", "'thread' or 'process'"),
        (lambda x: x, "process", "top level of a module"),
    ],
)
async def test_a_task_that_can_not_run_where_it_should(
    nowhere: App[None], handler: Any, executor: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        nowhere.task(executor=executor)(handler)


async def test_a_closure_in_a_process(nowhere: App[None]) -> None:
    def handler(x: int) -> int:
        return x

    with pytest.raises(UsageError, match="top level of a module"):
        nowhere.task(executor="process")(handler)


async def test_a_process_task_whose_function_is_not_where_it_says(nowhere: App[None]) -> None:
    def handler(x: int) -> int:
        return x

    handler.__qualname__ = "missing"
    nowhere.task(executor="process")(handler)
    with pytest.raises(UsageError, match=r"another process can't import .*missing"):
        Worker(nowhere)


async def test_a_task_name_that_is_taken(nowhere: App[None], take: Task[[Any], None]) -> None:
    with pytest.raises(UsageError, match="'take' is taken"):

        @nowhere.task(name="take")
        async def other() -> None: ...


async def test_an_unknown_task_name_lists_the_known_ones(
    nowhere: App[None], take: Task[[Any], None]
) -> None:
    # RELIABILITY §5 45: nothing is imported by a name.
    for name in ("os.system", "app.__globals__", "nothing"):
        with pytest.raises(UnknownTask, match=r"known: take.*queue="):
            await nowhere.enqueue(name, "ls")


async def test_a_foreign_task_takes_arguments_by_name_only(nowhere: App[None]) -> None:
    with pytest.raises(InvalidArguments, match="by name only"):
        await nowhere.enqueue("elsewhere.task", 1, queue="q")
    with pytest.raises(NotSerializable, match=r"args\.x"):
        await nowhere.enqueue("elsewhere.task", x=b"raw", queue="q")
    with pytest.raises(InvalidOption, match="task name"):
        await nowhere.enqueue("a\nb", queue="q")
    with pytest.raises(InvalidOption, match="queue"):
        await nowhere.enqueue("elsewhere.task", queue="a:b")


@pytest.mark.parametrize("job_id", BAD_TEXTS)
async def test_a_handle_for_a_bad_id(nowhere: App[None], job_id: Any) -> None:
    with pytest.raises(InvalidOption, match="job id"):
        nowhere.job(job_id)


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_bad_queue_or_tenant_name(nowhere: App[None], name: Any) -> None:
    with pytest.raises(InvalidOption, match="queue"):
        nowhere.queue(name)
    with pytest.raises(InvalidOption, match="queue"):
        nowhere.job("id", queue=name)
    with pytest.raises(InvalidOption, match="tenant"):
        App("redis://localhost", tenant=name)
    with pytest.raises(InvalidOption, match="queue"):
        Worker(nowhere, [name])


@pytest.mark.parametrize(
    "options",
    [
        *[{"concurrency": value} for value in [*BAD_COUNTS, 10_001]],
        *[{"lease": value} for value in [0, 0.4, 3601, *BAD_DURATIONS]],
        *[{"shutdown_timeout": value} for value in BAD_DURATIONS],
        *[{"sweep_interval": value} for value in [0, *BAD_DURATIONS]],
        *[{"max_loop_stall": value} for value in [0, *BAD_DURATIONS]],
        *[{"name": value} for value in BAD_TEXTS[1:]],
        *[{"queues": {"q": value}} for value in [*BAD_COUNTS, 1001]],
        {"queues": "default"},
        {"queues": 5},
        *[{"emit": value} for value in [5, "log", never_in_time]],
    ],
)
def test_a_worker_setting_out_of_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Worker(unreachable_app(), **{"queues": ["q"], **options})


def test_a_worker_without_a_queue() -> None:
    queues: Any
    for queues in (None, [], {}):
        with pytest.raises(UsageError, match="no queue to serve"):
            Worker(unreachable_app(), queues)


async def test_queue_calls_out_of_bounds(nowhere: App[None]) -> None:
    queue = nowhere.queue("q")
    bad: Any
    for bad in [0, -1, 10_000_001, "5", 1.5, True]:
        with pytest.raises(InvalidOption, match="history="):
            await queue.configure(history=bad)
    with pytest.raises(InvalidOption, match="dead_letter_ttl"):
        await queue.configure(dead_letter_ttl=0)
    with pytest.raises(InvalidOption, match="use one of scheduled"):
        [row async for row in queue.jobs("done")]
    with pytest.raises(InvalidOption, match="'active' can't be purged"):
        await queue.purge("active", all_jobs=True)
    for call in (queue.redrive(), queue.redrive("a", all_jobs=True), queue.purge("failed")):
        with pytest.raises(InvalidOption, match="one of them"):
            await call
    with pytest.raises(InvalidOption, match="job id"):
        await queue.redrive("a\nb")


@pytest.mark.parametrize("timeout", BAD_DURATIONS)
async def test_a_bad_time_to_wait_for_a_result(nowhere: App[None], timeout: Any) -> None:
    with pytest.raises(InvalidOption, match="timeout="):
        await nowhere.job("id").result(timeout=timeout)


async def test_a_bad_job_in_a_bulk_stops_before_the_first_is_sent(
    nowhere: App[None], take: Task[[Any], None]
) -> None:
    with pytest.raises(NotSerializable):
        await nowhere.enqueue_many(take.job(value) for value in (1, 2, b"raw"))


def test_the_reasons_of_dead_letters_are_these() -> None:
    assert {reason.value for reason in FailReason} == {
        "exhausted",
        "permanent",
        "stalled",
        "undecodable",
        "expired",
        "unknown_task",
        "result_too_large",
    }
