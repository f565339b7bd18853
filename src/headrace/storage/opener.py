"""The protocol of what opens a scheme's URLs."""

from __future__ import annotations

from typing import Protocol

from headrace.storage.base import Storage


class Opener(Protocol):
    """Opens a scheme's URLs: what an entry point of the group ``headrace.storages`` names."""

    def __call__(self, url: str, *, allow_eviction: bool) -> Storage:
        """Return the storage for ``url`` of any tenant, not connected yet.

        `Storage.for_tenant` makes from it that of the tenant which is asked for.

        Args:
            url: whole, with its scheme; it may hold a password, so don't show it.
            allow_eviction: the user accepts a server that may throw jobs away.

        Raises:
            InvalidOption: the URL can't be used.
        """
