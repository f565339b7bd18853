"""The role of what limits jobs, and shows why they wait."""

from __future__ import annotations

from typing import Protocol

from headrace.limit import Terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.storage.verbs import reads, writes


class Limiter(Protocol):
    """The limits of queues. A *gate* is one of them with one key: it counts for itself.

    A job names its gates as it is enqueued, and they are its data: it keeps them to its end. The
    *terms* of a limit are its queue's: an operator's, else those that a worker declared last,
    else those that the first job brought. One without terms holds nobody up.

    *Places.* A job takes a place in each of its gates as it becomes ready, and gives them back as
    it ends or goes to wait for a time. It keeps them while it is ready and active, also where it is
    put back, stalls or is retired: then it is ready again at the head of its tier.

    *Room.* A gate has room for one more while ready + active are under its concurrency, and ready
    under the whole tokens of its rate; where both are said, both. Tokens come evenly, ``rate`` in
    ``rate_ms``, up to ``burst``, which a new gate has. A start takes one.

    *Lines.* A job that would become ready, for whatever reason, is ``blocked`` instead if one of
    its gates has no room, or has another job in its line that stands before this one: that is of
    a better tier, or of the same and came earlier. It waits in the line of the first such gate, in
    the order in which its gates were named, and has no place anywhere. It came when it would have
    become ready; so later ones of its tier and line don't pass it, and all others do.

    *Openings.* What gives a gate room looks at the heads of its line in the same step: each takes
    its places and is ``queued``, or moves to the line of another of its gates that holds it up, or
    has expired and fails. One that is queued stands in its lane and tier by when it came, as if it
    had never waited: before those that came later, behind those that came before. A gate whose line
    waits for a token is due as a delayed job is: then a claim opens it. An opening makes at most
    `GATE_LOOKS` looks a place that came free, and a call `GATES_LOOKS`; the gate is due at once
    where these left room and a line behind.

    *Starts.* A job starts if active jobs of each of its gates are under the concurrency and a token
    of each rate is there. These may be missing because the terms changed, or a job came back that
    had taken its token: then it gives its places back, and waits in the line of the first gate that
    lacks them by when it came, uncharged.

    *Turns.* The limit `FAIR_LIMIT` has no terms that anybody sets, and no place for who is active:
    its gate has room while none of its jobs is ready. A job that names it meets that of its own
    lane and tier, ``fair:<lane>:<tier>``. A claim that starts one lets the next of that key in
    before it takes another, so it takes what as many claims of one job would; after `CLAIM_TURNS`
    such starts it ends, and says that there is more. Who comes in by that, or had to wait in any
    line and takes turns, stands at the tail of its tier and not where it came: so between two jobs
    of a key each other key of the lane and tier that waits has one. Who is put back, stalls or is
    retired is ready beside the one of its key that waits for its turn.

    Waiting in a line is neither attempt nor stall. A gate in which nobody has a place or waits is
    forgotten once its tokens are all there.
    """

    @writes()
    async def set_limit(self, queue: str, name: str, terms: Terms | None) -> None:
        """Set the terms of a limit over what workers and jobs say; None: what they say holds again.

        Gates that have more room by them are opened in this step, as far as its bounds go, and the
        rest by claims. Those with less room give no more places, and what is ready beyond them does
        not start. Tokens that were taken stay taken.

        Args:
            queue: the queue; it need not be there, and is on the tenant's list then.
            name: the limit; it need not be known.
            terms: within the bounds of `check_terms`.
        """

    @reads
    async def limits(self, queue: str) -> list[LimitInfo]:
        """Return the limits that are known in a queue, by name.

        Args:
            queue: the queue; it need not be there.
        """

    @reads
    async def gate(self, queue: str, name: str, key: str) -> GateInfo:
        """Return how one gate stands; one that is not there has nothing in it, and all its tokens.

        Args:
            queue: the queue; it need not be there.
            name: the limit.
            key: the key's text.
        """
