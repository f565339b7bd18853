"""A bulk write as its writer and its operators see it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.storage.values import WriteInfo
from headrace.views.value import PublicValue


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport(PublicValue):
    """What became of a write, over all batches that it has committed.

    `BulkWrite.report` is one, and `App.write_report` returns one.

    Attributes:
        id: the write.
        queue: of its jobs.
        batch: the last that was committed, 0 for a write without batches.
        rows: how many jobs were committed.
        added: how many of them are stored by now.
        duplicates: how many met a job of their id; None until the write is published.
        is_known: whether an earlier run had committed it, so that this one brought in nothing.
        is_published: whether all of it is stored; if not, every worker's sweep goes on with it.
    """

    id: str
    queue: str
    batch: int
    rows: int
    added: int
    duplicates: int | None
    is_known: bool
    is_published: bool

    @classmethod
    def of(cls, queue: str, info: WriteInfo, *, is_known: bool) -> WriteReport:
        """Return what a storage knows of a write."""
        return cls(
            id=info.id,
            queue=queue,
            batch=info.batch,
            rows=info.jobs,
            added=info.added,
            duplicates=info.jobs - info.added if info.is_published else None,
            is_known=is_known,
            is_published=info.is_published,
        )
