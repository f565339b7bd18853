"""A job's record on Redis, with the fields taken apart that hold several things."""

from __future__ import annotations

import re
from collections.abc import Mapping

HEAD = re.compile(rb"([a-z]+)(\*?)(\+?)\t(\d*)\t(\d*)\t(\d+)\t(\d*)")
PARTS = ("state", "big", "more", "gen", "at", "created", "run")
OF_FEW = frozenset(
    {
        *("lane", "expires_at_ms", "max_stalls", "keep_ms", "options", "channels", "failures"),
        *("stalls", "cancel", "joined", "next", "on_failed", "gates", "parked", "slots"),
    }
)
"""Fields that no record may have whose head doesn't say that it has any."""


def taken_apart(record: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """Return a record's fields by name, those of its head that are not empty among them.

    Raises:
        ValueError: the head can't be read, or hides fields.
    """
    fields = {name.decode(): word for name, word in record.items()}
    head = fields.pop("head", b"")
    match = HEAD.fullmatch(head)
    if not match:
        raise ValueError(f"{head!r} is no head")
    fields.update({name: word for name, word in zip(PARTS, match.groups(), strict=True) if word})
    if (hidden := OF_FEW & set(fields)) and "more" not in fields:
        raise ValueError(f"{head!r} hides {sorted(hidden)}")
    if "claim" in fields:
        fields["epoch"], _, fields["claim"] = fields["claim"].partition(b"\t")
    return fields
