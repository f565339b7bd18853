"""Percentiles of logarithmic histograms."""

from __future__ import annotations

import pytest

from headrace import Percentiles
from headrace.storage.histogram import percentile


@pytest.mark.parametrize(
    ("histogram", "share", "bound"),
    [
        ({10: 1}, 0.5, 10),
        ({10: 1, 20: 1}, 0.5, 10),
        ({10: 1, 20: 1}, 0.51, 20),
        ({20: 50, 10: 50}, 0.5, 10),
        ({1: 99, 1000: 1}, 0.99, 1),
        ({1: 98, 1000: 2}, 0.99, 1000),
        ({0: 3}, 0.99, 0),
        ({5: 0, 7: 1}, 0.0, 7),
    ],
)
def test_a_percentile_is_the_bound_of_the_bucket_at_that_rank(
    histogram: dict[int, int], share: float, bound: int
) -> None:
    assert percentile(histogram, share) == bound


@pytest.mark.parametrize("histogram", [{}, {5: 0}])
def test_nothing_measured_has_no_percentiles(histogram: dict[int, int]) -> None:
    assert percentile(histogram, 0.5) is None
    assert Percentiles.of(histogram) is None


def test_three_percentiles_are_shown() -> None:
    histogram = {1: 50, 10: 45, 100: 4, 1000: 1}
    assert Percentiles.of(histogram) == Percentiles(p50=0.001, p95=0.01, p99=0.1)
