"""headrace with two customers that take turns."""

from __future__ import annotations

from benchmarks.peers.headrace_peer import HeadracePeer
from benchmarks.peers.program import main


class HeadraceFairPeer(HeadracePeer):
    """The many noop jobs are one customer's, those that are sent alone another's."""

    name = "headrace, in turns"
    notes = "as headrace, and the jobs of each customer have a fair key"

    async def enqueue_many(self, count: int) -> None:
        """Give all jobs of the one customer to the bulk call."""
        call = self.noop.options(fair_key="many")
        await self.app.enqueue_many(call.job(x) for x in range(count))

    async def send(self, sent_ns: int) -> None:
        """Await one enqueue of the other."""
        await self.since.options(fair_key="few").enqueue(sent_ns)


if __name__ == "__main__":
    main(HeadraceFairPeer)
