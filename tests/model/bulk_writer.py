"""The model of what writes many jobs, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import StageLost
from headrace.job import ADDED
from headrace.request import JobRequest
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo
from tests.model.places import Dump, QueueState, Staged, Write
from tests.model.producer import ProducerModel


class BulkWriterModel(ProducerModel):
    """The verbs of the role `BulkWriter`; the length of a stage is in how many calls it came."""

    def advance(self, ms: int) -> int:
        """Move the clock on, or back, and return the time; what has reached its age is gone."""
        super().advance(ms)
        for q in self.queues.values():
            q.stages = {
                name: stage
                for name, stage in q.stages.items()
                if stage.dies is None or stage.dies > self.now
            }
            q.writes = {
                name: write
                for name, write in q.writes.items()
                if write.dies is None or write.dies > self.now
            }
        return self.now

    def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        """Lay down jobs behind those that are there.

        Raises:
            StageLost: the stage is committed, or there are fewer.
        """
        stages, name = self.queue(queue).stages, (token, write_id)
        stage = stages.get(name, Staged())
        if len(stage.calls) < before or (name in stages and stage.dies is None):
            raise StageLost("it is not as it was left")
        if jobs and len(stage.calls) == before:
            stage.calls.append(list(jobs))
        if stage.calls:
            stage.dies = self.now + ttl_ms
            stages[name] = stage
        return len(stage.calls)

    def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        """Have stages be published, unless the batch is known.

        Raises:
            StageLost: one is not as it is said to be.
        """
        q = self.queue(queue)
        write = q.writes.get(write_id)
        if write is not None and write.batch >= batch:
            return CommitOutcome.KNOWN
        names = [(info.token, write_id) for info in stages]
        for name, info in zip(names, stages, strict=True):
            stage = q.stages.get(name)
            if stage is None or stage.dies is None or len(stage.calls) != info.length:
                raise StageLost("it is not as it was left")
        if len(set(names)) < len(names):
            raise StageLost("it is named twice")
        write = write or Write()
        write.batch, write.keep, write.dies = batch, keep_ms, None
        for name in names:
            stage = q.stages[name]
            stage.dies = None
            write.jobs += sum(map(len, stage.calls))
        q.to_publish += names
        q.writes[write_id] = write
        self._look_at(q, write_id)
        return CommitOutcome.COMMITTED

    def publish(self, queue: str) -> int:
        """Enqueue what one call has staged.

        Raises:
            QueueFull: more would wait than the queue takes.
        """
        q = self.queue(queue)
        if not q.to_publish:
            return 0
        name = q.to_publish[0]
        stage = q.stages[name]
        with self.within_length(queue, may_pass=True):
            outcomes = [self._enqueue(q, job) for job in stage.calls.pop(0)]
        q.writes[name[1]].added += sum(outcome in ADDED for outcome in outcomes)
        if not stage.calls:
            del q.stages[name], q.to_publish[0]
            self._look_at(q, name[1])
        return len(q.to_publish)

    def _look_at(self, q: QueueState, write_id: str) -> None:
        """Let a write's time begin to run once nothing of it is left."""
        write = q.writes[write_id]
        write.stages_left = sum(name[1] == write_id for name in q.to_publish)
        write.dies = None if write.stages_left else self.now + write.keep

    def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        """Drop what is not committed."""
        stages = self.queue(queue).stages
        dropped = {
            (token, write_id)
            for token in tokens
            if (token, write_id) in stages and stages[token, write_id].dies is not None
        }
        for name in dropped:
            del stages[name]
        return len(dropped)

    def read_write(self, queue: str, write_id: str) -> WriteInfo | None:
        """Say how a write stands."""
        write = self.queue(queue).writes.get(write_id)
        if write is None:
            return None
        return WriteInfo(
            id=write_id,
            batch=write.batch,
            stages_left=write.stages_left,
            jobs=write.jobs,
            added=write.added,
        )


def bulk_dump(q: QueueState) -> Dump:
    """Return all that a queue keeps of bulk writes."""
    return {
        "stages": {
            name: {"ids": [[job.id for job in call] for call in stage.calls], "dies": stage.dies}
            for name, stage in q.stages.items()
        },
        "to publish": q.to_publish[:],
        "writes": {
            name: {
                "batch": write.batch,
                "stages_left": write.stages_left,
                "jobs": write.jobs,
                "added": write.added,
                "keep": write.keep,
                "dies": write.dies,
            }
            for name, write in q.writes.items()
        },
    }
