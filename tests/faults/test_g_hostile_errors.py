"""G: events tell of an error in one line, whatever it says and wherever it comes from."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from headrace import App, JobEvent, JobEventKind, JobState, Retry, Worker
from headrace.testing import running
from tests.support.jobs import ended

TEXTS = {
    "plain": "no such address",
    "lines": "no\tsuch\r\naddress\x0b\x0c\x85",
    "nothing": "",
    "nul": "\0" * 10,
    "long": "½" * 2_000,
    "surrogates": "\ud800" * 300,
    "pairs": "\U0001f4ee" * 300,
    "terminal": "\x1b]0;owned\x07\x9b2J",
    "as an event": "x\nqueued\tforged\tsend\t1\t\t\t\t",
    "as frames": 'x\nTraceback (most recent call last):\n  File "fake.py", line 1, in fake\nE: x',
}


@pytest.fixture
async def app(storage_url: str) -> AsyncIterator[App[None]]:
    """Return an app of a task that says what it was given, on an empty storage."""
    app: App[None] = App(storage_url, tenant=f"test-{secrets.token_hex(6)}")

    @app.task(name="say", max_attempts=2, retry=Retry(min=0.001, max=0.001))
    async def say(name: str) -> None:
        raise ValueError(TEXTS[name])

    async with app:
        yield app


async def test_every_event_of_an_error_is_one_that_can_be_read(app: App[None]) -> None:
    async with running(Worker(app)):
        for name in TEXTS:
            job = await app.tasks["say"].options(id=f"job {name}").enqueue(name)
            assert (await ended(job)).state is JobState.FAILED
    events = [event async for event in app.queue("default").events()]
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert {event.job_id for event in events if event.task} == {f"job {name}" for name in TEXTS}
    for name, text in TEXTS.items():
        retrying, failed = of_error(events, f"job {name}")
        assert (retrying.kind, failed.kind) == (JobEventKind.RETRYING, JobEventKind.FAILED)
        for event in (retrying, failed):
            assert event.error == "ValueError"
            assert len(event.message or "") == min(len(text), 200)
            assert (event.message or "").isprintable()
            assert event.frame is not None
            assert event.frame.startswith(f"{__file__}:")
            assert event.frame.endswith(" in say")


def of_error(events: list[JobEvent], job_id: str) -> list[JobEvent]:
    """Return those of a job that tell of an error."""
    return [event for event in events if event.job_id == job_id and event.error]
