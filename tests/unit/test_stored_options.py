"""Options that a storage only keeps: two parts of one text, for what an update may change alone."""

from __future__ import annotations

import msgspec
import pytest

from headrace import InvalidOption, Retry
from headrace.stored_options import (
    as_one_object,
    check_stored,
    decode_stored,
    encode_stored,
    read_worker_options,
)
from headrace.update import Update, UpdateRunAt, cut_options, join_options, read_update

DATA = {"timeout_ms": 5_000, "headers": {"a": "line\nbreak"}}
RETRIES = {"max_attempts": 7}
PARTS = {
    "nothing": ({}, {}),
    "data": (DATA, {}),
    "retries": ({}, RETRIES),
    "both": (DATA, RETRIES),
}


@pytest.mark.parametrize("said", PARTS)
def test_data_and_retries_are_told_apart_and_read_together(said: str) -> None:
    data, retries = PARTS[said]
    encoded = encode_stored({**retries, **data, "priority": 3})
    told = [msgspec.json.decode(part or b"{}") for part in cut_options(encoded)]
    assert told == [data, retries]
    assert join_options(*cut_options(encoded)) == encoded
    assert decode_stored(encoded) == {**data, **retries}
    assert read_worker_options(encoded) == {**data, **retries}
    assert check_stored(encoded) == encoded


def test_retries_that_stand_among_the_data_are_read_too() -> None:
    # As a release wrote them that knew no parts.
    encoded = msgspec.json.encode({**DATA, **RETRIES, "retry": Retry(min=2)})
    assert read_worker_options(encoded)["retry"] == Retry(min=2)
    assert decode_stored(check_stored(encoded)) == decode_stored(encoded)


def test_options_of_several_lines_that_somebody_wrote_are_taken() -> None:
    written = msgspec.json.format(msgspec.json.encode({**DATA, **RETRIES}))
    assert b"\n" in written
    assert check_stored(written) == encode_stored({**DATA, **RETRIES})


@pytest.mark.parametrize("encoded", [b"{", b"{}\n{", b"[]", b"\n[]", b"{}{}"])
def test_what_is_no_options_is_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidOption, match="can't be read"):
        check_stored(encoded)
    with pytest.raises(msgspec.MsgspecError):
        read_worker_options(encoded)


def test_an_archive_has_them_as_one_object() -> None:
    both = encode_stored({**DATA, **RETRIES})
    assert msgspec.json.decode(as_one_object(both)) == {**DATA, **RETRIES}
    assert as_one_object(b"rub\nbish") == b"rub\nbish"
    assert as_one_object(b"") == b""


def test_an_update_has_a_word_of_four_characters() -> None:
    assert Update().word == "1110"
    never = Update(data=False, run_at=UpdateRunAt.NEVER, retry=False, reset_counts=True)
    assert never.word == "0001"
    later = Update(run_at=UpdateRunAt.IF_LATER)
    for update in (Update(), never, later):
        assert read_update(update.word) == update


def test_updates_together_change_what_either_changes_at_the_newest_time() -> None:
    none = Update(data=False, run_at=UpdateRunAt.NEVER, retry=False)
    earlier = Update(data=False, run_at=UpdateRunAt.IF_EARLIER, retry=False)
    assert none.over(Update()) == Update()
    assert Update(reset_counts=True).over(none) == Update(reset_counts=True)
    assert earlier.over(Update()) == Update(run_at=UpdateRunAt.IF_EARLIER)
    assert none.over(earlier) == earlier
