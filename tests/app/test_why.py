"""``handle.why()``: what it says of each reason, and that it says nothing else."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from headrace import App, JobNotFound, JobState, Limit, ReasonKind, Why
from headrace.limit import Gate, Terms, gates_text
from headrace.storage import Storage, Struck, Update, open_storage
from headrace.strike import pause_of, strike_of
from headrace.testing import Kit
from headrace.testing.contract.steps import (
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    bring,
    retried,
    started,
    unknown_task,
)
from headrace.testing.contract.turns import a_fair_job

ONE, TWO = Terms(1), Terms(2)
TEN_A_MINUTE = Terms(0, 10, MINUTE_MS, 1)
BOTH = Terms(1, 10, MINUTE_MS, 1)
PAUSED, BEHIND, NEXT = ReasonKind.PAUSED, ReasonKind.BEHIND, ReasonKind.NEXT


@pytest_asyncio.fixture
async def storage() -> AsyncIterator[Storage]:
    storage = open_storage(f"memory://why-{secrets.token_hex(6)}")
    yield storage
    await storage.aclose()


@pytest.fixture
def client(storage: Storage) -> ContractClient:
    return ContractClient(storage)


@pytest_asyncio.fixture
async def worker(storage: Storage) -> ContractIncarnation:
    return await ContractIncarnation(storage, "w1", tasks={"send": "default"}).register()


async def why(storage: Storage, job_id: str = "x") -> Why:
    situation = await storage.why(QUEUE, job_id)
    assert situation is not None
    return Why.of(situation)


async def kinds(storage: Storage, job_id: str = "x") -> list[str]:
    return [reason.kind.value for reason in (await why(storage, job_id)).reasons]


async def told(storage: Storage, job_id: str = "x") -> tuple[str, str]:
    """Return text and advice of the only reason."""
    [reason] = (await why(storage, job_id)).reasons
    return reason.text, reason.advice


async def test_it_is_the_next(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job())
    text, advice = await told(storage)
    assert text == "Nothing holds it up: it is the next of its lane."
    assert advice.startswith("It starts when a worker has a free slot: within two seconds")


async def test_others_come_before_it(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job())
    text, _ = await told(storage)
    assert text.startswith("1 other job of its lane stands before it: those of")
    await client.enqueue(a_job("b", priority=9))
    [reason] = (await why(storage)).reasons
    assert (reason.kind, reason.before, reason.is_least) == (BEHIND, 2, False)
    assert reason.text.startswith("2 other jobs of its lane stand before it: those of")


async def test_the_queue_is_paused_which_comes_before_all_else(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job(), a_job("later", delay_ms=HOUR_MS))
    await storage.pause(QUEUE)
    assert await told(storage, "a") == (
        "Queue mail is paused: nothing of it is claimed.",
        "Resume it: headrace queue resume mail",
    )
    assert await kinds(storage) == [PAUSED, BEHIND]
    assert await kinds(storage, "later") == [PAUSED, ReasonKind.TIME]


async def test_no_worker_is_alive(storage: Storage, client: ContractClient) -> None:
    await client.enqueue(a_job())
    assert await told(storage) == (
        "No worker of queue mail is alive.",
        "Start one that serves it: headrace worker MODULE:ATTR --queues mail",
    )


async def test_no_worker_has_slots_of_its_lane(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("x", lane="process"), a_job("y", lane="gpu"))
    assert await told(storage) == (
        "No live worker of queue mail has a slot of lane process, which it needs: 1 is alive.",
        "Start one with --process-slots; headrace workers shows those that run.",
    )
    await ContractIncarnation(storage, "w2").register()
    text, _ = await told(storage, "y")
    assert text == (
        "No live worker of queue mail has a slot of lane gpu, which it needs: 2 are alive."
    )
    await ContractIncarnation(storage, "w3", lanes={"gpu": 2}).register()
    text, _ = await told(storage, "y")
    assert text == "Nothing holds it up: it is the next of its lane."


async def test_no_worker_has_as_many_slots_as_it_needs(
    storage: Storage, client: ContractClient
) -> None:
    await client.enqueue(a_job("x", lane="gpu", slots=3))
    await ContractIncarnation(storage, "w1", lanes={"gpu": 2, "default": 9}).register()
    text, advice = await told(storage)
    assert text == (
        "No live worker of queue mail has 3 slots of lane gpu, which it needs: 1 is alive, the "
        "largest has 2."
    )
    assert advice == "Start one with so many; headrace workers shows those that run."
    await ContractIncarnation(storage, "w2", lanes={"gpu": 3}).register()
    _, advice = await told(storage)
    assert advice.startswith("It starts when a worker has 3 free slots: within two seconds")


async def test_no_worker_knows_its_task(storage: Storage, client: ContractClient) -> None:
    await client.enqueue(a_job())
    await ContractIncarnation(storage, "w1", tasks={"other": "default"}).register()
    text, advice = await told(storage)
    assert text == "No live worker of queue mail knows the task send: 1 is alive."
    assert "imports the module" in advice
    await ContractIncarnation(storage, "w2", tasks={"send": "default"}).register()
    assert await kinds(storage) == [NEXT]


async def test_its_time_has_not_come(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job(delay_ms=HOUR_MS))
    [reason] = (await why(storage)).reasons
    assert reason.until is not None
    left = reason.until - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert reason.text.startswith(f"Its time comes at {reason.until:%Y-%m-%d %H:%M:%S} UTC (in ")
    assert 'on_conflict="update"' in reason.advice


async def test_it_failed_and_is_to_run_again(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    job = await started(client, worker)
    await worker.settle(job, retried(MINUTE_MS))
    [reason] = (await why(storage)).reasons
    assert reason.text.startswith(
        "Its handler has failed 1 time, last with ValueError: no such address. It runs again at "
    )
    assert reason.advice == "Mend the handler; headrace job show x has the traceback."
    assert reason.until is not None


async def test_workers_have_left_it_to_others(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    job = await started(client, worker)
    await worker.settle(job, unknown_task())
    found = await why(storage)
    assert [reason.kind for reason in found.reasons] == [ReasonKind.TIME, ReasonKind.PUT_BACK]
    assert found.reasons[1].text.endswith("ago): UnknownTask: send.")


async def test_its_time_has_come_and_nobody_has_claimed(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job(delay_ms=1))
    while (await kinds(storage)) != [ReasonKind.DUE]:
        pass
    text, advice = await told(storage)
    assert text.startswith("It has been due since ")
    assert advice.startswith("The next claim of a worker puts it in line")


async def test_it_is_too_late_for_it(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job(expires_in_ms=1))
    while ReasonKind.EXPIRED not in (await kinds(storage)):
        pass
    assert await kinds(storage) == [ReasonKind.EXPIRED, BEHIND]


async def test_the_queue_lets_no_more_run(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job())
    await worker.claim_one()
    await storage.configure(QUEUE, max_active=1)
    text, advice = await told(storage)
    assert text == "Queue mail lets 1 job run at once, and 1 is active."
    assert advice.endswith("To allow more: headrace queue configure mail --max-active N")


async def test_a_limit_says_who_has_its_places(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(*(a_gated_job(name, "42", TWO) for name in ("a", "b", "c", "x")))
    await worker.claim(1)
    found = await why(storage)
    assert str(found) == (
        "Job x of send in mail is blocked:\n"
        "- Limit stripe allows 2 at once of key 42, and 1 runs and 1 is ready (a, b); 1 other job "
        "is in line before it.\n"
        "  It goes on as they end. To allow more: headrace queue limit mail stripe --concurrency N"
    )
    [reason] = found.reasons
    assert (reason.kind, reason.limit, reason.key) == (ReasonKind.LIMIT, "stripe", "42")
    assert (reason.jobs, reason.before) == (("a", "b"), 1)
    text, _ = await told(storage, "c")
    assert text.endswith("(a, b); it is the first in line.")


async def test_many_holders_are_not_all_said(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(*(a_gated_job(f"{n}", "", Terms(5), name="a b") for n in range(6)))
    await worker.claim()
    text, advice = await told(storage, "5")
    assert text == ("Limit a b allows 5 at once, and 5 run (0, 1, 2, …); it is the first in line.")
    assert advice.endswith("headrace queue limit mail 'a b' --concurrency N")


async def test_every_limit_without_room_is_told(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "", ONE, name="mail"))
    three = gates_text([Gate("stripe", "k", ONE), Gate("db", "", TWO), Gate("mail", "", ONE)])
    await client.enqueue(a_job(gates=three))
    found = await why(storage)
    assert [(reason.limit, reason.jobs, reason.before) for reason in found.reasons] == [
        ("stripe", ("a",), 0),
        ("mail", ("b",), None),
    ]


async def test_a_rate_says_when_its_turn_comes_at_the_earliest(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(*(a_gated_job(name, "k", TEN_A_MINUTE) for name in "abcx"))
    text, _ = await told(storage)
    assert text == (
        "Limit stripe lets 10/min start of key k, and 1 is ready (a): those that are ready start "
        "first; 2 other jobs are in line before it."
    )
    await worker.claim()
    [reason] = (await why(storage)).reasons
    assert reason.until is not None
    # One token is to come for each of the two before it, and one for itself.
    assert timedelta(seconds=12) < reason.until - (await why(storage)).at <= timedelta(seconds=18)
    assert reason.text.startswith(
        "Limit stripe lets 10/min start of key k, and as many have; 2 other jobs are in line "
        f"before it. At this rate it starts no earlier than {reason.until:%Y-%m-%d %H:%M:%S} UTC"
    )
    assert reason.advice == (
        "Wait; or allow more: headrace queue limit mail stripe --rate N/PERIOD"
    )


async def test_what_allows_more_of_one_keeps_the_other(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_gated_job("a", "k", BOTH), a_gated_job("x", "k", BOTH))
    await worker.claim()
    found = await why(storage)
    assert [reason.kind for reason in found.reasons] == [ReasonKind.LIMIT, ReasonKind.RATE]
    assert [reason.advice.partition("headrace ")[2] for reason in found.reasons] == [
        "queue limit mail stripe --concurrency N --rate 10/min",
        "queue limit mail stripe --concurrency 1 --rate N/PERIOD",
    ]


async def test_what_is_ready_may_wait_for_a_limit_that_was_lowered(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_gated_job("a", "k", TWO), a_gated_job("x", "k", TWO))
    await worker.claim(1)
    assert await kinds(storage) == [NEXT]
    await storage.set_limit(QUEUE, "stripe", ONE)
    text, _ = await told(storage)
    assert text == "Limit stripe allows 1 at once of key k, and 1 runs and 1 is ready (a, x)."


async def test_its_task_is_paused(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job("a"), a_job())
    await storage.strike(QUEUE, pause_of("send"))
    found = await why(storage)
    assert [reason.kind for reason in found.reasons] == [PAUSED, BEHIND]
    assert found.reasons[0].text == "Task send is paused in queue mail."
    assert found.reasons[0].advice == "Resume it: headrace queue resume mail --task send"
    assert await worker.claim() == []
    text, _ = await told(storage)
    assert text == "Task send is paused in queue mail; 1 other job is in line before it."


@pytest.mark.parametrize(
    ("payload", "is_told"),
    [
        (b'{"customer":"42"}', True),
        (b'{"customer":"7"}', False),
        (b'{"customer":42}', False),
        (b'{"region":"eu"}', True),  # the default of customer may be "42"
        (b"\x93 another codec's", True),
    ],
    ids=["as-asked", "another", "a-number", "left-out", "unreadable"],
)
async def test_a_strike_on_other_arguments_is_none_of_its_reasons(
    storage: Storage, client: ContractClient, payload: bytes, *, is_told: bool
) -> None:
    await client.enqueue(a_job(payload=payload))
    await storage.strike(QUEUE, strike_of(None, {"customer": "42"}, "cancel"))
    found = [reason.kind for reason in (await why(storage)).reasons]
    assert (ReasonKind.STRUCK in found) is is_told


async def test_a_strike_holds_it_back_or_cancels_it(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_job())
    of_task = strike_of("send", None, "cancel")
    await storage.strike(QUEUE, of_task)
    assert await told(storage) == (
        f"Strike {of_task.name} cancels jobs of task send.",
        f"Lift it: headrace queue lift mail {of_task.name}",
    )
    await storage.lift(QUEUE, of_task.id)
    strike = strike_of(None, {"customer_id": "42", "region": None}, "wait")
    await storage.strike(QUEUE, strike)
    which = f'Strike {strike.name} holds back jobs with customer_id="42", region=null'
    text, _ = await told(storage)
    assert text == f"{which}: the worker that claims this one sees whether it is among them."
    job = await worker.claim_one()
    await worker.settle(job, Struck(strike.id))
    [reason] = (await why(storage)).reasons
    assert (reason.kind, reason.text) == (ReasonKind.STRUCK, f"{which}; it is the first in line.")


async def test_another_job_of_its_key_has_the_turn(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(*(a_fair_job(name, "42") for name in "abx"), a_fair_job("c"))
    await client.enqueue(a_fair_job("d"))
    [reason] = (await why(storage)).reasons
    assert reason.text == (
        "Keys take turns, and 1 is ready (a) of key 42; 1 other job is in line before it."
    )
    assert (reason.kind, reason.limit, reason.key) == (ReasonKind.TURN, "fair", "42")
    text, _ = await told(storage, "d")
    assert text == (
        "Keys take turns, and 1 is ready (c) of those without a key; it is the first in line."
    )


async def test_it_runs(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await started(client, worker)
    text, advice = await told(storage)
    assert text.startswith("It runs, since ")
    assert text.endswith("ago), on worker mailer.")
    assert advice == "Its progress: headrace job show x. To stop it: headrace job cancel x"
    await storage.cancel(QUEUE, ["x"])
    text, _ = await told(storage)
    assert text.endswith("on worker mailer, and was asked to stop.")


async def test_its_worker_is_silent(storage: Storage, client: ContractClient) -> None:
    worker = await ContractIncarnation(storage, "w9", lease_ms=1).register()
    await started(client, worker)
    while "silent" not in (await told(storage))[0]:
        pass
    text, advice = await told(storage)
    assert text.startswith("It was started at ")
    assert advice.startswith("Another live worker of queue mail takes it back when the lease")


async def test_another_of_its_id_follows(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await started(client, worker)
    await client.enqueue(a_job(update=Update(), delay_ms=HOUR_MS))
    [_, reason] = (await why(storage)).reasons
    assert reason.text.startswith(
        "Another job of this id waits for the end of this one, and not before "
    )
    assert reason.advice.endswith("headrace job cancel x --only-next")
    assert (reason.kind, reason.jobs) == (ReasonKind.EARLIER, ("x",))
    assert reason.until is not None


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (JobState.COMPLETED, ("It has completed.", "Its result: headrace job show x")),
        (
            JobState.FAILED,
            (
                "It has failed (exhausted), last with ValueError: no such address.",
                "Mend the cause, then: headrace job retry x",
            ),
        ),
        (JobState.CANCELLED, ("It was cancelled.", "Enqueue it again to have it run.")),
    ],
    ids=["completed", "failed", "cancelled"],
)
async def test_it_has_ended(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    state: JobState,
    said: tuple[str, str],
) -> None:
    await bring(state, client, worker)
    assert await told(storage) == said


async def test_as_data_it_has_kind_and_words_of_each_reason(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("x", "k", ONE))
    found = (await why(storage)).to_dict()
    [reason] = found.pop("reasons")
    assert found.pop("at").endswith("Z")
    assert found == {"id": "x", "queue": QUEUE, "task": "send", "state": "blocked"}
    assert {name: value for name, value in reason.items() if name not in ("text", "advice")} == {
        "kind": "limit",
        "until": None,
        "limit": "stripe",
        "key": "k",
        "jobs": ["a"],
        "before": 0,
        "is_least": False,
    }


async def test_a_handle_tells_and_so_does_one_without_an_event_loop() -> None:
    app = App("memory://")

    @app.task(queue="pay", limits=[Limit("stripe", by="customer", concurrency=1)])
    async def charge(customer: int) -> int:
        return customer

    async with Kit(app) as kit:
        first, second = await charge.enqueue(1), await charge.enqueue(1)
        found = await second.why()
        assert isinstance(found, Why)
        assert [reason.kind for reason in found.reasons] == ["no_worker", "limit"]
        assert found.reasons[1].jobs == (first.id,)
        await kit.run_until_idle()
        assert [reason.kind for reason in (await second.why()).reasons] == ["ended"]
        with pytest.raises(JobNotFound, match="there is no job 'nothing' in queue 'pay'"):
            await app.job("nothing", queue="pay").why()
