"""Pauses of a task and strikes, as operators set and see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace import App, InvalidOption, JobCancelled, JobState, Queue, SyncApp, TooManyStrikes
from headrace.testing import Kit


@pytest.fixture
def app() -> App[None]:
    app = App("memory://")

    @app.task(name="send", queue="mail")
    async def send(to: str) -> str:
        return to

    @app.task(name="print", queue="mail")
    async def printed(n: int) -> int:
        return n

    return app


async def test_a_task_is_paused_while_others_of_its_queue_go_on(app: App[None]) -> None:
    async with Kit(app) as kit:
        queue, send = app.queue("mail"), app.tasks["send"]
        await queue.pause("send")
        first, second = await send.enqueue("a"), await send.enqueue("b")
        await app.tasks["print"].enqueue(1)
        assert [one.result for one in await kit.run_until_idle()] == [1]
        stats = await queue.stats()
        assert (stats.paused, stats.paused_tasks, stats.blocked) == (False, ["send"], 2)
        status = await first.status()
        assert status is not None
        assert (status.state, status.blocked_by) == (JobState.BLOCKED, "task:send")
        await queue.resume("send")
        assert [one.job_id for one in await kit.run_until_idle()] == [first.id, second.id]
        assert (await queue.stats()).paused_tasks == []
        await queue.resume("send")


async def test_a_task_may_be_said_itself(app: App[None]) -> None:
    async with Kit(app) as kit:
        queue, send = app.queue("mail"), app.tasks["send"]
        await queue.pause(send)
        assert (await queue.stats()).paused_tasks == ["send"]
        await send.enqueue("a")
        assert await kit.run_until_idle() == []
        assert [job.task async for job in queue.jobs("blocked", task=send)] == ["send"]
        assert (await queue.cancel(task=send)).cancelled == 1
        await queue.resume(send)
        await queue.strike(send)
        [strike] = await queue.strikes()
        assert strike.task == "send"
    with pytest.raises(InvalidOption, match="task name 7 is of type int"):
        await app.queue("mail").pause(7)  # type: ignore[arg-type]  # the point


async def test_a_strike_is_shown_and_lifted(app: App[None]) -> None:
    async with Kit(app) as kit:
        queue = app.queue("mail")
        strike = await queue.strike("send")
        cancels = await queue.strike("print", action="cancel")
        waits = await app.tasks["send"].enqueue("a")
        ended = await app.tasks["print"].enqueue(1)
        assert await kit.run_until_idle() == []
        with pytest.raises(JobCancelled):
            await ended.result(timeout=1)
        found = {one.id: one for one in await queue.strikes()}
        assert found.keys() == {strike, cancels}
        assert (found[strike].task, found[strike].where, found[strike].action) == (
            *("send", {}, "wait"),
        )
        assert found[cancels].action == "cancel"
        assert found[strike].since <= kit.now
        assert await queue.lift(strike)
        assert not await queue.lift(strike)
        assert [one.job_id for one in await kit.run_until_idle()] == [waits.id]


def test_code_without_a_loop_strikes_too(app: App[None]) -> None:
    sync = SyncApp(app)
    with Kit(sync):
        queue = sync.queue("mail")
        queue.pause("send")
        assert queue.stats().paused_tasks == ["send"]
        queue.resume("send")
        strike = queue.strike(where={"to": "a"})
        assert [(one.id, one.task, one.where) for one in queue.strikes()] == [
            (strike, None, {"to": "a"})
        ]
        assert queue.lift(strike)
        assert queue.strikes() == []


async def test_conditions_are_kept_as_they_were_said(app: App[None]) -> None:
    where: dict[str, Any] = {
        "text": "42",
        "whole": 42,
        "number": 1.5,
        "truth": True,
        "none": None,
        "empty": "",
    }
    async with Kit(app):
        queue = app.queue("mail")
        await queue.strike("send", where=where)
        [strike] = await queue.strikes()
        assert strike.where == where
        assert strike.to_dict()["where"] == where


Wrong = Callable[[Queue], Any]
WRONG: dict[str, tuple[Wrong, str]] = {
    "nothing": (lambda queue: queue.strike(), "task=, where= or both"),
    "no-conditions": (lambda queue: queue.strike(where={}), "task=, where= or both"),
    "task": (lambda queue: queue.strike(""), "task name"),
    "paused-task": (lambda queue: queue.pause("a\nb"), "task name"),
    "resumed-task": (lambda queue: queue.resume(""), "task name"),
    "action": (lambda queue: queue.strike("a", action="delete"), "'wait' or 'cancel'"),  # type: ignore[arg-type]  # on purpose
    "mapping": (lambda queue: queue.strike(where=[("a", 1)]), "mapping"),  # type: ignore[arg-type]  # on purpose
    "value": (lambda queue: queue.strike(where={"a": [1]}), "where['a']"),  # type: ignore[dict-item]  # on purpose
    "long": (lambda queue: queue.strike(where={"a": "x" * 257}), "256 bytes"),
    "nan": (lambda queue: queue.strike(where={"a": float("nan")}), "2**63"),
    "large": (lambda queue: queue.strike(where={"a": 2**63}), "2**63"),
    "parameter": (lambda queue: queue.strike(where={"": 1}), "parameter"),
    "many": (lambda queue: queue.strike(where=dict.fromkeys("abcdefghi", 1)), "8 at most"),
    "id": (lambda queue: queue.lift(""), "strike"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
async def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    app: App[None], name: str
) -> None:
    call, says = WRONG[name]
    # Nothing is there to answer.
    queue = App("redis://127.0.0.1:1").queue("mail")
    with pytest.raises(InvalidOption) as caught:
        await call(queue)
    assert says in str(caught.value)


async def test_a_queue_has_a_hundred_strikes_at_most(app: App[None]) -> None:
    async with Kit(app):
        queue = app.queue("mail")
        for n in range(100):
            await queue.pause(f"task {n}")
        with pytest.raises(TooManyStrikes, match="100 strikes"):
            await queue.strike("send")
