"""Options say the same in the words of Spark and in those of Python."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from msgspec.structs import asdict

from headrace import InvalidOption
from headrace.spark.arguments import WriteArguments, options_of
from headrace.spark.options import WriteOptions, read_options, write_options

SAID: list[tuple[tuple[str, str], tuple[str, Any], tuple[str, Any]]] = [
    (("url", "redis://a"), ("url", "redis://a"), ("url", "redis://a")),
    (("tenant", "shop"), ("tenant", "shop"), ("tenant", "shop")),
    (("queue", "mails"), ("queue", "mails"), ("queue", "mails")),
    (("task", "send"), ("task", "send"), ("task", "send")),
    (("commit", "ATOMIC"), ("commit", "atomic"), ("is_atomic", True)),
    (("idColumn", "key"), ("id_column", "key"), ("id_column", "key")),
    (("payloadColumn", "args"), ("payload_column", "args"), ("payload_column", "args")),
    (("allowRandomIds", "True"), ("allow_random_ids", True), ("allows_random_ids", True)),
    (("replaceEnded", "true"), ("replace_ended", True), ("replaces_ended", True)),
    (("batchSize", "7"), ("batch_size", 7), ("batch_size", 7)),
    (("stageTtl", "60"), ("stage_ttl", 60), ("stage_ttl_ms", 60_000)),
    (("keepWrite", "86400"), ("keep_write", timedelta(days=1)), ("keep_write_ms", 86_400_000)),
    (("retryFor", "0.5"), ("retry_for", 0.5), ("retry_for_ms", 500)),
]


@pytest.mark.parametrize(("option", "argument", "field"), SAID, ids=[said[0][0] for said in SAID])
def test_an_option_and_its_argument_come_to_the_same(
    option: tuple[str, str], argument: tuple[str, Any], field: tuple[str, Any]
) -> None:
    name, text = option
    by_option = write_options({name.lower(): text})
    by_argument = options_of(cast(WriteArguments, dict([argument])))
    assert by_option == by_argument
    assert asdict(by_argument) == {**asdict(WriteOptions()), **dict([field])}


def test_every_argument_has_an_option() -> None:
    assert {argument for _, (argument, _), _ in SAID} == set(WriteArguments.__annotations__)
    assert options_of(cast(WriteArguments, dict.fromkeys(WriteArguments.__annotations__))) == (
        WriteOptions()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchsize": "x"}, "batchSize='x' is not valid: use a whole number"),
        ({"batchSize": "501"}, "batchSize=501 is out of bounds: use a whole number, 1 to 500"),
        ({"allowRandomIds": "yes"}, "allowRandomIds='yes' is not known: use true or false"),
        ({"stageTtl": "soon"}, "stageTtl='soon' is not valid: use seconds"),
        ({"stageTtl": "59"}, r"stageTtl=59\.0 is out of bounds: use 60 seconds to ten years"),
        ({"commit": "often"}, "commit='often' is not known: use direct or atomic"),
        ({"url": "memory://x"}, "memory://x is in the memory of one process"),
    ],
    ids=["no number", "number", "flag", "no duration", "duration", "word", "url"],
)
def test_text_that_says_nothing_valid_is_told_by_the_name_of_its_option(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        write_options(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minPartitions": "0"}, "minPartitions=0 is out of bounds: use a whole number, 1 to 10"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss='no' is not known: use true or false"),
        ({"states": "queued"}, "states='queued' is not known: use some of completed"),
        ({"startingTimestamp": "now"}, "startingTimestamp='now' is not valid: use an instant"),
        ({"endingOffsets": "earliest"}, "endingOffsets='earliest' is not valid: use latest"),
    ],
    ids=["number", "flag", "states", "instant", "offsets"],
)
def test_what_is_wrong_of_a_read_is_told_so_too(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        read_options({"read": "jobs", **options} if "states" in options else options)
