"""What the ledger of the races finds in what hands held."""

from __future__ import annotations

from headrace.job import Claim, ClaimedJob
from tests.races.hands import Hold
from tests.races.limited import out_of_order, passed
from tests.races.updating import overlaps

MS = 1_000_000


def held(job_id: str, since: int, until: int, *, asked: int | None = None, epoch: int = 1) -> Hold:
    asked = since - 1 if asked is None else asked
    return Hold(job_id, epoch, f"w/{since}", asked * MS, since * MS, until * MS)


def started(job_id: str, epoch: int = 1) -> ClaimedJob:
    return ClaimedJob(
        id=job_id,
        queue="q",
        task="t",
        payload=b"",
        claim=Claim(epoch, "n"),
        failures=0,
        stalls=0,
        created_ms=0,
        waited_ms=0,
        options=b"",
    )


def test_more_of_a_key_at_once_than_its_limit_says_are_found_and_others_not() -> None:
    turns = [held("one:x:5:now:h:1", 10, 20), held("one:x:5:now:h:2", 20, 30)]
    assert passed(turns) == []
    assert passed([*turns, held("one:y:5:now:h:3", 10, 30)]) == []
    assert len(passed([*turns, held("both:x:5:now:h:4", 15, 18)])) == 1
    pair = [held("two:x:5:now:h:1", 10, 30), held("turned:x:5:now:h:2", 10, 30)]
    assert passed(pair) == []
    assert len(passed([*pair, held("slow-two:x:5:now:h:3", 29, 40)])) == 1


def test_more_starts_of_a_key_in_a_time_than_its_rate_says_are_found() -> None:
    burst = [held(f"slow:x:5:now:h:{n}", 10 + n, 11 + n) for n in range(4)]
    assert passed(burst) == []
    assert passed([*burst, held("slow:x:5:now:h:9", 70, 71)]) == []
    assert passed([*burst, held("slow:x:5:now:h:9", 20, 21)]) != []
    # It may have started long before the answer came.
    assert passed([*burst, held("slow:x:5:now:h:9", 20, 21, asked=-100)]) == []


def test_what_starts_before_an_earlier_one_of_its_line_is_found() -> None:
    first, second = "one:x:5:now:h:1", "one:x:5:now:h:2"
    assert out_of_order([started(first), started(second)]) == []
    assert len(out_of_order([started(second), started(first)])) == 1
    assert out_of_order([started(second), started(first, epoch=2)]) == []
    assert out_of_order([started(second), started("one:y:5:now:h:1")]) == []


def test_two_jobs_of_an_id_at_once_are_found() -> None:
    assert overlaps([held("a", 10, 20), held("a", 20, 30, epoch=2)]) == []
    assert len(overlaps([held("a", 10, 20), held("a", 19, 30, epoch=2)])) == 1
