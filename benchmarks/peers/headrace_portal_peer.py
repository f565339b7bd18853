"""headrace's asynchronous app behind a portal: a thread with an event loop, as a program could."""

from __future__ import annotations

from contextlib import ExitStack

from anyio.from_thread import start_blocking_portal

from benchmarks.peers import headrace_peer
from benchmarks.peers.program import main
from headrace.job import Job


class HeadracePortalPeer(headrace_peer.HeadracePeer):
    """Each call goes to the thread and back."""

    name = "headrace portal"
    notes = "the asynchronous app in a thread, by anyio's blocking portal on uvloop"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.stack = ExitStack()

    async def open(self) -> None:
        """Start the thread and open the app in its loop."""
        portal = start_blocking_portal(backend_options={"use_uvloop": True})
        self.portal = self.stack.enter_context(portal)
        self.stack.enter_context(self.portal.wrap_async_context_manager(self.app))

    async def close(self) -> None:
        """Close the app and end the thread."""
        self.stack.close()

    async def enqueue(self, x: int) -> None:
        """Enqueue one."""
        self.portal.call(self.noop.enqueue, x)

    async def enqueue_many(self, count: int) -> None:
        """Give all jobs to the bulk call."""
        jobs: list[Job[int]] = [self.noop.job(x) for x in range(count)]
        self.portal.call(self.app.enqueue_many, jobs)

    async def round_trip(self, x: int) -> None:
        """Request and block on the response."""
        assert self.portal.call(self.noop.enqueue_and_wait, x) == x

    async def send(self, sent_ns: int) -> None:
        """Enqueue one."""
        self.portal.call(self.since.enqueue, sent_ns)


if __name__ == "__main__":
    main(HeadracePortalPeer)
