"""The role of what looks after the storage itself."""

from __future__ import annotations

from typing import Protocol

from headrace.storage.values import Finding
from headrace.storage.verbs import reads, writes


class Doctor(Protocol):
    """Whether the storage itself is well, whatever is in it."""

    @reads
    async def check(self) -> None:
        """Connect and see that the storage can be used as it is.

        Raises:
            StorageUnavailable: it can't be reached.
            StorageRefused: it can't be used, and why.
        """

    @reads
    async def tenants(self) -> list[str]:
        """Return all tenants that have a queue on their list or a schedule, sorted.

        Not this one alone: for operators only. A server looks at all of its keys for it, twice and
        in many small steps.
        """

    @reads
    async def diagnose(self) -> list[Finding]:
        """Look the storage over, for ``headrace doctor``; an empty list if there is nothing to say.

        It raises only where nothing could be looked at.
        """

    @writes()
    async def tidy(self) -> list[str]:
        """Remove code that other releases left in the storage; return its names, mostly none.

        A worker of such a release loads its own again when it needs it.
        """
