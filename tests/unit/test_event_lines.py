"""Events and the lines of the log that tell of them."""

from __future__ import annotations

import logging

import pytest

from headrace.events import AttemptEnded
from headrace.logs.lines import NAMES

RECORD = set(vars(logging.makeLogRecord({})))
"""What a record of the standard library says of itself."""


@pytest.mark.parametrize("kind", [*NAMES, AttemptEnded], ids=lambda kind: kind.__name__)
def test_no_field_of_an_event_takes_the_place_of_what_a_record_says_of_itself(kind: type) -> None:
    assert RECORD.isdisjoint(kind.__annotations__)
