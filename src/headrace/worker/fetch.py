"""Claims the jobs of one lane for one incarnation: the only place that waits for work.

Free slots, then a claim, then attempts; when there was nothing, a wake-up token, the next due time
or two seconds, whichever is first, and again. A token is only a hint: it may be lost, doubled or
stolen.

Where the next job needs more slots than are free, the worker lets its slots come free and claims
nothing meanwhile. Only every two and a half seconds it looks whether that job is still the next: it
may have been cancelled, or another worker has taken it.

While nothing runs, a claim of one job waits on the server behind the call that blocks, so that the
job needs no more round trip. Not while anything runs: a handler that blocks the loop would keep
that job waiting. For the same reason not where the worker has other queues or lanes.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from headrace.errors import StorageError
from headrace.repeat import repeat_until_answered
from headrace.storage.base import Waiter
from headrace.storage.incarnations import ClaimReply
from headrace.storage.values import CallId
from headrace.worker.incarnation import Incarnation
from headrace.worker.shortage import Shortage

BLOCK_S = 2.0
LATE_S = 0.5  # how long after its time-out a blocking call may end
REFUSED_PAUSE_S = 1.0
UNBLOCK_S = 1.0


class Fetcher:
    """The consumer of one incarnation.

    Args:
        incarnation: whose jobs.
        lane: which of them.
    """

    def __init__(self, incarnation: Incarnation, lane: str) -> None:
        self._incarnation = incarnation
        self._lane = lane
        self._slots = incarnation.lanes[lane]
        self._waiter: Waiter
        self._nudge = asyncio.Event()
        self._blocked: asyncio.Task[bool] | None = None
        self._quiet_until = -math.inf  # until then only a token brings a job, by the loop's clock
        self._may_ask_ahead = False
        self._is_alone = len(incarnation.lanes) == 1 and not incarnation.lanes[lane].is_shared
        self._refused_until = -math.inf
        self._shortage = Shortage()
        self._is_closing = False
        self._asking = anyio.CancelScope()
        self.is_consuming: bool = False
        self.empty_at: float = -math.inf
        incarnation.on_change(self._nudge.set)
        self._slots.on_grant(incarnation.queue, self._nudge.set)

    def close(self) -> None:
        """Claim no more; `run` returns soon, whether or not the storage answers."""
        self._is_closing = True
        self._nudge.set()
        asyncio.get_running_loop().call_later(UNBLOCK_S, self._asking.cancel)

    def look(self) -> None:
        """End a pending sleep: claim now."""
        self._quiet_until = -math.inf
        self._nudge.set()

    async def run(self) -> None:
        """Claim until the incarnation is closed or gone; after an error it may be called again."""
        incarnation = self._incarnation
        slots = self._slots
        # A new one each time: the one before was interrupted for good.
        self._waiter = incarnation.storage.open_waiter(
            incarnation.queue, incarnation.id, self._lane
        )
        try:
            while not self._is_over:
                self._nudge.clear()
                if incarnation.settler.is_backed_up:
                    await self._sleep(REFUSED_PAUSE_S)
                    continue
                has_token = self._take_token()
                is_quiet = self._quiet_s > 0
                if is_quiet and not self._can_ask_ahead:
                    if not self._is_refused:
                        self._block()
                    await self._sleep(self._quiet_s)
                    continue
                count = self._take_slots() or self._take_early()
                if count:
                    await self._fill(count, is_ahead=is_quiet)
                elif has_token:
                    await self._claim(0)
                else:
                    await self._sleep(self._shortage.wait_s(incarnation.allowance.grows_in_s))
        finally:
            self.is_consuming = False
            slots.give_back(incarnation.queue, 0, is_hungry=False)
            with anyio.CancelScope(shield=True):
                await self._unblock()
                await self._waiter.aclose()

    @property
    def _is_over(self) -> bool:
        return self._is_closing or self._incarnation.lease.is_gone.is_set()

    @property
    def _quiet_s(self) -> float:
        return self._quiet_until - asyncio.get_running_loop().time()

    @property
    def _is_refused(self) -> bool:
        return asyncio.get_running_loop().time() < self._refused_until

    @property
    def _can_ask_ahead(self) -> bool:
        return self._may_ask_ahead and not self._incarnation.attempts

    def _take_slots(self) -> int:
        """Take what may be claimed now: free slots, as far as the allowance goes."""
        incarnation = self._incarnation
        allowance = incarnation.allowance
        if not allowance.is_reduced:
            return self._slots.take(incarnation.queue)
        room = allowance.room(incarnation.held + incarnation.claims.asked)
        if room < max(1, self._shortage.needs):
            # It comes back by itself, so its turn is another queue's meanwhile.
            self._slots.give_back(incarnation.queue, 0, is_hungry=False)
            return 0
        count = self._slots.take(incarnation.queue)
        if count > room:
            self._slots.give_back(incarnation.queue, count - room, is_hungry=False)
        return min(count, room)

    def _take_early(self) -> int:
        """Take what is free although the next job needs more, if it is time to look for another."""
        if not self._shortage.is_time():
            return 0
        return self._slots.take_early(self._incarnation.queue)

    async def _fill(self, count: int, *, is_ahead: bool) -> None:
        """Claim for ``count`` slots that were taken, and note when there was nothing."""
        incarnation = self._incarnation
        asked = 1 if is_ahead else count
        got = 0
        is_hungry = False
        needs = 0
        asked_at = time.monotonic()
        try:
            reply = await self._claim(asked, is_ahead=is_ahead)
            if reply is None:
                return
            for job in reply.jobs:
                incarnation.start(job, self._lane)
            got = sum(job.slots for job in reply.jobs)
            needs = reply.awaited.get(self._lane, 0)
            is_hungry = reply.has_more or needs > 0 or (got == asked and not is_ahead)
            if not is_hungry:
                await asyncio.sleep(0)  # the handlers of an idle worker start before the rest here
        finally:
            queue = incarnation.queue
            self._slots.give_back(queue, count - got, is_hungry=is_hungry, needs=needs)
            self._shortage.note(needs)
        self._slots.weigh(incarnation.queue, reply.weight)
        if not is_hungry:
            if not got:
                self.empty_at = asked_at
            self._rest(reply.next_due_ms)

    def _rest(self, next_due_ms: int | None) -> None:
        """Note how long nothing is to be expected without a token."""
        due_s = math.inf if next_due_ms is None else next_due_ms / 1000
        now = asyncio.get_running_loop().time()
        self._may_ask_ahead = self._is_alone and due_s > BLOCK_S and not self._is_refused
        longest_s = self._refused_until - now if self._is_refused else BLOCK_S + LATE_S
        self._quiet_until = now + min(due_s, longest_s)

    async def _claim(self, count: int, *, is_ahead: bool = False) -> ClaimReply | None:
        """Claim, however long the storage is away; None: the incarnation is over."""
        claims = self._incarnation.claims
        async with claims as call:
            reply = await self._ask_ahead(call) if is_ahead else None
            if reply is None:
                claims.asked = count
                reply = await self._repeat(call, count)
            if reply is not None and reply.jobs and not await self._meet_strikes(reply.strikes):
                return None
        if reply is not None and reply.is_gone:
            self._incarnation.lease.condemn()
            return None
        return reply

    async def _meet_strikes(self, version: int) -> bool | None:
        """Know the strikes that hold for what was claimed; None: it does not, and is over."""
        if self._incarnation.knows_strikes(version):
            return True
        return await repeat_until_answered(
            partial(self._incarnation.meet_strikes, version),
            is_over=lambda: self._is_over,
            pause=self._pause,
        )

    async def _ask_ahead(self, call: CallId) -> ClaimReply | None:
        """Claim one job at the end of the blocking call.

        None where that takes too long or fails: then the usual claim repeats it, and this one comes
        to nothing, whenever it is made.
        """
        self._block()
        nonce = self._incarnation.claims.nonce
        ahead = asyncio.create_task(
            self._waiter.claim(call=call, nonce=nonce, slots=self._incarnation.asked(self._lane, 1))
        )
        ahead.add_done_callback(self._has_ended)
        try:
            while not (ahead.done() or self._is_over or self._quiet_s <= 0):
                self._nudge.clear()
                await self._sleep(self._quiet_s)
            if self._is_over:
                await self._unblock()
                await asyncio.wait([ahead], timeout=UNBLOCK_S)
            if ahead.done():
                self._take_token()  # this claim was for it
                with suppress(StorageError):
                    return ahead.result()
        finally:
            ahead.cancel()
        return None

    async def _repeat(self, call: CallId, count: int) -> ClaimReply | None:
        """Claim until there is an answer; None: the incarnation is over.

        Repetitions carry the same number and nonce, so what a lost answer claimed comes again.
        """
        incarnation = self._incarnation

        async def ask() -> ClaimReply | None:
            with anyio.CancelScope() as self._asking:
                return await incarnation.claim(call, self._lane, count)
            return None  # what it may have claimed is put back with the incarnation

        reply = await repeat_until_answered(
            ask, is_over=lambda: self._is_over, on_failure=self._note_outage, pause=self._pause
        )
        if reply is not None:
            self._note_answer()
        return reply

    async def _pause(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._nudge.clear()

    def _note_outage(self, error: StorageError) -> None:
        self.is_consuming = False
        self._incarnation.outage.begin(self._incarnation.queue, self._lane, error)

    def _note_answer(self) -> None:
        self.is_consuming = True
        # Also one of an incarnation before this one, which was fenced meanwhile.
        self._incarnation.outage.end(self._incarnation.queue, self._lane)

    def _block(self) -> None:
        """Have one blocking call on its way; it ends by itself, or with its connection."""
        if self._blocked is None:
            self._blocked = asyncio.create_task(self._waiter.wait(BLOCK_S))
            self._blocked.add_done_callback(self._has_ended)

    def _has_ended(self, task: asyncio.Task[Any]) -> None:
        self._nudge.set()
        if not task.cancelled():
            task.exception()  # where the incarnation is over nobody looks

    def _take_token(self) -> bool:
        """Whether a blocking call has ended with a token."""
        if self._blocked is None or not self._blocked.done():
            return False
        blocked, self._blocked = self._blocked, None
        self._quiet_until = -math.inf
        try:
            return blocked.result()
        except StorageError:
            # Memory is full, or the connection is lost: look once a second instead.
            self._refused_until = asyncio.get_running_loop().time() + REFUSED_PAUSE_S
            return False

    async def _sleep(self, timeout_s: float | None) -> None:
        """Wait for a nudge: a grant, a token, the end of a block, or the incarnation's end."""
        if timeout_s is None:
            await self._nudge.wait()
            return
        timer = asyncio.get_running_loop().call_later(timeout_s, self._nudge.set)
        try:
            await self._nudge.wait()
        finally:
            timer.cancel()

    async def _unblock(self) -> None:
        """End the blocking call."""
        blocked, self._blocked = self._blocked, None
        if blocked is not None and not blocked.done():
            with anyio.move_on_after(UNBLOCK_S):
                await self._waiter.interrupt()
                await asyncio.wait([blocked])
            # A silent server must not hold the worker up: a token that it still moves is only late.
            blocked.cancel()
            await asyncio.wait([blocked])
        if blocked is not None and not blocked.cancelled():
            blocked.exception()
