"""How items are split into calls."""

from __future__ import annotations

from headrace.storage.batches import batches, fitting, moved
from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES, MOVED_A_CALL


def test_items_go_in_order_and_as_many_at_a_time_as_a_call_may_bring() -> None:
    items = range(2 * BATCH_LIMIT + 1)
    assert [len(batch) for batch in batches(items)] == [BATCH_LIMIT, BATCH_LIMIT, 1]
    assert [item for batch in batches(items) for item in batch] == list(items)
    assert list(batches([])) == []


def test_a_call_moves_fewer_than_it_may_bring() -> None:
    jobs = range(2 * MOVED_A_CALL + 1)
    assert [len(batch) for batch in moved(jobs)] == [MOVED_A_CALL, MOVED_A_CALL, 1]
    assert MOVED_A_CALL < BATCH_LIMIT


def test_no_call_has_more_bytes_than_it_may_but_for_a_single_item() -> None:
    half = BATCH_LIMIT_BYTES // 2
    sizes = [half, half, 1, BATCH_LIMIT_BYTES + 1, 1, half]
    assert list(batches(sizes, lambda size: size)) == [
        [half, half],
        [1],
        [BATCH_LIMIT_BYTES + 1],
        [1, half],
    ]


def test_parts_of_several_items_stay_whole() -> None:
    assert fitting([(BATCH_LIMIT - 1, 0), (1, 0), (1, 0)]) == 2
    assert fitting([(BATCH_LIMIT - 1, 0), (2, 0)]) == 1
    assert fitting([(1, BATCH_LIMIT_BYTES + 1)]) == 1
    assert fitting([]) == 0
