"""The role of writes that bring in all of their jobs or none, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.request import JobRequest
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import bulk_writer
from headrace.storage.sqlite.verbs.bulk_writer import Published
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo


class SqliteBulkWriter(SqliteRole):
    """Writes that bring in all of their jobs or none."""

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
        return await self._do(
            "stage",
            lambda s: bulk_writer.stage(
                s, self._name(queue), write_id, token, jobs, before=before, ttl_ms=ttl_ms
            ),
        )

    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        return await self._do(
            "commit",
            lambda s: bulk_writer.commit(
                s, self._name(queue), write_id, stages, batch=batch, keep_ms=keep_ms
            ),
        )

    async def publish(self, queue: str) -> int:
        return (await self.publish_piece(queue)).stages_left

    async def publish_piece(self, queue: str) -> Published:
        """Publish the next jobs, and return what became of them."""
        return await self._do("publish", lambda s: bulk_writer.publish(s, self._name(queue)))

    async def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        return await self._do(
            "discard", lambda s: bulk_writer.discard(s, self._name(queue), write_id, tokens)
        )

    async def read_write(self, queue: str, write_id: str) -> WriteInfo | None:
        return await self._do(
            "read_write", lambda s: bulk_writer.read_write(s, self._name(queue), write_id)
        )
