"""An app with a codec of its own: every argument, result and piece of output goes through it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import App, Context, Worker
from headrace.app import clients_of
from headrace.codec import Codec
from headrace.testing import Kit, running
from tests.apps import process_app
from tests.apps.marked import MARK, Marked
from tests.support.until import patience


class MarkedApp(App[None]):
    codec: Codec = Marked()


async def double(number: int) -> int:
    return 2 * number


def triple(number: int) -> int:
    return 3 * number


async def tell(context: Context[None]) -> None:
    context.emit({"half": 0.5})


@pytest.fixture
async def app(storage_url: str) -> AsyncIterator[MarkedApp]:
    async with MarkedApp(storage_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        app.task(name="double")(double)
        app.task(name="triple")(triple)
        app.task(executor="process", name="add")(process_app.add.function)
        app.task(name="tell")(tell)
        yield app


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [("double", {"number": 2}, 4), ("triple", {"number": 2}, 6), ("add", {"a": 1, "b": 2}, 3)],
)
async def test_what_is_stored_of_a_call_is_the_codecs(
    app: MarkedApp, name: str, arguments: dict[str, Any], result: int
) -> None:
    handle = await app.enqueue(name, **arguments)
    async with running(Worker(app, process_slots=1)):
        assert await handle.result(timeout=patience(15)) == result
    record = await clients_of(app).current().storage.get("default", handle.id)
    assert record is not None
    assert record.payload == app.codec.arguments_encoder({})(arguments)
    assert record.result == app.codec.encoder(Any)(result, "result")
    status = await handle.status()
    assert (status.args, status.result) == (arguments, result)


async def test_output_and_jobs_by_name_alone_are_the_codecs(app: MarkedApp) -> None:
    handle = await app.enqueue("tell")
    async with running(Worker(app)):
        assert [piece async for piece in handle.stream()] == [{"half": 0.5}]
        foreign = await app.enqueue("elsewhere", queue="other", number=1)
        record = await clients_of(app).current().storage.get("other", foreign.id)
    assert record is not None
    assert record.payload is not None
    assert record.payload[:1] == MARK
    assert await app.job(handle.id).result() is None, "plain data where the task is not said"


async def test_a_kit_reads_jobs_of_the_codec() -> None:
    app = MarkedApp("memory://")
    task = app.task(name="double")(double)
    async with Kit(app) as kit:
        handle = await task.enqueue(2)
        await app.enqueue("elsewhere", queue="other", number=1)
        assert [job.arguments for job in kit.enqueued()] == [{"number": 2}, {"number": 1}]
        kit.assert_enqueued(task, {"number": 2})
        await kit.run_until_idle()
        assert await handle.result() == 4
