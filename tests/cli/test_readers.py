"""``headrace queue readers`` and ``forget-reader``: who reads events, and how far each is."""

from __future__ import annotations

import asyncio

from headrace import App
from tests.cli.conftest import Cli


def follow(environment: dict[str, str], queue: str, reader: str, number: int) -> None:
    """Acknowledge the events of a queue up to a number."""

    async def main() -> None:
        url, tenant = environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]
        async with App(url, tenant=tenant) as app:
            await app.queue(queue).acknowledge(reader, "0")
            async for event in app.queue(queue).events():
                if event.number == number:
                    await app.queue(queue).acknowledge(reader, event)

    asyncio.run(main())


def test_readers_are_listed_with_what_is_left_for_them(
    here: Cli, environment: dict[str, str]
) -> None:
    for _ in range(3):
        here("enqueue", "t", "-q", "mail")
    here("enqueue", "t", "-q", "sms")
    follow(environment, "mail", "archive", 2)
    follow(environment, "mail", "alerts", 0)
    follow(environment, "sms", "archive", 1)
    heading, *lines = here("queue", "readers").out.splitlines()
    assert heading.split() == ["QUEUE", "READER", "BEHIND", "LAST", "EVENT", "ACKNOWLEDGED"]
    assert [line.split()[:4] for line in lines] == [
        ["mail", "alerts", "3", "0"],
        ["mail", "archive", "1", "2"],
        ["sms", "archive", "0", "1"],
    ]
    [found] = here("queue", "readers", "sms", "-o", "json").json
    assert {key: found[key] for key in ("queue", "name", "number", "behind")} == {
        "queue": "sms",
        "name": "archive",
        "number": 1,
        "behind": 0,
    }
    assert set(found) == {"queue", "name", "stream_id", "number", "behind", "at"}


def test_where_nobody_reads_that_is_said(here: Cli) -> None:
    ran = here("queue", "readers")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("Nobody reads events as a named reader in ")
    assert here("queue", "readers", "-o", "json").json == []


def test_queues_that_nobody_reads_are_said(here: Cli, environment: dict[str, str]) -> None:
    follow(environment, "mail", "archive", 0)
    ran = here("queue", "readers", "sms", "push")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("Nobody reads events of sms, push as a named reader in ")


def test_a_reader_is_forgotten(here: Cli, environment: dict[str, str]) -> None:
    follow(environment, "mail", "archive", 0)
    ran = here("queue", "forget-reader", "mail", "archive")
    assert (ran.code, ran.out) == (0, "Reader 'archive' of queue 'mail' is forgotten.\n")
    assert here("queue", "readers", "-o", "json").json == []
    ran = here("queue", "forget-reader", "mail", "archive")
    assert (ran.code, ran.out) == (1, "")
    assert "has no reader 'archive'" in ran.err


def test_what_is_no_name_is_wrong_usage(here: Cli) -> None:
    for words in (("readers", "a b"), ("forget-reader", "mail", "a b"), ("forget-reader", "mail")):
        assert here("queue", *words).code == 2
