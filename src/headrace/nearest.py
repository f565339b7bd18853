"""The name that may have been meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMES = 10_000
"""Most names that are looked at, since each takes a few microseconds."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name that is most like another, "" if none is alike.

    Where they are dotted, one that ends alike will do: a module that was moved or left out.
    """
    # Not at the top: difflib takes 0.25 MB, and few ever mistype a name.
    from difflib import get_close_matches

    known = sorted(names)[:MOST_NAMES]
    last = name.rpartition(".")[2]
    found = get_close_matches(name, known, n=1) or [
        other for other in known if last and other.rpartition(".")[2] == last
    ]
    return found[0] if found else ""
