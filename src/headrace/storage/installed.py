"""Storages that other distributions bring, through entry points of the group ``headrace.storages``.

The name of an entry point is the URL's scheme, its value what opens such a URL.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import cast

from headrace.description import told
from headrace.errors import InvalidOption
from headrace.storage.opener import Opener

GROUP = "headrace.storages"


def installed_schemes() -> list[str]:
    """Return the schemes that installed distributions bring, sorted."""
    return sorted(entry_points(group=GROUP).names)


def find_opener(scheme: str) -> Opener | None:
    """Return what opens a scheme's URLs, None if no distribution brings it.

    Raises:
        InvalidOption: two distributions bring it, or what the one brings can't be used.
    """
    found = list(entry_points(group=GROUP, name=scheme))
    if not found:
        return None
    if len(found) > 1:
        raise InvalidOption(
            f"several distributions bring a storage for {scheme}://: "
            f"{', '.join(sorted(_brought_by(point) for point in found))}; uninstall all but one"
        )
    return _load(found[0])


def _load(point: EntryPoint) -> Opener:
    label = f"the storage for {point.name}:// of the distribution {_brought_by(point)}"
    try:
        opener = point.load()
    except Exception as error:  # another's module may raise anything
        raise InvalidOption(
            f"{label} can't be loaded from {point.value!r}: {told(error)}"
        ) from error
    if not callable(opener):
        raise InvalidOption(f"{label} is no callable: {point.value!r} is {opener!r}")
    return cast(Opener, opener)


def _brought_by(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "(unknown)"
