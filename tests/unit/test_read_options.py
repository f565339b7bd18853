"""What may be said of where a read begins and ends."""

from __future__ import annotations

import re

import pytest

from headrace.errors import InvalidOption
from headrace.spark.options import read_options

JSON = '{"q": {"id": "7-0", "n": 12}}'


def test_where_a_read_ends_is_latest_or_offsets_in_json() -> None:
    assert read_options({}).ending == ""
    assert read_options({"endingOffsets": "Latest"}).ending == "latest"
    assert read_options({"startingoffsets": JSON, "endingoffsets": JSON}).ending == JSON


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endingOffsets": "earliest"}, "endingOffsets='earliest' is not valid: use latest, or"),
        ({"startingOffsets": "12"}, "use earliest, latest, or offsets in JSON"),
        (
            {"endingOffsets": JSON, "endingTimestamp": "7"},
            "endingOffsets and endingTimestamp: say one of them",
        ),
        ({"read": "dead", "failOnDataLoss": "true"}, "failOnDataLoss is an option of read=events"),
    ],
    ids=["earliest", "a number", "both", "of jobs"],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(said)):
        read_options(options)
