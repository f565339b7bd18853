"""The options of ``headrace worker``: every argument of `Worker` has one; bad values are told."""

from __future__ import annotations

import inspect
import re

import click
import pytest

from headrace import Worker
from headrace.cli.quantities import size
from headrace.cli.worker import worker as command
from headrace.logs.lines import ENDS, NAMES
from tests.cli.conftest import APP, Cli
from tests.support.processes import ROOT

OPTIONS = {option.name: option for option in command.params if isinstance(option, click.Option)}


def test_every_argument_of_a_worker_has_an_option_and_a_short_variable() -> None:
    arguments = set(inspect.signature(Worker).parameters) - {"app", "emit"}
    assert arguments <= set(OPTIONS)
    for name in arguments - {"name"}:
        assert OPTIONS[name].envvar == f"HEADRACE_{name.upper()}"


def test_defaults_are_those_of_the_worker() -> None:
    parameters = inspect.signature(Worker).parameters
    found = command.make_context("worker", [APP]).params
    for name in set(parameters) & set(found) - {"queues", "lanes"}:
        assert found[name] == parameters[name].default, name


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("4096", 4096),
        ("100b", 100),
        ("512MB", 512_000_000),
        ("512 mb", 512_000_000),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("1.5GiB", 3 * 2**29),
        ("2TiB", 2**41),
        ("2TB", 2 * 10**12),
    ],
)
def test_a_size_is_in_bytes_or_has_a_unit(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "512M", "1G", "-1", "1,5GB", "GB", "nan", "1EB", "0x10"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        size(text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--threads", "0"), "threads=0 is out of bounds: use a whole number, 1 to 10,000"),
        (("--process-slots", "-1"), "process_slots=-1 is out of bounds"),
        (("--process-max-jobs", "0"), "process_max_jobs=0 is out of bounds"),
        (("--process-max-memory", "0MB"), "process_max_memory=0 is out of bounds"),
        (("--process-memory-limit", "1G"), "'1G' is not a size"),
        (("--max-jobs", "0"), "max_jobs=0 is out of bounds"),
        (("--max-jobs", "ten"), "'ten' is not a valid integer"),
        (("--max-memory", "lots"), "'lots' is not a size: use bytes, or 512MB, 1GiB, 1.5GB"),
        (("--max-lifetime", "0s"), "max_lifetime=0.0 is out of bounds"),
        (("--max-loop-stall", "0s"), "max_loop_stall=0.0 is out of bounds"),
        (("--sweep-interval", "1ms"), "sweep_interval=0.001 is out of bounds"),
        (
            ("--lanes", "gpu:"),
            "--lanes 'gpu:' is not a lane with its slots: use NAME or NAME:SLOTS",
        ),
        (("--lanes", "gpu:two"), "--lanes 'gpu:two' is not a lane with its slots"),
        (("--lanes", "gpu,gpu:2"), "--lanes names 'gpu' twice: say it once"),
        (("--lanes", "gpu", "--lanes", "gpu"), "--lanes names 'gpu' twice: say it once"),
        (("--lanes", ","), "--lanes names no lane: leave it out, or give a name"),
        (("--lanes", "a b:2"), "lane 'a b' is not valid"),
        (("--lanes", "gpu:0"), "slots of lane 'gpu'=0 is out of bounds"),
        (("--burst", "yes"), "Got unexpected extra argument"),
    ],
)
def test_a_bad_value_is_one_line_and_wrong_usage(
    here: Cli, words: tuple[str, ...], told: str
) -> None:
    ran = here("worker", APP, *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert told in ran.err


def test_a_check_tells_whether_a_worker_would_start_and_starts_none(
    here: Cli,
) -> None:
    nowhere = {"HEADRACE_REDIS_URL": "redis://127.0.0.1:1"}
    ran = here("worker", APP, "--check", "--health-port", "0", env=nowhere)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert here("worker", APP, "--check", "--lease", "0s").code == 2
    assert here("worker", "no.such.module", env={"HEADRACE_WORKER_CHECK": "1"}).code == 4


def test_a_check_tells_which_lanes_are_left_out(here: Cli) -> None:
    ran = here("worker", APP, "--check", "--lanes", "gpu:2,tpu", env={"HEADRACE_LANES": "x"})
    assert ran.code == 0
    assert "Note: this worker does not serve the lane default of queue " in ran.err
    ran = here("worker", APP, "--check", env={"HEADRACE_LANES": "gpu, gpu"})
    assert (ran.code, "--lanes names 'gpu' twice" in ran.err) == (2, True)


def test_the_documents_have_every_option_argument_and_event_of_a_worker() -> None:
    docs = ROOT / "docs"
    text = (docs / "cli.md").read_text()
    shared = {"url", "tenant", "allow_eviction", "app_path", "traceback"}
    for option in (option for name, option in OPTIONS.items() if name not in shared):
        assert f"| `{option.opts[0]}" in text, option.name
        assert f"| `{option.envvar}` |" in text, option.name
    rows = re.findall(r"^\| (`[^|]+`) \|", (docs / "workers.md").read_text(), re.MULTILINE)
    listed = {word for row in rows for word in re.findall(r"`([\w.]+)`", row)}
    assert set(inspect.signature(Worker).parameters) - {"app"} <= listed
    assert {name for name, _ in [*NAMES.values(), *ENDS.values()]} <= listed
