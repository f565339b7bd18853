"""What a call says of a job that has its id already: the options about it, checked."""

from __future__ import annotations

from typing import Any

from headrace.errors import InvalidOption
from headrace.plain import plain_text, shown
from headrace.update import Update, UpdateRunAt

_RUN_AT = {
    True: UpdateRunAt.ALWAYS,
    False: UpdateRunAt.NEVER,
    "if_later": UpdateRunAt.IF_LATER,
    "if_earlier": UpdateRunAt.IF_EARLIER,
}
_FLAGS = {
    "update_data": "data",
    "update_run_at": "run_at",
    "update_retry": "retry",
    "reset_counts": "reset_counts",
}
"""What each option about an update is in it."""


def check_on_conflict(value: object) -> str:
    """Return ``skip`` or ``update``, or raise `InvalidOption`."""
    text = plain_text(value)
    if text not in ("skip", "update"):
        raise InvalidOption(f"on_conflict={shown(value)} is not valid: use 'skip' or 'update'")
    return text


def check_update_run_at(value: object) -> UpdateRunAt:
    """Return when an update sets the time, or raise `InvalidOption`."""
    key = value if isinstance(value, bool) else plain_text(value)
    if key is None or key not in _RUN_AT:
        raise InvalidOption(
            f"update_run_at={shown(value)} is not valid: use True, False, 'if_later' or "
            "'if_earlier'"
        )
    return _RUN_AT[key]


def take_update(fields: dict[str, Any]) -> Update | None:
    """Take the options about an update out of those of a call, and return what they come to.

    Raises:
        InvalidOption: there is no id whose job could be updated, or no update.
    """
    on_conflict = fields.pop("on_conflict", "skip")
    said = {name: fields.pop(name) for name in _FLAGS if name in fields}
    if on_conflict != "update":
        if said:
            name = next(iter(said))
            raise InvalidOption(f"{name} is said without an update: say on_conflict='update' too")
        return None
    if "id" not in fields:
        raise InvalidOption(
            "on_conflict='update' is said without an id: say the id= of the job that it is about"
        )
    return Update(**{_FLAGS[name]: value for name, value in said.items()})


def check_update(value: object) -> Update | None:
    """Return the update of a job that anybody made, or raise `InvalidOption`."""
    if value is None or type(value) is Update:
        return value
    raise InvalidOption(f"update={shown(value)} is not valid: it is an Update or None")
