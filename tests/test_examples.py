"""Every program in the examples and documents runs, and what these list is what there is."""

from __future__ import annotations

import ast
import inspect
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from examples.index_sources import find_sources
from headrace import Context, errors
from headrace.events import JobEventKind
from headrace.job import EnqueueOutcome, FailReason, JobState
from headrace.task import Task
from tests.support.processes import ROOT, WorkerProcess
from tests.support.until import patience, until

EXAMPLES = ROOT / "examples"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run_example(name: str, *arguments: str, seconds: float = 15) -> list[str]:
    """Run an example to its end and return the lines that it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience(seconds),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # On a busy machine a loop may wait for a processor, which is told with where it stood.
    assert re.sub(r"^worker\.loop_blocked .*\n(?: .*\n)*", "", done.stderr, flags=re.M) == ""
    return done.stdout.splitlines()


def test_hello(redis_url: str) -> None:
    lines = run_example("01_hello.py", "--url", redis_url)
    assert re.fullmatch("enqueued job [0-9A-Z]{26}", lines[0])
    assert lines[1:] == ["hello, Ada"]


def test_service(redis_url: str) -> None:
    assert run_example("02_service.py", "--url", redis_url) == [
        "lifespan.startup.complete",
        "status 202",
        "state queued",
    ]


def test_request_response(redis_url: str) -> None:
    assert run_example("03_request_response.py", "--url", redis_url) == [
        "not yet: queued - served: False",
        "later: Invoice(number=3, total=12.5)",
        "at once: 5 1.0",
        "failed: exhausted, TimeoutError: the attempt took longer than its 0.1 s",
    ]


def test_retries_and_dead_letters(redis_url: str) -> None:
    assert run_example("04_retries_and_dead_letters.py", "--url", redis_url) == [
        "charged 5 after 2 failures",
        "dead letter: permanent: -1 is not an amount",
        "dead letter: exhausted: the bank is closed",
        "dead letters: [('exhausted', 2), ('permanent', 1)]",
        "redriven: 1",
        "paid 7",
        "purged: 1",
    ]


def test_options(redis_url: str) -> None:
    assert run_example("05_options.py", "--url", redis_url) == [
        "first: queued - again: duplicate",
        "scheduled: scheduled - cancelled: cancelled",
        "result: daily for ada",
        "result: urgent for nobody",
        "hasty: expired",
        "result: soon for nobody",
        "order: urgent, daily, soon",
        "once more: completed - daily for ada",
    ]


def test_lifespan_and_middleware(redis_url: str) -> None:
    assert run_example("06_lifespan_and_middleware.py", "--url", redis_url) == [
        "open",
        "take for ada, start 1",
        "left: 1",
        "close",
    ]


def test_testing() -> None:
    assert run_example("07_testing.py") == [
        "now: charged 20",
        "a day later: receipt 1",
        "start 1: retrying, the bank hung up",
        "start 2: retrying, the bank hung up",
        "start 3: failed, the bank hung up",
        "state: failed",
        "alone: receipt 3",
    ]


def test_process_slots(redis_url: str) -> None:
    for chosen in ([], ["--url", redis_url]):
        assert run_example("08_process_slots.py", *chosen, seconds=30) == [
            "exhausted: the attempt took longer than its 0.5 s",
            "stalled: the process was killed by SIGABRT while it ran the job",
            "primes: 4 25 168",
        ]


def test_schedules(redis_url: str) -> None:
    for chosen in ([], ["--url", redis_url]):
        assert run_example("09_schedules.py", *chosen) == [
            "pulse: enqueued",
            "stored: cron 0 9 * * 1-5 Europe/Berlin",
            "triggered: report for eu",
            "paused: True",
            "pulse: every, set by code",
            "report-all: at, set by operator",
            "report-eu: cron, set by operator",
            "report-us: cron, set by code",
        ]


def test_sync(redis_url: str) -> None:
    for chosen in ([], ["--url", redis_url]):
        assert run_example("10_sync.py", *chosen) == [
            "queued: queued",
            "again: duplicate",
            "queued: 1001",
            "result: welcome to ada",
            "at once: plain to bob",
            "letters: a b c",
            "all: 1000",
        ]


def test_files_are_compressed_on_several_processors_without_a_server(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.py").write_text(f"# {number % 10}\n" * 20_000)
    lines = run_example(
        "compress_sources.py", "--folder", str(tmp_path), "--slots", "2", seconds=50
    )
    counts = dict(line.split()[:2] for line in lines if re.match(r"[a-z0-9]+ +[\d,]+( .*)?$", line))
    assert counts["files"] == "30"
    assert counts["distinct"] == "10"
    assert counts["bytes"] == f"{30 * 4 * 20_000:,}"
    assert all(int(counts[name].replace(",", "")) > 0 for name in ("zlib", "bz2", "lzma"))
    shares = [re.fullmatch(r"process \d+ compressed (\d+) files", line) for line in lines]
    assert sum(int(share[1]) for share in shares if share) == 30


def test_every_numbered_example_is_short() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("[0-9]*.py")}
    assert len(sizes) == 10
    assert {name: size for name, size in sizes.items() if size > 60} == {}


def test_the_demo_finds_over_a_thousand_files() -> None:
    found = list(find_sources())
    assert len(found) > 1000
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", ["redis", "file"])
def test_the_demo_counts_files_and_shows_those_that_do_not_parse(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("redis_url") if kind == "redis" else f"file://{tmp_path}/data"
    (tmp_path / "good.py").write_text(
        "class A:\n    def f(self): ...\n    async def g(self): ...\n"
    )
    (tmp_path / "empty.py").touch()
    (tmp_path / "broken.py").write_text("def :\n")
    for _ in range(2):  # the second run begins without what the first one left
        lines = run_example("index_sources.py", "--url", url, "--folder", str(tmp_path), seconds=30)
        counts = dict(line.split()[:2] for line in lines if re.match(r"[a-z]+ +[\d,]+$", line))
        assert counts == {"files": "2", "lines": "3", "functions": "2", "classes": "1"}
        at = lines.index("dead letters: 1")
        assert lines[at + 1].endswith("/broken.py")
        assert lines[at + 2] == "    permanent: SyntaxError: invalid syntax (broken.py, line 1)"
        assert any("2 completed or cancelled, 1 dead" in line for line in lines[at:])


def test_make_demo_needs_no_server_and_leaves_nothing(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make is not None
    # An environment that make takes for complete, so that it installs nothing.
    commands = tmp_path / "venv" / "bin"
    commands.mkdir(parents=True)
    python = commands / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error "$@"\n')
    python.chmod(0o755)
    (tmp_path / "venv" / ".core").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [make, "demo", f"VENV={tmp_path}/venv", "ARGS=--limit 30"],
        cwd=ROOT,
        env={"PATH": str(tmp_path / "nothing"), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=patience(50),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("enqueued 30 jobs")
    assert any(re.fullmatch(r"files +30", line) for line in lines)
    shown = next(line for line in lines if line.startswith("$ headrace queue stats"))
    assert f" --url file://{temporary}/headrace-demo-" in shown
    assert list(temporary.iterdir()) == []


def test_the_demo_refuses_a_storage_that_its_workers_can_not_share() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "index_sources.py", "--url", "memory://"],
        capture_output=True,
        text=True,
        timeout=patience(15),
        check=False,
    )
    assert done.returncode == 2
    assert "memory:// is inside of one" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_demo_stops_what_it_started(
    number: signal.Signals, tmp_path: Path
) -> None:
    argv = (sys.executable, str(EXAMPLES / "index_sources.py"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started: list[psutil.Process] = []
    try:
        with WorkerProcess(*argv, directory=tmp_path, env={"TMPDIR": str(temporary)}) as demo:
            await until(lambda: "jobs/s" in demo.stdout, within=30, what="progress")
            started = psutil.Process(demo.pid).children()
            assert len(started) == 2, "two workers"
            os.kill(demo.pid, number)
            assert await demo.wait(30) == 1
            assert "interrupted: what was started is stopped" in demo.stderr
        assert [child for child in started if child.is_running()] == []
        assert list(temporary.iterdir()) == []
    finally:
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()


# The documents


def blocks(path: Path) -> list[tuple[int, str, str]]:
    """Return the code blocks of a document: line, info string, text."""
    found = []
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", path.read_text(), re.M | re.S):
        line = path.read_text()[: match.start()].count("\n") + 1
        found.append((line, match[1].strip(), match[2]))
    return found


PYTHON_BLOCKS = [
    pytest.param(info, text, id=f"{path.name}:{line}")
    for path in DOCUMENTS
    for line, info, text in blocks(path)
    if info.startswith("python")
]


@pytest.mark.parametrize(("info", "text"), PYTHON_BLOCKS)
def test_every_python_block_runs(info: str, text: str, redis_url: str, tmp_path: Path) -> None:
    if info == "python no-run":
        compile(text, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return
    assert info == "python", "say `python`, or `python no-run`"
    program = tmp_path / "block.py"
    program.write_text(text)
    if not any(word in text for word in ("asyncio.run(", "TestClient(", '"__main__"')):
        runpy.run_path(str(program))  # declarations, which connect to nothing
        return
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {"HEADRACE_REDIS_URL": redis_url, "PYTHONPATH": path}
    if "Worker(" in text:
        run_program(program, env)
        return
    with WorkerProcess.module("headrace", "worker", "block:app", directory=tmp_path, env=env):
        run_program(program, env)


def run_program(program: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=patience(40),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_begins_with_the_program_and_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()[:30]
    assert "```python" in lines
    assert {"make demo", "make test"} <= {line.partition("#")[0].strip() for line in lines}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_or_heading_leads_somewhere(path: Path) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = path.parent / name if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_the_documents_have_every_key_that_lua_writes() -> None:
    source = (ROOT / "lua" / "lib" / "keys.lua").read_text()
    used = set(re.findall(r"root \.\. '(:[a-z-]+)", source))
    listed = set(re.findall(r"^\| `(:[a-z-]+)", document("operations.md"), re.M))
    assert listed == used


def test_the_documents_have_every_error() -> None:
    listed = set(re.findall(r"\b[A-Z]\w+", document("errors.md")))
    known = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.HeadraceError | errors.Signal)
    }
    assert known - listed == set()


def test_the_documents_have_every_option_of_a_call() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|[^|]*\| yes \|", document("tasks.md"), re.M))
    assert listed == set(inspect.signature(Task.options).parameters) - {"self"}


def test_the_documents_have_every_attribute_of_the_context() -> None:
    attributes = {name for name in dir(Context) if not name.startswith("_")}
    rows = [line for line in document("tasks.md").splitlines() if line.startswith("| `")]
    listed = {word for row in rows for word in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert attributes - listed == set()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("concepts.md", [*JobState, *FailReason]),
        ("tasks.md", list(EnqueueOutcome)),
        ("operations.md", list(JobEventKind)),
    ],
)
def test_the_documents_have_every_word_of_a_closed_set(name: str, words: list[str]) -> None:
    assert [word for word in words if word not in document(name)] == []
