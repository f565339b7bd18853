"""Contract of ``register``."""

from __future__ import annotations

import msgspec

from headrace.storage import Beat, EventRecord, JobEventKind, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    record_of,
)


class RegisterContract(Contract):
    """Tests of ``register``."""

    async def test_a_registered_incarnation_shows_what_it_said_of_itself(
        self, storage: Storage, advance: Advance
    ) -> None:
        now = await advance(0)
        worker = await ContractIncarnation(
            storage, "w1", lease_ms=9_000, tasks={"send": "default", "é/ß": "gpu"}, channel="c.1"
        ).register()
        assert await storage.workers(QUEUE) == [
            msgspec.structs.replace(worker.info, registered_ms=now, active=0)
        ]
        assert await storage.beats(QUEUE) == {
            "w1": Beat(count=0, lease_ms=9_000, is_condemned=False)
        }
        assert await storage.queues() == [QUEUE]
        assert (await storage.stats(QUEUE)).workers == 1

    async def test_an_incarnation_that_joins_leaves_an_event(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        [event] = (await storage.events(QUEUE)).events
        assert event == EventRecord(
            stream_id=event.stream_id,
            number=event.number,
            at_ms=event.at_ms,
            kind=JobEventKind.JOINED,
            job_id=worker.name,
            task="",
            start=0,
            incarnation=worker.name,
            wait_ms=0,
            run_ms=0,
            detail="",
            worker="mailer",
            host="host-1",
            version="1.2.3",
            app_version="2025-11",
        )

    async def test_one_that_registers_again_has_not_joined_again(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        await worker.register()
        assert len((await storage.events(QUEUE)).events) == 1
        await worker.die()
        await worker.register()
        kinds = [event.kind for event in (await storage.events(QUEUE)).events]
        assert kinds == [JobEventKind.JOINED, JobEventKind.LEFT, JobEventKind.JOINED]

    async def test_no_name_breaks_the_line_of_its_event(self, storage: Storage) -> None:
        info = ContractIncarnation(storage, "w1").info
        strange = msgspec.structs.replace(info, name="a\tb\n", host="\x1b[2J", app_version="½\0")
        await storage.register(QUEUE, strange)
        [event] = (await storage.events(QUEUE)).events
        assert (event.worker, event.host, event.app_version) == ("a b ", " [2J", "½ ")

    async def test_what_was_said_of_a_tasks_lane_last_holds_for_its_producers(
        self, storage: Storage, client: ContractClient
    ) -> None:
        async def lane_of_next(job_id: str) -> str:
            await client.enqueue(a_job(job_id, lane=""))
            return (await record_of(storage, job_id)).lane

        assert await lane_of_next("before") == "default"
        await ContractIncarnation(
            storage, "w1", tasks={"send": "gpu", "other": "process"}
        ).register()
        assert await lane_of_next("gpu") == "gpu"
        await ContractIncarnation(storage, "w2", tasks={"other": "gpu"}).register()
        assert await lane_of_next("still gpu") == "gpu"
        worker = await ContractIncarnation(storage, "w3", tasks={"send": "process"}).register()
        await worker.die()
        assert await lane_of_next("of the dead") == "process"
        await ContractIncarnation(storage, "w4", tasks={"send": "default"}).register()
        assert await lane_of_next("default") == "default"
        # A job stays where it was put.
        assert (await record_of(storage, "gpu")).lane == "gpu"
