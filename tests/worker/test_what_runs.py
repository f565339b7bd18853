"""What a worker says of the program that it runs: in the list of workers and in events."""

from __future__ import annotations

import secrets

import pytest

from headrace import App, InvalidOption, Worker
from headrace.testing import running
from tests.support.until import until


async def seen(storage_url: str, *, release: str | None, version: str | None) -> set[str | None]:
    """Return what the list of workers and the events tell of one."""
    app: App[None] = App(storage_url, tenant=f"test-{secrets.token_hex(6)}", release=release)

    @app.task
    async def work() -> None: ...

    queue = app.queue("default")
    async with app:
        async with running(Worker(app, version=version)):
            await until(queue.workers)
            [worker] = await queue.workers()
        events = [event async for event in queue.events()]
        assert [event.kind for event in events] == ["joined", "left"]
        return {worker.app_version, *(event.app_version or "" for event in events)}


@pytest.mark.parametrize(
    ("release", "version", "told"),
    [(None, None, ""), ("2.1", None, "2.1"), ("2.1", "9f3c1", "9f3c1"), (None, "½ x", "½ x")],
    ids=["neither", "release", "both", "version"],
)
async def test_a_worker_tells_its_own_version_or_else_its_apps_release(
    storage_url: str, release: str | None, version: str | None, told: str
) -> None:
    assert await seen(storage_url, release=release, version=version) == {told}


def test_a_version_has_no_control_characters_and_is_not_empty() -> None:
    app: App[None] = App("memory://")

    @app.task
    async def work() -> None: ...

    for version in ("", "a\tb", "x" * 300, 7):
        with pytest.raises(InvalidOption, match="version"):
            Worker(app, version=version)  # type: ignore[arg-type]  # an int too
