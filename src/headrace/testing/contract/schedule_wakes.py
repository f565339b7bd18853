"""Contract of the word to schedulers: ``write_schedules`` tells who has named a channel."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from headrace.storage import (
    CHANNELS_LIMIT,
    SCHEDULES_HEARD_MS,
    Channel,
    End,
    ScheduleWrite,
    Storage,
)
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.schedule_steps import (
    NEIGHBOUR,
    a_schedule,
    deletion,
    put,
    take,
    write,
)
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job
from headrace.testing.contract.watch import next_end, open_channel

WORD = End("", "", None)
FIRST_MS = 1_000


async def messages_to(
    storage: Storage, client: ContractClient, *channels: Channel
) -> list[list[End]]:
    """Return what each channel has been told until now: a job that ends comes behind it."""
    jobs = [f"probe {n}" for n in range(len(channels))]
    await client.enqueue(
        *(a_job(job, channel=each.name) for job, each in zip(jobs, channels, strict=True))
    )
    await storage.cancel(QUEUE, jobs)
    found: list[list[End]] = []
    for job, channel in zip(jobs, channels, strict=True):
        told: list[End] = []
        while (end := await next_end(channel)).id != job:
            told.append(end)
        found.append(told)
    return found


class ScheduleWakesContract(Contract):
    """Tests of what `write_schedules` tells.

    Of two schedules one is due in a second, and one a second later.
    """

    async def _fill(self, storage: Storage, now_ms: int) -> None:
        await write(
            storage,
            a_schedule("first", due_ms=now_ms + FIRST_MS),
            a_schedule("second", due_ms=now_ms + 2 * FIRST_MS),
        )

    @pytest.mark.parametrize(
        ("schedule_id", "changes"),
        [
            ("new", {}),
            ("first", {"expected": 1}),
            ("second", {"expected": 1}),
        ],
        ids=["new", "first", "second"],
    )
    async def test_a_write_that_brings_the_first_due_instant_forward_is_told_once(
        self,
        storage: Storage,
        client: ContractClient,
        advance: Advance,
        schedule_id: str,
        changes: dict[str, Any],
    ) -> None:
        now_ms = await advance(0)
        await self._fill(storage, now_ms)
        async with open_channel(storage) as channel:
            await take(storage, channel=channel.name)
            sooner = a_schedule(schedule_id, due_ms=now_ms + FIRST_MS - 1, **changes)
            later = a_schedule("later", due_ms=now_ms + FIRST_MS)
            assert None not in await write(storage, later, sooner, wakes=True)
            assert await messages_to(storage, client, channel) == [[WORD]]

    async def test_the_first_of_all_schedules_is_told(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        async with open_channel(storage) as channel:
            await take(storage, channel=channel.name)
            due_ms = await advance(0) + FIRST_MS
            assert await write(storage, a_schedule(due_ms=due_ms), wakes=True) == [1]
            assert await messages_to(storage, client, channel) == [[WORD]]

    async def test_what_is_held_is_first_due_when_its_hold_ends(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        now_ms = await advance(0)
        await put(storage, "held")
        async with open_channel(storage) as channel:
            await take(storage, hold_ms=FIRST_MS, channel=channel.name)
            await write(storage, a_schedule("a", due_ms=now_ms + FIRST_MS + 1), wakes=True)
            assert await messages_to(storage, client, channel) == [[]]
            await write(storage, a_schedule("b", due_ms=now_ms + FIRST_MS - 1), wakes=True)
            assert await messages_to(storage, client, channel) == [[WORD]]
            # Its own write ends the hold.
            await write(storage, a_schedule("held", expected=1), wakes=True)
            assert await messages_to(storage, client, channel) == [[WORD]]

    @pytest.mark.parametrize(
        "change",
        [
            a_schedule("new", due_ms=2 * FIRST_MS),
            a_schedule("new", due_ms=FIRST_MS),
            a_schedule("first", expected=1, due_ms=FIRST_MS),
            a_schedule("first", expected=1, due_ms=9 * FIRST_MS),
            a_schedule("first", expected=7, due_ms=1),
            deletion("first"),
            deletion("second"),
        ],
        ids=["later", "as early", "unchanged", "put off", "not made", "deleted", "other deleted"],
    )
    async def test_any_other_write_is_not_told(
        self, storage: Storage, client: ContractClient, advance: Advance, change: ScheduleWrite
    ) -> None:
        now_ms = await advance(0)
        await self._fill(storage, now_ms)
        changed = ScheduleWrite(
            id=change.id,
            expected=change.expected,
            due_ms=now_ms + change.due_ms,
            body=change.body,
        )
        async with open_channel(storage) as channel:
            await take(storage, channel=channel.name)
            await write(storage, changed, wakes=True)
            assert await messages_to(storage, client, channel) == [[]]

    async def test_a_write_that_is_to_wake_nobody_is_not_told(
        self, storage: Storage, client: ContractClient
    ) -> None:
        async with open_channel(storage) as channel:
            await take(storage, channel=channel.name)
            await write(storage, a_schedule(), wakes=False)
            assert await messages_to(storage, client, channel) == [[]]

    async def test_all_that_were_named_are_told_and_nobody_else(
        self, storage: Storage, client: ContractClient
    ) -> None:
        neighbour = storage.for_tenant(NEIGHBOUR)
        async with (
            open_channel(storage) as one,
            open_channel(storage) as two,
            open_channel(storage) as silent,
            open_channel(neighbour) as theirs,
        ):
            await take(storage, channel=one.name)
            await take(storage, channel=two.name)
            await take(neighbour, channel=theirs.name)
            await take(storage, channel="nobody.here")
            await write(storage, a_schedule(), wakes=True)
            found = await messages_to(storage, client, one, two, silent, theirs)
            assert found == [[WORD], [WORD], [], []]
        await neighbour.aclose()

    async def test_a_channel_is_told_for_a_while_after_it_was_named_last(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        async with open_channel(storage) as channel:
            await take(storage, channel=channel.name)
            await advance(SCHEDULES_HEARD_MS - 1)
            await take(storage, channel=channel.name)
            now_ms = await advance(SCHEDULES_HEARD_MS - 1)
            await write(storage, a_schedule("a", due_ms=now_ms), wakes=True)
            assert await messages_to(storage, client, channel) == [[WORD]]
            await advance(2)
            await write(storage, a_schedule("b", due_ms=now_ms - 1), wakes=True)
            assert await messages_to(storage, client, channel) == [[]]
            await take(storage, channel=channel.name)
            await write(storage, a_schedule("c"), wakes=True)
            assert await messages_to(storage, client, channel) == [[WORD]]

    async def test_no_more_channels_are_told_than_may_be(
        self, storage: Storage, client: ContractClient
    ) -> None:
        async with AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(open_channel(storage))
                for _ in range(CHANNELS_LIMIT + 6)
            ]
            for channel in channels:
                await take(storage, channel=channel.name)
            await write(storage, a_schedule(), wakes=True)
            found = await messages_to(storage, client, *channels)
            assert sorted(map(len, found)) == [0] * 6 + [1] * CHANNELS_LIMIT
