"""Places as the JSON that users say and Spark keeps."""

from __future__ import annotations

import re

import pytest

from headrace import InvalidOption
from headrace.spark.places import EventOffset, from_json, read_offsets, to_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "truncated"),
        ('{"q": 7}', "Expected `object`, got `int` - at `$[...]`"),
        ('{"q": {"id": "7-0", "rank": 7}}', "unknown field `rank`"),
        ('{"q": {"id": "noon", "n": 7}}', "stream_id='noon' is not that of an event"),
        ('{"q": {"id": "7-0", "n": -1}}', "n=-1 is out of bounds"),
        ('{"a b": {"id": "7-0", "n": 1}}', "'a b'"),
    ],
    ids=["cut", "number", "field", "id", "n", "queue"],
)
def test_what_is_no_offset_is_refused_with_an_example(text: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(said)) as caught:
        read_offsets(text, name="endingOffsets")
    assert str(caught.value).startswith(f"endingOffsets={text!r} is not valid: ")
    example = str(caught.value).rpartition("such as ")[2]
    assert read_offsets(example, name="x") == {"emails": EventOffset("1764400000000-0", 1200)}


def test_spark_keeps_the_same_json_of_the_same_offsets() -> None:
    places = {"b": EventOffset("7-0", 12), "a": EventOffset("8-0", 3)}
    told = to_json(places)
    assert list(told.items()) == [("a", {"id": "8-0", "n": 3}), ("b", {"id": "7-0", "n": 12})]
    assert from_json(told) == places


def test_the_checkpoint_of_another_query_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"none of events .*: use a checkpointLocation of"):
        from_json({"q": {"failed": "failed:q:7:a"}})
