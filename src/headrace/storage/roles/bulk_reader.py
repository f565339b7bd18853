"""The role of what reads very many events."""

from __future__ import annotations

from typing import Protocol

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.verbs import reads


class BulkReader(Protocol):
    """The events of `Inspector.events`, for pipelines: as they are kept, and where which are.

    Reading holds nothing back and trims nothing; `Admin.acknowledge` does. The numbers of events
    tell what was trimmed before it was read.
    """

    @reads
    async def event_lines(
        self, queue: str, *, after: str = "0", until: str = "", limit: int = 100
    ) -> list[EventLines]:
        """Return entries of events in their order, as they are kept.

        They have all lines, also of kinds that only a newer release knows. `read_lines` reads the
        lines of one as `Inspector.events` does.

        Args:
            queue: the queue; it need not be there.
            after: a ``stream_id``: read on behind its entry; "0": from the first that is kept.
            until: a ``stream_id``: read up to its entry, that one too; "": up to the last.
            limit: most entries, 1 to `EVENT_LINES_LIMIT`; more is taken for that. Fewer come only
                where there are no more. So many of 20 events have about 1.5 MB, and 45 MB where
                each says as much of an error as it may.

        Raises:
            InvalidOption: ``after`` or ``until`` is no id of an entry.
        """

    @reads
    async def event_span(self, queue: str) -> EventSpan:
        """Return where the events begin and end that are kept now; it looks at two entries.

        Args:
            queue: the queue; it need not be there.
        """

    @reads
    async def event_place(self, queue: str, at_ms: int) -> EventPlace | None:
        """Return the last kept entry that is no later than an instant.

        It looks at few entries, however many there are. Of several entries of one millisecond the
        last is returned. Where the clock was set back, an entry may be earlier than one before it:
        then too what is returned is no later than the instant, and the one behind it is.

        Args:
            queue: the queue; it need not be there.
            at_ms: the instant, in milliseconds since the epoch by the storage's clock.

        Returns:
            The place. None: all that is kept is later, or nothing is kept.
        """
