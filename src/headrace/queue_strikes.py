"""What of a queue is not to be run for now: all of it, a task, or jobs with some arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headrace.named_task import NamedTask
from headrace.queue_limits import QueueLimits
from headrace.storage.base import Striker, check_has_strikes
from headrace.strike import Value, pause_id, pause_of, strike_id, strike_of
from headrace.views.strikes import QueueStrike


class QueueStrikes(QueueLimits):
    """The pauses and strikes of a queue: a part of `Queue`."""

    def _striker(self) -> Striker:
        storage = self._storage()
        check_has_strikes(storage)
        return storage

    async def pause(self, task: NamedTask | str | None = None) -> None:
        """Stop workers from claiming; active jobs go on and enqueueing works. Safe to repeat.

        Args:
            task: only jobs of this task, itself or its name; others pass them. They are ``blocked``
                as workers come to them, and keep their places. None: all jobs of the queue.

        Raises:
            InvalidOption: that is no name of a task.
            TooManyStrikes: the queue has 100 strikes, its paused tasks among them.
            StorageRefused: the storage can't pause a task.
        """
        if task is None:
            await self._storage().pause(self.name)
        else:
            await self._striker().strike(self.name, pause_of(task))

    async def resume(self, task: NamedTask | str | None = None) -> None:
        """Let workers claim again, at once. Safe to repeat.

        Args:
            task: jobs of this task, itself or its name, if that is paused for itself; None: the
                queue.

        Raises:
            InvalidOption: that is no name of a task.
            StorageRefused: the storage can't pause a task.
        """
        if task is None:
            await self._storage().resume(self.name)
        else:
            await self._striker().lift(self.name, pause_id(task))

    async def strike(
        self,
        task: NamedTask | str | None = None,
        *,
        where: Mapping[str, Value] | None = None,
        action: Literal["wait", "cancel"] = "wait",
    ) -> str:
        """Have jobs of a task, or with some arguments, not be run until that is lifted.

        It holds for every claim from now on, until `lift`; what is active goes on. Jobs are met as
        workers come to them. One that is met by its arguments is handed to a worker, which lays it
        aside: that counts as a start, and neither as an attempt nor as a stall.

        Args:
            task: jobs of this task, itself or its name; None: of every task.
            where: only jobs whose arguments have these values, by parameter, one of 8 at most: a
                string, number, truth value or None. A value is compared with the argument as it
                is stored in JSON; a parameter that a call left out has its default.
            action: ``"wait"``: they are ``blocked``, and keep their order; ``"cancel"``: they end
                cancelled, for the reason ``struck``.

        Returns:
            The strike's id.

        Raises:
            InvalidOption: neither a task nor a condition is said, or a value is not valid.
            TooManyStrikes: the queue has 100 strikes, its paused tasks among them.
            StorageRefused: the storage has no strikes.
        """
        strike = strike_of(task, where, action)
        await self._striker().strike(self.name, strike)
        return strike.name

    async def strikes(self) -> list[QueueStrike]:
        """Return the strikes of the queue, in the order in which they were set.

        Paused tasks are in its `stats`.

        Raises:
            StorageRefused: the storage has no strikes.
        """
        found = await self._striker().strikes(self.name)
        return [QueueStrike.of(self.name, one) for one in found.strikes if not one.paused_task]

    async def lift(self, strike: str) -> bool:
        """Lift a strike: its jobs go on by the places that they had. Safe to repeat.

        Args:
            strike: its id.

        Returns:
            Whether there was one.

        Raises:
            InvalidOption: that is no id of a strike.
            StorageRefused: the storage has no strikes.
        """
        return await self._striker().lift(self.name, strike_id(strike))
