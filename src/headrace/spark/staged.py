"""What an attempt at a partition stages for an atomic write, under a token of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from pyspark import TaskContext

from headrace.errors import InvalidRows, StorageError
from headrace.request import JobRequest
from headrace.staging import WriteTerms
from headrace.storage.limits import STAGES_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import StageInfo
from headrace.sync.asking import BlockingAsker
from headrace.writing import Writing


def staged(
    calls: Iterable[Sequence[JobRequest]], terms: WriteTerms, asker: BlockingAsker
) -> StageInfo | None:
    """Stage jobs, and return what is to be committed; None where the write is known.

    Args:
        calls: the jobs, as many at a time as a call may bring; not read where the write is known.
        terms: of the write.
        asker: of the storage.

    Raises:
        InvalidRows: the partition is one too many.
        StageLost: what was staged has outlived its time.
        StorageError: the storage refused it, or was away for as long as calls are repeated.
    """
    writing = Writing(terms, lambda: asker)
    at_once(writing.begin())
    if writing.staging.is_known:
        return None
    stage = writing.staging.info
    try:
        for jobs in calls:
            _check_partition()
            stage = _longer(stage, jobs, terms, asker)
    except BaseException:
        # At one try; else it ends by time, as that of a killed attempt does.
        with suppress(StorageError):
            at_once(writing.discard_stages([stage]))
        raise
    return stage


def _longer(
    stage: StageInfo, jobs: Sequence[JobRequest], terms: WriteTerms, asker: BlockingAsker
) -> StageInfo:
    """Append the jobs of one call."""
    call = partial(
        asker.storage.stage,
        terms.queue,
        terms.write_id,
        stage.token,
        jobs,
        before=stage.length,
        ttl_ms=terms.stage_ttl_ms,
    )
    return StageInfo(stage.token, at_once(asker.ask(call)), stage.jobs + len(jobs))


def _check_partition() -> None:
    """See that there are no more stages than one commit may have, before they are all written."""
    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    if number >= STAGES_LIMIT:
        raise InvalidRows(
            f"an atomic write may have {STAGES_LIMIT:,} partitions, and this is number "
            f"{number + 1:,}: .coalesce({STAGES_LIMIT}) the DataFrame, or write with commit=direct"
        )
