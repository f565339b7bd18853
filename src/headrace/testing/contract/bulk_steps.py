"""The steps of which the contract tests of bulk writes are made."""

from __future__ import annotations

from headrace.storage import BulkWriter, CommitOutcome, JobRequest, StageInfo, WriteInfo
from headrace.testing.contract.fixtures import Advance
from headrace.testing.contract.steps import DAY_MS, HOUR_MS, QUEUE, until

WRITE = "w:1 é/{}"


class ContractWriter:
    """Stages jobs for one write, and commits them.

    Attributes:
        stage_info: what it has staged, under its name as token.
    """

    def __init__(
        self,
        storage: BulkWriter,
        write_id: str = WRITE,
        name: str = "t1",
        *,
        queue: str = QUEUE,
        ttl_ms: int = HOUR_MS,
    ) -> None:
        self.stage_info: StageInfo = StageInfo(name, 0, 0)
        self._storage = storage
        self._write_id = write_id
        self._queue = queue
        self._ttl_ms = ttl_ms

    async def stage(
        self, *jobs: JobRequest, before: int | None = None, ttl_ms: int | None = None
    ) -> int:
        """Stage jobs in one call: behind the others, or as one that knows of so much."""
        info = self.stage_info
        length = await self._storage.stage(
            self._queue,
            self._write_id,
            info.token,
            jobs,
            before=info.length if before is None else before,
            ttl_ms=self._ttl_ms if ttl_ms is None else ttl_ms,
        )
        added = len(jobs) if length > info.length else 0
        self.stage_info = StageInfo(info.token, length, info.jobs + added)
        return length

    async def commit(self, *, batch: int = 0, keep_ms: int = DAY_MS) -> CommitOutcome:
        """Commit what was staged."""
        return await self._storage.commit(
            self._queue, self._write_id, [self.stage_info], batch=batch, keep_ms=keep_ms
        )

    async def discard(self) -> int:
        """Drop what was staged."""
        return await self._storage.discard(self._queue, self._write_id, [self.stage_info.token])


async def commit_stages(
    storage: BulkWriter,
    *stages: StageInfo,
    write_id: str = WRITE,
    batch: int = 0,
    keep_ms: int = DAY_MS,
) -> CommitOutcome:
    """Commit stages of one write."""
    return await storage.commit(QUEUE, write_id, stages, batch=batch, keep_ms=keep_ms)


async def publish_all(storage: BulkWriter) -> int:
    """Publish to the end; return in how many calls."""
    calls = 1
    while await storage.publish(QUEUE):
        calls += 1
    return calls


async def report_of(storage: BulkWriter, write_id: str = WRITE) -> WriteInfo:
    """Return what became of a write, which must be known."""
    info = await storage.read_write(QUEUE, write_id)
    assert info is not None
    return info


async def outlast(storage: BulkWriter, advance: Advance, ms: int) -> None:
    """Wait until what was to be kept for ``ms`` is gone: what a write says of itself is, too."""
    await commit_stages(storage, write_id="sand-glass", keep_ms=ms)
    await advance(ms + 1)

    async def is_gone() -> bool:
        return await storage.read_write(QUEUE, "sand-glass") is None

    await until(is_gone)
