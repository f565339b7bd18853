"""The port of a storage that blocks, for code without an event loop."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from headrace.storage.base import Storage
from headrace.storage.connections import Inbox


class BlockingStorage(Storage, Protocol):
    """A storage whose verbs are run by `headrace.storage.steps.at_once`, where no loop runs.

    Everything that holds for `Storage` holds here, and many threads may use one at once. After a
    fork each process has connections of its own. A call that is interrupted, as by
    `KeyboardInterrupt`, is done or not, and the next one is right. What is open when the process
    ends is closed.

    A channel, a waiter and a beater are opened as ever; the first two are for an event loop.
    """

    def for_tenant(self, tenant: str) -> BlockingStorage:
        """Return the storage of any tenant, over the same connections.

        Raises:
            InvalidOption: that is no name of a tenant.
        """

    def open_inbox(self) -> Inbox:
        """Return a new inbox; it connects on first use, and who opened it closes it."""

    def in_line(self) -> AbstractContextManager[BlockingStorage]:
        """Return the same storage for one thread, whose calls go out in order on one connection.

        Several may be in flight, each an `Ahead`. At the end of the context the connection is free
        for others; an answer that nobody has read by then is lost, and so are all that were in
        flight when the connection is: each raises `ReplyLost`.
        """

    def close(self) -> None:
        """Close every connection that no other storage uses, as `aclose` does.

        Later calls connect again; a second call is no error. A call in progress in another thread
        comes to its end.
        """
