"""Whatever is trimmed meanwhile: each event is read once or counted as lost."""

from __future__ import annotations

import re
import warnings
from random import Random

import pytest
from msgspec import structs
from pyspark.sql.datasource import DataSourceStreamReader

from headrace import SyncApp
from headrace.spark.event_readers import stream_reader
from headrace.spark.options import ReadOptions
from tests.spark.support.events import enqueue, last_of
from tests.spark.support.micro_batches import next_end

STEPS = 15


def lost(told: list[warnings.WarningMessage]) -> int:
    """Return how many events were lost, by what was said."""
    counts = [re.match(r"(\d+) events? of queue 'q' after", str(one.message)) for one in told]
    assert None not in counts
    return sum(int(count[1]) for count in counts if count)


@pytest.mark.parametrize("seed", range(3))
def test_each_event_is_read_once_or_counted(url: str, app: SyncApp[None], seed: int) -> None:
    chance = Random(seed)

    def started() -> DataSourceStreamReader:
        most = chance.choice([50, 500, 5_000])
        options = ReadOptions(url=url, queues=("q",), starting="earliest", max_events=most)
        return stream_reader(structs.replace(options, fails_on_loss=False))

    def disturb() -> None:
        if chance.random() < 0.3:
            app.queue("q").configure(events=chance.choice([1, 20, 100, 1_000]))
        for _ in range(chance.randrange(3)):
            enqueue(app, chance.choice([1, 20, 700, 2_500]))

    reader, found = started(), []
    begin = reader.initialOffset()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(STEPS):
            disturb()
            if chance.random() < 0.3:
                reader = started()  # a restart
            end = next_end(reader, begin)
            disturb()
            for part in reader.partitions(begin, end):
                if chance.random() < 0.3:
                    disturb()
                for page in reader.read(part):
                    found += page.column("number").to_pylist()
            begin = end
    enqueue(app, 1)
    assert len(set(found)) == len(found)
    assert max(found) <= begin["q"]["n"] <= last_of(app).last
    assert len(found) + lost(told) == begin["q"]["n"]
    assert lost(told) > 0
