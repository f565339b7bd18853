"""Embedded storages that write in bulk in a way that is wrong, which the machine must find out."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.request import JobRequest
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CommitOutcome, StageInfo


class Lengths(SqliteStorage):
    """Can say how long a stage is."""

    async def _length(self, write_id: str, token: str) -> int:
        sql = "SELECT jobs FROM stages WHERE write_id = ? AND token = ? ORDER BY key DESC"
        found = await self._do("stage", lambda s: s.db.execute(sql, (write_id, token)).fetchone())
        return 0 if found is None else int(found[0])


class StagesARepeatedCallAgain(Lengths):
    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        before = max(before, await self._length(write_id, token))
        return await super().stage(queue, write_id, token, jobs, before=before, ttl_ms=ttl_ms)


class NeverRenewsAStage(SqliteStorage):
    """A stage ends where its first call said."""

    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        ttl_ms = ttl_ms if before == 0 else 10_000
        return await super().stage(queue, write_id, token, jobs, before=before, ttl_ms=ttl_ms)


class CommitsWhateverIsThere(Lengths):
    """Does not look how much of a stage its writer knows of."""

    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        there = [StageInfo(s.token, await self._length(write_id, s.token), s.jobs) for s in stages]
        return await super().commit(queue, write_id, there, batch=batch, keep_ms=keep_ms)


class CommitsABatchAgain(SqliteStorage):
    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        sql = "UPDATE writes SET batch = batch - 1 WHERE id = ? AND batch = ?"
        await self._do("commit", lambda s: s.db.execute(sql, (write_id, batch)).rowcount)
        return await super().commit(queue, write_id, stages, batch=batch, keep_ms=keep_ms)


class CommitsBackwards(SqliteStorage):
    """What is committed last is published first."""

    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        return await super().commit(queue, write_id, stages[::-1], batch=batch, keep_ms=keep_ms)


class PublishesAllAtOnce(SqliteStorage):
    async def publish(self, queue: str) -> int:
        while await super().publish(queue):
            pass
        return 0


class DiscardsWhatIsCommitted(SqliteStorage):
    async def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        sql = "UPDATE stages SET place = NULL WHERE write_id = ? AND token = ?"
        values = [(write_id, token) for token in tokens]
        await self._do("discard", lambda s: s.db.executemany(sql, values).rowcount)
        return await super().discard(queue, write_id, tokens)


BULK_MUTANTS = (
    StagesARepeatedCallAgain,
    NeverRenewsAStage,
    CommitsWhateverIsThere,
    CommitsABatchAgain,
    CommitsBackwards,
    PublishesAllAtOnce,
    DiscardsWhatIsCommitted,
)
"""Each is wrong in one way."""
