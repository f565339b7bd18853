"""How growth is shown and kept; and that a drain measures what it says, on a real server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.environments import DEVELOPMENT
from benchmarks.growth import backlog, memory, plots, results
from benchmarks.growth.caller import calling
from benchmarks.growth.draining import RATE, drain, waiting
from benchmarks.growth.points import Part, Place, Point, Values, take_turns
from benchmarks.growth.sweeps import DRAINED_MB, ENQUEUED_MB
from benchmarks.growth.workers import working
from benchmarks.growth.workload import GrowthLoad
from headrace.job import ErrorInfo, FailReason
from headrace.outcome import Failed
from tests.support.processes import ROOT
from tests.support.redis_server import RedisServer

RUNS = {
    backlog.TOGETHER: [3.0, 1.0, 2.0],
    RATE: [10.0, 30.0, 20.0],
    backlog.COMMANDS: [6.5],
    backlog.P50: [1.0],
    backlog.P99: [2.0],
}
CROWDS = [
    Point(backlog.WAITING, 1_000, RUNS),
    Point(backlog.DEAD, 100_000, RUNS),
]
WEIGHTS = [
    Point(state, size, {memory.WEIGHT: [float(size)]})
    for state in (memory.WAITING, memory.DELAYED, memory.COMPLETED)
    for size in (memory.SMALL, memory.LARGE)
]
WEIGHTS += [Point(memory.STREAM, memory.EVENTS, {memory.WEIGHT: [112.0]})]
PARTS = {
    "backlog": Part("what is there", "2026-01-02", {"cpu": "2 x this"}, CROWDS),
    "slots": Part("more", "2026-01-02", {"cpu": "2 x this"}, [Point("", 10, {RATE: [5.0]})]),
    "payloads": Part(
        "larger",
        "2026-01-03",
        {"cpu": "2 x this"},
        [Point("", 100, {ENQUEUED_MB: [1.0], DRAINED_MB: [2.0]})],
    ),
    "memory": Part("of the server", "2026-01-02", {"cpu": "2 x this"}, WEIGHTS),
}


async def test_sizes_take_turns_and_every_other_round_goes_backwards() -> None:
    taken: list[Place] = []

    def run(place: Place) -> Callable[[], Awaitable[Values]]:
        async def measure() -> Values:
            taken.append(place)
            return {"runs": float(len(taken))}

        return measure

    a, b = ("a", 1), ("b", 2)
    points = await take_turns({a: run(a), b: run(b)}, rounds=3)
    assert taken == [a, b, b, a, a, b]
    assert points == [
        Point("a", 1, {"runs": [1.0, 4.0, 5.0]}),
        Point("b", 2, {"runs": [2.0, 3.0, 6.0]}),
    ]


def test_a_table_has_medians_and_the_range_of_the_drain() -> None:
    lines = results.table_of("backlog", CROWDS).splitlines()
    assert lines[0].startswith(f"| backlog | {backlog.TOGETHER} | {RATE} | runs |")
    assert lines[3].startswith("| 100,000 failed | 2 | 20 | 10 to 30 |")


def test_the_table_of_memory_has_a_line_for_each_state() -> None:
    lines = results.table_of("memory", WEIGHTS).splitlines()
    assert lines[2] == "| one waiting job | 7 | 200 |"
    assert lines[-1] == "| one event | 112 | 112 |"


def test_the_readme_gets_every_part_and_each_day_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- growth -->\nold\n<!-- /growth -->\nafter\n")
    monkeypatch.setattr(report, "README", readme)
    results.write(PARTS)
    text = readme.read_text()
    assert [text.count(f"Measured on 2026-01-0{day}: cpu 2 x this.") for day in (2, 3)] == [1, 1]
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### Backlog: what is there",
        "### Slots: more",
        "### Payloads: larger",
        "### Memory: of the server",
    ]
    assert text.startswith("before\n")
    assert "old" not in text


def test_the_results_of_parts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FILE", tmp_path / "new" / "growth.json")
    assert results.load() == {}
    results.save(PARTS)
    assert results.load() == PARTS


def test_the_picture_has_a_panel_for_whatever_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "FILE", tmp_path / "growth.svg")
    plots.draw(PARTS)
    whole = (tmp_path / "growth.svg").read_text()
    plots.draw({"slots": PARTS["slots"]})
    assert len((tmp_path / "growth.svg").read_text()) < len(whole)


def test_an_unknown_part_is_named_before_anything_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", "backlog", "heat"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no part heat: use backlog, queues" in done.stderr
    assert done.stdout == ""


async def test_a_drain_takes_a_part_of_what_waits_and_leaves_the_queues_paused(
    redis_server: RedisServer,
) -> None:
    with redis_server.client() as client:
        client.flushall()
    load = GrowthLoad(redis_server.url, queues=2)
    async with load.app:
        await load.pause()
        await load.fill(20_000)
        async with working(redis_server, load, processes=2, environment=DEVELOPMENT):
            rate = await drain(redis_server, load, 500)
        counts = await load.stats()
    assert rate > 0
    assert all(stats.paused and not stats.active for stats in counts)
    assert sum(stats.queued for stats in counts) <= 19_500
    assert sum(stats.queued + stats.history for stats in counts) == 20_000


async def test_a_caller_brings_jobs_to_an_end_and_leaves_nothing_claimed(
    redis_server: RedisServer,
) -> None:
    with redis_server.client() as client:
        client.flushall()
    load = GrowthLoad(redis_server.url)
    async with load.app:
        async with calling(load) as caller:
            await caller.run(700)
            await caller.run(10, Failed(FailReason.EXHAUSTED, ErrorInfo("ValueError", "no")))
            await load.fill(5)
            await caller.claim(5)
        (stats,) = await load.stats()
        assert (stats.history, stats.dead, stats.workers) == (700, 10, 0)
        assert await waiting(load) == 5
