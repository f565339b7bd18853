"""Whatever is trimmed meanwhile: each event is read once or counted as lost."""

from __future__ import annotations

import re
import warnings
from random import Random

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headrace import SyncApp
from headrace.spark.event_readers import stream_reader
from headrace.spark.options import ReadOptions
from tests.spark.support.events import enqueue, last_of

STEPS = 15


def lost(told: list[warnings.WarningMessage]) -> int:
    """Return how many events were lost, by what was said."""
    counts = [re.match(r"(\d+) events? of queue 'q' after", str(one.message)) for one in told]
    assert None not in counts
    return sum(int(count[1]) for count in counts if count)


@pytest.mark.parametrize("seed", range(3))
def test_each_event_is_read_once_or_counted(url: str, app: SyncApp[None], seed: int) -> None:
    chance = Random(seed)
    options = ReadOptions(url=url, queues=("q",), starting="earliest", fails_on_loss=False)

    def disturb() -> None:
        if chance.random() < 0.3:
            app.queue("q").configure(events=chance.choice([1, 20, 100, 1_000]))
        for _ in range(chance.randrange(3)):
            enqueue(app, chance.choice([1, 20, 700, 2_500]))

    reader, found = stream_reader(options), []
    begin = reader.initialOffset()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(STEPS):
            disturb()
            if chance.random() < 0.3:
                reader = stream_reader(options)  # a restart
            most = chance.choice([50, 500, 5_000])
            limit = ReadMaxRows(most) if step < STEPS - 1 else ReadAllAvailable()
            end = reader.latestOffset(begin, limit)
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
