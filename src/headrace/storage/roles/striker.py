"""The role of what keeps some jobs of a queue from being run, until an operator lets them."""

from __future__ import annotations

from typing import Protocol

from headrace.storage.values import StrikeList
from headrace.storage.verbs import reads, writes
from headrace.strike import Strike


class Striker(Protocol):
    """The strikes of queues. A task that is paused is struck, too.

    *By task.* Claims meet a strike without ``where``: where one comes to a ready job of its task,
    the job is not taken. By ``wait`` it is ``blocked``, in the line that has the strike's id, by
    the place that it had, uncharged; its places in gates are given back. By ``cancel`` it ends
    cancelled, for the reason ``struck``. Of several strikes of a task the one that was set first
    holds. A job that is not ready is met once it is, and one that is active goes on.

    *By arguments.* Storages don't read arguments, so workers meet a strike with ``where``: a claim
    tells the version of these strikes, and who has not seen it reads them before it runs what it
    was given. A job that is met is settled as ``Struck``, or as ``Cancelled``.

    *Lifting.* What waits in a strike's line is opened when that is lifted, as a gate with new terms
    is: the first of them at once, in their order, and the rest by claims. Each stands by the place
    that it had, or where another strike or gate holds it up, in that line.
    """

    @writes()
    async def strike(self, queue: str, strike: Strike) -> None:
        """Set a strike; one of its id is replaced, and stands since then.

        Args:
            queue: the queue; it need not be there, and is on the tenant's list then.
            strike: checked; its ``since_ms`` is of no account.

        Raises:
            TooManyStrikes: there are `STRIKES_LIMIT`; nothing changed.
        """

    @writes()
    async def lift(self, queue: str, strike_id: str) -> bool:
        """Lift a strike, and return whether there was one; leave tokens.

        Args:
            queue: the queue; it need not be there.
            strike_id: the strike.
        """

    @reads
    async def strikes(self, queue: str) -> StrikeList:
        """Return the strikes of a queue, in the order in which they were set.

        Args:
            queue: the queue; it need not be there.
        """
