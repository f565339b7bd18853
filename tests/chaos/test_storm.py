"""What a seed brings: the jobs of a producer, and the faults of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.apps.chaos_jobs import Assignment, labels_of
from tests.chaos import storm as storm_module
from tests.chaos.file_site import FileSite
from tests.chaos.plan import ONE_IN, PLANS, Kind, answer, kind_of, plan_of, queue_of
from tests.chaos.redis_site import RedisSite
from tests.chaos.settings import Settings
from tests.chaos.storm import CATALOGUE, Storm

SETTINGS = Settings(storage="redis", seed=1, jobs=0, seconds=100, faults=60)


def dealt(directory: Path, settings: Settings) -> list[tuple[float, str]]:
    site = (RedisSite if settings.storage == "redis" else FileSite)(settings, directory)
    return [(at, fault.name) for at, fault in Storm(site).deal()]


def test_the_same_seed_deals_the_same_faults_at_the_same_times(tmp_path: Path) -> None:
    other = msgspec.structs.replace(SETTINGS, seed=2)
    assert dealt(tmp_path, SETTINGS) == dealt(tmp_path, SETTINGS)
    assert dealt(tmp_path, SETTINGS) != dealt(tmp_path, other)


@pytest.mark.parametrize("storage", ["redis", "file"])
def test_every_fault_comes_before_any_comes_twice_more(storage: str, tmp_path: Path) -> None:
    counts = Counter(
        name for _, name in dealt(tmp_path, msgspec.structs.replace(SETTINGS, storage=storage))
    )
    assert counts.total() == 60
    assert counts.keys() == {fault.name for fault in CATALOGUE if storage in fault.storages}
    assert max(counts.values()) - min(counts.values()) <= 1


def test_faults_come_in_order_within_the_time(tmp_path: Path) -> None:
    times = [at for at, _ in dealt(tmp_path, SETTINGS)]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < SETTINGS.seconds


def test_faults_can_be_chosen_and_left_out(tmp_path: Path) -> None:
    only = msgspec.structs.replace(SETTINGS, only=("reset", "load"), leave_out=("load",))
    assert {name for _, name in dealt(tmp_path, only)} == {"reset"}


def test_every_fault_is_in_the_table() -> None:
    assert storm_module.__doc__
    assert [f.name for f in CATALOGUE if f.name not in storm_module.__doc__] == []


def test_a_producer_sends_every_kind_in_its_share() -> None:
    labels = list(labels_of(Assignment(jobs=9000, seconds=1, seed="1"), Random(1)))
    counts = Counter(map(kind_of, labels))
    assert len(set(labels)) == 9000
    assert {kind: counts[kind] for kind in ONE_IN} == {k: 9000 // n for k, n in ONE_IN.items()}
    assert counts[Kind.PLAIN] > 9000 / 2


def test_a_small_share_has_one_of_each_kind_but_those_left_out() -> None:
    share = Assignment(jobs=60, seconds=1, seed="1", one_in={"poison": 0})
    assert set(map(kind_of, labels_of(share, Random(1)))) == set(Kind) - {Kind.POISON}


def test_a_label_says_what_becomes_of_its_job() -> None:
    assert PLANS.keys() == set(Kind)
    for kind in Kind:
        label = f"{kind}.p1-1.7"
        assert plan_of(label) == plan_of(label)
        assert answer(label).startswith(f"{label}=")
        assert queue_of(label) == queue_of(label)
    assert {queue_of(f"plain.p1-1.{n}") for n in range(50)} == {"main", "side"}
