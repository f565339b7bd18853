"""A bulk write as one call: it takes effect between its commit and the end of all publishing.

Whoever publishes stores what others have committed, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.request import JobRequest
from headrace.storage.values import StageInfo
from tests.linearizability.caller import Answer, Caller
from tests.linearizability.spec import LASTING


async def write(
    caller: Caller, write_id: str, jobs: Sequence[JobRequest], *, repetitions: int
) -> Answer[int]:
    """Stage, commit and publish; the stage is named as the write.

    A write that was committed, and of which is not known whether it is published, may take effect
    at any time: its outcome is unknown.
    """
    storage, queue = caller.storage, caller.queue
    staged = await caller.ask(
        "stage",
        lambda: storage.stage(queue, write_id, write_id, jobs, before=0, ttl_ms=LASTING),
        repetitions=repetitions,
    )
    if staged.reply is None:
        return staged._replace(may_have_run=False)
    stages = [StageInfo(write_id, staged.reply, len(jobs))]
    committed = await caller.ask(
        "commit",
        lambda: storage.commit(queue, write_id, stages, keep_ms=LASTING),
        repetitions=repetitions,
    )
    published = Answer(committed.invoked, committed.last, None, 1, committed.may_have_run)
    if committed.returned is None:
        return published
    while published.reply:
        published = await caller.ask(
            "publish", lambda: storage.publish(queue), repetitions=repetitions
        )
    is_known = published.returned is not None
    return published._replace(invoked=committed.invoked, may_have_run=not is_known)
