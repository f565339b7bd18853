"""Token buckets of the embedded storage: nothing is rounded, and nothing is lost."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from headrace.limit import Terms
from headrace.storage.sqlite.bucket import Bucket, bucket_of, paid

TERMS = st.builds(
    lambda rate, rate_ms, burst: Terms(0, rate, rate_ms, burst),
    st.integers(1, 1_000),
    st.integers(1, 100_000),
    st.integers(1, 50),
)


@given(TERMS, st.lists(st.integers(0, 5_000), max_size=50))
def test_there_are_as_many_tokens_as_time_has_brought(terms: Terms, pauses: list[int]) -> None:
    bucket = bucket_of(terms)
    exact = Fraction(terms.burst)
    for pause in pauses:
        bucket = paid(bucket, pause, terms)
        exact = min(Fraction(terms.burst), exact + Fraction(pause * terms.rate, terms.rate_ms))
        assert bucket.tokens == int(exact)
        if bucket.tokens:
            bucket.take()
            exact -= 1


@given(TERMS, st.integers(1, 50), st.integers(1, 50))
def test_a_token_is_there_when_it_was_said_and_no_sooner(
    terms: Terms, taken: int, wanted: int
) -> None:
    bucket = bucket_of(terms)
    for _ in range(min(taken, terms.burst)):
        bucket.take()
    ms = bucket.ms_until(wanted)
    if ms is None:
        assert wanted > terms.burst
        return
    assert paid(bucket, ms, terms).tokens >= wanted
    if ms:
        assert paid(bucket, ms - 1, terms).tokens < wanted


def test_a_clock_that_was_set_back_takes_nothing() -> None:
    terms = Terms(0, 1, 1_000, 5)
    bucket = Bucket(2_500, 1, 1_000, 5)
    assert paid(bucket, -60_000, terms).owed == 2_500


def test_another_rate_leaves_the_tokens_taken_that_were() -> None:
    bucket = Bucket(2_500, 1, 1_000, 5)
    assert paid(bucket, 0, Terms(0, 1, 60_000, 10)).tokens == 7
    assert paid(bucket, 0, Terms(0, 1, 60_000, 2)).tokens == 0
    assert paid(bucket, 0, Terms(4)).tokens == 0
