"""A sync app on a storage that has only coroutines, as those of other distributions do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import App, StorageRefused, SyncApp
from headrace.app import clients_of
from headrace.clients import Opening
from headrace.storage import Storage, open_storage
from headrace.storage.portal import PortalStorage
from tests.storage.foreign import OldStorage
from tests.support.threads import at_a_time, working


def opened(inner: App[None], kind: type[OldStorage] | None) -> Opening:
    def storage() -> Storage:
        found = open_storage(inner.url, tenant=inner.tenant)
        return found if kind is None else kind(found)

    return Opening(storage=storage, blocking=lambda: PortalStorage(storage, inner.tenant))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[SyncApp[None]]:
    """Return an app whose blocking storage is run by a loop in a thread."""
    inner: App[None] = App(f"file://{tmp_path}/data", tenant="portal")
    with clients_of(inner).replaced(opened(inner, None)), SyncApp(inner) as app:
        yield app


def test_all_of_it_works(app: SyncApp[None]) -> None:
    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    with app.bulk("import") as bulk:
        bulk.add_many(double.job(n) for n in range(700))
    assert bulk.report.added == 700
    jobs = app.enqueue_many(double.job(n) for n in range(1_200))
    with working(app):
        assert double.enqueue_and_wait(4) == 8
        assert [job.result() for job in jobs[:3]] == [0, 2, 4]
        found = at_a_time(4, lambda number: double.enqueue(number).result())
    assert found == [0, 2, 4, 6]
    assert app.queue("default").stats().queued == 0


def test_what_it_has_not_is_refused(tmp_path: Path) -> None:
    inner: App[None] = App(f"file://{tmp_path}/data", tenant="portal")
    with clients_of(inner).replaced(opened(inner, OldStorage)), SyncApp(inner) as app:
        with pytest.raises(StorageRefused, match="keeps no schedules"):
            app.schedules.get("one")
        with pytest.raises(StorageRefused), app.bulk("import"):
            pytest.fail("it has begun")
        assert app.queues() == []
