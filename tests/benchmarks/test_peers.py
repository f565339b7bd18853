"""The comparison with other job queues: what handlers record, ratios, tables, and what can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.environments import (
    DEVELOPMENT,
    FAIRNESS_NAMES,
    NAMES,
    OURS,
    REQUIREMENTS,
    SYNC_NAMES,
    Environment,
)
from benchmarks.peers.__main__ import arguments
from benchmarks.peers.cells import CellFailed, Program, awaited, introduced
from benchmarks.peers.program import RECORD_VARIABLE, half_and_99, read_ran, read_started
from benchmarks.peers.results import (
    COLUMNS,
    TIMES,
    Column,
    Result,
    best,
    compared,
    notes,
    panels,
    ratio,
    summary,
)
from benchmarks.report import NOTHING
from tests.support.processes import ROOT, WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.until import until

RATE = Column("drain_rate", "drain", "jobs/s", is_rate=True)
TIME = Column("start_p50_ms", "start, p50", "ms")

THREADS_AND_A_FORK = """
import os, threading, time
from benchmarks.peers.program import Recorder
recorder = Recorder()
recorder.ran()
threads = [threading.Thread(target=recorder.ran) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if child := os.fork():
    os.waitpid(child, 0)
    recorder.ran()
else:
    recorder.ran()
    recorder.started(time.monotonic_ns() - 5_000_000)
"""


def result(name: str, **values: float) -> Result:
    return Result(name, "1.0", "defaults", 20_000, {key: [value] for key, value in values.items()})


def test_handlers_record_in_threads_and_processes(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(ROOT), RECORD_VARIABLE: str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", THREADS_AND_A_FORK], env=env, check=True)
    count, seconds = read_ran(tmp_path)
    assert count == 12
    assert seconds > 0
    starts_ms = read_started(tmp_path)
    assert len(starts_ms) == 2
    assert min(starts_ms) >= 5


def test_nothing_recorded_is_nothing(tmp_path: Path) -> None:
    assert read_ran(tmp_path) == (0, 0.0)
    assert read_started(tmp_path) == []


def test_half_of_the_times_and_99_of_100_keep_to_their_limits() -> None:
    limits = half_and_99([float(n) for n in range(1, 1_000)])
    assert limits == {"p50_ms": 500.0, "p99_ms": 990.0}


# It starts seven interpreters, one after another.
@pytest.mark.parametrize("adapter", ["headrace", "headrace_sync", "headrace_portal"])
async def test_our_adapter_does_what_the_benchmark_asks(
    redis_server: RedisServer, redis_url: str, tmp_path: Path, adapter: str
) -> None:
    program = Program(Environment(OURS, sys.executable, adapter), tmp_path)
    assert introduced(program.environment).name.startswith(OURS)
    single = program.figures("single", redis_server, 100)
    assert single["rate"] > 0
    assert single["cpu_us"] > 0
    assert program.figures("bulk", redis_server, 1_500)["rate"] > 0
    record = tmp_path / "record"
    with program.working(redis_server, record) as worker:
        # What was enqueued one by one, and before the clock started, runs too.
        await until(lambda: read_ran(record)[0] == 200 + 100 + 1_500, within=30)
        program.figures("start", redis_server, 3)
        assert program.figures("round_trip", redis_server, 5)["p50_ms"] > 0
        await until(lambda: len(read_started(record)) == 3)
    assert worker.returncode == 0


def test_a_command_that_fails_is_a_cell_without_value(tmp_path: Path) -> None:
    program = Program(DEVELOPMENT, tmp_path)
    with pytest.raises(CellFailed, match="`nonsense` failed: usage: "):
        program.output("nonsense")


def test_a_worker_that_ends_is_a_cell_without_value(tmp_path: Path) -> None:
    code = "raise SystemExit('no broker here')"
    worker = WorkerProcess(sys.executable, "-c", code, directory=tmp_path)
    with (
        pytest.raises(CellFailed, match="jobs to start: the worker ended: no broker here"),
        worker,
    ):
        awaited(worker, lambda: False, "jobs to start")


def test_a_ratio_says_how_many_times_better_ours_is() -> None:
    assert ratio(RATE, 30_000.0, 3_000.0) == 10
    assert ratio(TIME, 0.5, 2.0) == 4
    assert ratio(TIME, None, 2.0) is None
    assert ratio(RATE, 3.0, None) is None


def test_the_best_peer_has_the_most_of_a_rate_and_the_least_of_a_time() -> None:
    slow = result("slow", drain_rate=10, start_p50_ms=1)
    fast = result("fast", drain_rate=20, start_p50_ms=2)
    none = result("none")
    assert best(RATE, [slow, fast, none]) == (fast, 20)
    assert best(TIME, [slow, fast, none]) == (slow, 1)
    assert best(TIME, [none]) is None


def test_the_summary_names_who_is_ahead_and_whether_a_goal_is_met() -> None:
    ours = result("headrace", drain_rate=52_000, bulk_rate=900, start_p50_ms=0.8)
    peer = result("peer", drain_rate=5_000, bulk_rate=300, start_p50_ms=0.4)
    rows = summary(ours, [peer]).replace(TIMES, "x").splitlines()[2:]
    assert rows == [
        "| bulk enqueue | 900 jobs/s | 300 jobs/s (peer) | 3x | headrace | ≥ 5x: missed |",
        "| drain | 52,000 jobs/s | 5,000 jobs/s (peer) | 10x | headrace | ≥ 5x: met |",
        "| start, p50 | 0.8 ms | 0.4 ms (peer) | 0.5x | **peer** |  |",
    ]


def test_a_missing_value_is_a_dash_and_its_reason_is_in_the_notes() -> None:
    ours = result("headrace", drain_rate=100)
    slow = Result("slow", "2.0", "threads", 500, {}, ["too slow", "too slow"])
    rows = compared([RATE], ours, [slow]).splitlines()[2:]
    assert rows == ["| headrace 1.0 | 100 |", f"| slow 2.0 | {NOTHING} |"]
    assert notes([ours, slow], 20_000).splitlines() == [
        "- **headrace**: defaults.",
        f"- **slow**: threads. Bulk and drain of 500 jobs. {NOTHING}: too slow (rounds: 2).",
    ]


def test_the_plot_has_a_panel_for_each_column() -> None:
    drawn = panels([result("headrace", drain_rate=3), result("none")])
    assert [bars.title for bars in drawn] == [column.title for column in COLUMNS]
    assert drawn[3].values == {"headrace": 3, "none": None}


def test_every_peer_has_an_adapter_and_requirements() -> None:
    folder = ROOT / "benchmarks" / "peers"
    names = {*NAMES, *SYNC_NAMES, *FAIRNESS_NAMES}
    assert {path.stem for path in folder.glob("*_peer.py")} == {f"{name}_peer" for name in names}
    assert {name.partition("_")[0] for name in names} - set(REQUIREMENTS) == {OURS}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sidekiq"], "no peer sidekiq: use headrace, saq"),
        (["--sync", "saq"], "no peer saq: use headrace_sync, headrace_portal"),
        (["--rounds", "0"], "--rounds must be at least 1, and is 0"),
        (["--write", "saq"], "--write takes a run of all peers"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
