"""The whole model: every verb of a storage, without I/O, written from the contract."""

from __future__ import annotations

from headrace.job import JobState
from tests.model.bulk_reader import BulkReaderModel
from tests.model.bulk_writer import BulkWriterModel, bulk_dump
from tests.model.consumer import ConsumerModel
from tests.model.maintenance import MaintenanceModel
from tests.model.places import Dump, Record
from tests.model.readers import ReaderModel
from tests.model.schedules import SchedulerModel
from tests.model.updates import successor_dump
from tests.model.why import WhyModel


class Model(
    BulkWriterModel,
    BulkReaderModel,
    SchedulerModel,
    ReaderModel,
    ConsumerModel,
    MaintenanceModel,
    WhyModel,
):
    """A storage of one tenant in plain Python, to compare the real ones with.

    Verbs have the names and replies of `Storage`, without `await`. It may be copied by
    `copy.deepcopy`. ``told`` gathers the messages to waiters, and ``events`` the events, until the
    caller takes them out.

    Args:
        now: the time at the start, in milliseconds since the epoch.
    """

    def dump(self, queue: str) -> Dump:
        """Return all that a queue keeps, in the form that `tests.model.dumps` has of storages."""
        q = self.queue(queue)
        return {
            "paused": q.is_paused,
            "settings": q.settings,
            "aged": q.aged,
            "counts": self.counts(q),
            "queued by lane": q.queued_by_lane(),
            "lanes": dict(q.lanes),
            "output": {
                job_id: (output.epoch, dict(output.pieces))
                for job_id, output in q.outputs.items()
                if job_id in q.jobs
            },
            "jobs": {job.id: job_dump(job) for job in q.jobs.values()},
            "successors": {i: successor_dump(one) for i, one in q.successors.items()},
            "ready": {f"{lane}:{tier}": ids[:] for (lane, tier), ids in q.ready.items() if ids},
            "delayed": q.delayed[:],
            "finished": dict(q.finished),
            "dead": dict(q.dead),
            "held": {
                name: sorted(job.id for job in held)
                for name in q.workers
                if (held := q.held_by(name))
            },
            "workers": {
                name: {
                    "lease_ms": known.lease_ms,
                    "since": known.since if known.info else 0,
                    "at": known.at,
                    "info": known.info,
                    "count": -1 if known.is_condemned else known.count,
                    "claim": known.claim,
                    "settle": known.settle,
                    "settled": known.settled[:],
                }
                for name, known in q.workers.items()
            },
            "calls": {
                client: {slot: (call.number, call.answer[:]) for slot, call in slots.items()}
                for client, slots in q.calls.items()
                if slots
            },
            "fired": {name: mark.instant for name, mark in q.fired.items()},
            "bulk": bulk_dump(q),
            "idempotent": dict(q.idempotent),
            **self.gates_dump(q),
            **self.strikes_dump(q),
            "readers": {name: (known.number, known.at) for name, known in q.readers.items()},
        }


def job_dump(job: Record) -> Dump:
    """Return a record as plain data; channels are sorted, as their order says nothing."""
    values = {
        name: getattr(job, name)
        for name in Record.__dataclass_fields__
        if name not in ("id", "number")
    }
    values["channels"] = sorted(job.channels)
    values["errors"] = job.errors[:]
    values["result_dies"] = job.result_dies if job.result is not None else None
    if job.state is not JobState.COMPLETED:
        values["result"] = None
    return values
