"""Pipelines that live on events: they go on where they stopped, and see what they missed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace import App, InvalidOption, JobEvent, Queue, TooManyReaders
from tests.support.nowhere import unreachable_app


@pytest.fixture
async def queue(app: App[None]) -> Queue:
    """Return a queue that would soon trim its events."""
    queue = app.queue("mail")
    await queue.configure(events=1, events_cap=1_000)
    return queue


async def make_events(app: App[None], count: int) -> None:
    """Make events, 20 an entry: those of jobs that are queued."""
    send = app.task_ref("send", queue="mail")
    await app.enqueue_many(send.job(n=n) for n in range(count))


async def numbers(queue: Queue, reader: str = "archive") -> list[int]:
    """Return the numbers of the events that a reader has not acknowledged."""
    return [event.number async for event in queue.events(reader=reader)]


async def the_event(queue: Queue, number: int) -> JobEvent:
    """Return the event of a number."""
    [found] = [event async for event in queue.events() if event.number == number]
    return found


async def test_a_reader_goes_on_behind_the_event_that_it_acknowledged(
    app: App[None], queue: Queue
) -> None:
    await queue.acknowledge("archive", "0")
    await make_events(app, 500)
    assert await numbers(queue) == list(range(1, 501))
    # Also within an entry, whose stream id the events before and after it share.
    for number in (1, 19, 20, 21, 333, 500):
        await queue.acknowledge("archive", await the_event(queue, number))
        assert await numbers(queue) == list(range(number + 1, 501))
    await make_events(app, 3)
    assert await numbers(queue) == [501, 502, 503]


async def test_a_stream_id_acknowledges_all_events_that_share_it(
    app: App[None], queue: Queue
) -> None:
    await queue.acknowledge("archive", "0")
    await make_events(app, 100)
    await queue.acknowledge("archive", (await the_event(queue, 25)).stream_id)
    assert (await numbers(queue))[0] == 41


async def test_a_reader_that_acknowledges_each_event_misses_none(
    app: App[None], queue: Queue
) -> None:
    await queue.acknowledge("archive", "0")
    seen: list[int] = []
    for _ in range(3):
        await make_events(app, 45)
        async for event in queue.events(reader="archive"):
            seen.append(event.number)
            await queue.acknowledge("archive", event)
            if event.number % 30 == 0:
                break  # it crashes, and is started again
    seen += await numbers(queue)
    assert seen == list(range(1, 136))


async def test_readers_are_shown_with_what_is_left_for_them(app: App[None], queue: Queue) -> None:
    await queue.acknowledge("alerts", "0")
    await make_events(app, 45)
    seen = await the_event(queue, 40)
    await queue.acknowledge("archive", seen)
    alerts, archive = await queue.readers()
    assert (alerts.name, alerts.number, alerts.behind) == ("alerts", 0, 45)
    assert (archive.queue, archive.name, archive.number, archive.behind) == (
        "mail",
        "archive",
        40,
        5,
    )
    assert archive.stream_id == seen.stream_id
    assert timedelta(0) <= archive.at - seen.at < timedelta(minutes=1)
    assert archive.to_dict()["at"].endswith("Z")


async def test_a_reader_is_forgotten(app: App[None], queue: Queue) -> None:
    await queue.acknowledge("archive", "0")
    assert await queue.forget_reader("archive") is True
    assert await queue.forget_reader("archive") is False
    assert await queue.readers() == []


async def test_a_reader_that_is_not_known_begins_with_the_first_event_that_is_kept(
    app: App[None], queue: Queue
) -> None:
    await make_events(app, 3)
    assert await numbers(queue, "nobody") == [1, 2, 3]
    assert await queue.readers() == []


async def test_a_gap_in_the_numbers_is_what_was_trimmed(app: App[None], queue: Queue) -> None:
    # Nobody holds these back.
    await make_events(app, 20)
    [*_, last] = [event async for event in queue.events()]
    await make_events(app, 2_000)
    first = await anext(queue.events(after=last.stream_id))
    kept = [event.number async for event in queue.events()]
    assert first.number == kept[0] > last.number + 1
    assert kept == list(range(first.number, 2_021))


async def test_the_cap_is_configured_and_shown(app: App[None], queue: Queue) -> None:
    assert (await queue.stats()).keeps_events_cap == 1_000
    assert (await queue.configure(events_cap=70)).keeps_events_cap == 70
    assert (await queue.configure(events=7)).keeps_events_cap == 70
    for bad in (0, -1, 10_000_001, True, "7", 1.5):
        with pytest.raises(InvalidOption, match="events_cap"):
            await queue.configure(events_cap=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a:b", "x" * 101, "a\n", "ä", None, 7])
async def test_what_is_no_name_is_refused_before_any_io(name: object) -> None:
    queue = unreachable_app().queue("mail")
    with pytest.raises(InvalidOption, match="reader"):
        await queue.acknowledge(name, "0")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="reader"):
        await queue.forget_reader(name)  # type: ignore[arg-type]
    if name is not None:
        with pytest.raises(InvalidOption, match="reader"):
            await anext(queue.events(reader=name))  # type: ignore[arg-type]


@pytest.mark.parametrize("seen", ["", "x", "1-", "-1", "1-2-3", "1-1\n", "1" * 20, None, 7, b"1-1"])
async def test_what_is_no_stream_id_is_refused_before_any_io(seen: object) -> None:
    queue = unreachable_app().queue("mail")
    with pytest.raises(InvalidOption, match=r"seen=.*is no stream id"):
        await queue.acknowledge("archive", seen)  # type: ignore[arg-type]


async def test_an_event_is_acknowledged_where_it_happened(app: App[None], queue: Queue) -> None:
    await make_events(app, 1)
    event = await the_event(queue, 1)
    with pytest.raises(InvalidOption, match="of queue 'mail', not of 'sms'"):
        await app.queue("sms").acknowledge("archive", event)
    assert await app.queue("sms").readers() == []


async def test_one_says_where_to_read_on_in_one_way(app: App[None], queue: Queue) -> None:
    with pytest.raises(InvalidOption, match=r"after=\.\.\. or reader="):
        await anext(queue.events(after="0", reader="archive"))


async def test_a_reader_that_is_one_too_many_is_told_so(app: App[None], queue: Queue) -> None:
    for n in range(100):
        await queue.acknowledge(f"reader-{n}", "0")
    with pytest.raises(TooManyReaders, match=r"100 readers.*forget those"):
        await queue.acknowledge("one-more", "0")
    assert len(await queue.readers()) == 100
