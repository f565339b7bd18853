"""headrace without an event loop: its synchronous client, which blocks in these coroutines."""

from __future__ import annotations

import warnings

from benchmarks.peers import headrace_peer
from benchmarks.peers.program import main
from headrace import SyncApp


class HeadraceSyncPeer(headrace_peer.HeadracePeer):
    """The defaults; the worker is that of the asynchronous app."""

    name = "headrace SyncApp"
    notes = "defaults: no event loop and no thread; the worker is headrace's own"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # The harness has a loop for everybody, and nothing else runs in it.
        warnings.simplefilter("ignore", RuntimeWarning)
        self.sync = SyncApp(self.app)
        self.noop_now = self.sync.bind(self.noop)
        self.since_now = self.sync.bind(self.since)

    async def open(self) -> None:
        """Connect."""
        self.sync.connect()

    async def close(self) -> None:
        """Disconnect."""
        self.sync.close()

    async def enqueue(self, x: int) -> None:
        """Enqueue one."""
        self.noop_now.enqueue(x)

    async def enqueue_many(self, count: int) -> None:
        """Give all jobs to the bulk call."""
        self.sync.enqueue_many(self.noop_now.job(x) for x in range(count))

    async def round_trip(self, x: int) -> None:
        """Request and block on the response."""
        assert self.noop_now.enqueue_and_wait(x) == x

    async def send(self, sent_ns: int) -> None:
        """Enqueue one."""
        self.since_now.enqueue(sent_ns)


if __name__ == "__main__":
    main(HeadraceSyncPeer)
