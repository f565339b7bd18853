"""Whoever reads back what has ended gets each end once, whatever dies meanwhile."""

from __future__ import annotations

from headrace import App
from tests.apps.crash_app import QUEUE
from tests.crash.crew import Crew
from tests.support.until import until

JOBS = 600
DEATHS = 3


class Archive:
    """Reads the completed jobs, each time from where it has stopped."""

    def __init__(self, app: App[None]) -> None:
        self.ids: list[str] = []
        self._app = app
        self._cursor = ""

    async def read(self) -> int:
        """Read what is new, and return how many there are now."""
        async for job in self._app.queue(QUEUE).export("completed", after=self._cursor):
            self.ids.append(job.id)
            self._cursor = job.cursor
        return len(self.ids)


async def test_an_archive_has_each_end_once_though_workers_are_killed(
    crew: Crew, app: App[None]
) -> None:
    archive = Archive(app)
    await crew.worker("stays").ready()
    ids: set[str] = set()
    for number in range(DEATHS):
        victim = await crew.worker(f"dies-{number}").ready()
        before = await archive.read()
        echo = app.tasks["echo"]
        handles = await app.enqueue_many(echo.job(value) for value in range(JOBS // DEATHS))
        ids.update(handle.id for handle in handles)

        async def goes_on(before: int = before) -> bool:
            return await archive.read() > before

        await until(goes_on)
        victim.kill()

    async def has_all() -> bool:
        return await archive.read() >= JOBS

    await until(has_all, within=20)
    assert (len(archive.ids), set(archive.ids)) == (JOBS, ids)
