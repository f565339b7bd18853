"""``headrace enqueue``, alone and against a worker that runs as ``headrace worker``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import APP, Cli
from tests.support.processes import WorkerProcess


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Iterator[WorkerProcess]:
    """Run the app's worker as a process."""
    with WorkerProcess.module(
        "headrace", "worker", APP, "--queues", "quick", directory=tmp_path, env=environment
    ) as process:
        yield process


def test_without_an_app_a_job_goes_by_its_tasks_name(cli: Cli, here: Cli) -> None:
    ran = cli("enqueue", "shop.send", "-q", "emails", "--args", '{"to": "a@b.c"}', "--id", "w:1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Job w:1 of shop.send is queued in emails.\n"
    job = here("job", "show", "w:1", "-o", "json").json
    assert (job["queue"], job["task"], job["state"]) == ("emails", "shop.send", "queued")
    assert job["args"] == {"to": "a@b.c"}


def test_with_an_app_the_tasks_own_queue_and_names_are_used(here: Cli) -> None:
    ran = here("enqueue", "add", "-A", APP, "--args", "[1, 2]", "-o", "json")
    assert ran.json == {
        "id": ran.json["id"],
        "queue": "quick",
        "task": "add",
        "outcome": "queued",
        "state": None,
        "reason": None,
        "error": None,
        "result": None,
    }
    assert here("job", "show", ran.json["id"], "-o", "json").json["args"] == {"a": 1, "b": 2}


def test_what_the_app_calls_before_an_enqueue_is_called(cli: Cli, here: Cli) -> None:
    ran = cli("enqueue", "work", "-A", "tests.apps.traced_app:app", "--header", "a=b", "--id", "j")
    assert (ran.code, ran.err) == (0, "")
    options = here("job", "show", "j", "-o", "json").json["options"]
    assert options["headers"] == {"a": "b", "trace": "t-work"}


def test_options_of_a_job_are_passed_on(here: Cli) -> None:
    # fmt: off
    here(
        "enqueue", "t", "-q", "x", "--id", "j", "--delay", "10m", "--priority", "9",
        "--expires", "1h", "--max-attempts", "7", "--attempt-timeout", "90s",
        "--header", "trace=1=2", "--header", "by=ops", "--on-failed", "mourn",
    )
    # fmt: on
    job = here("job", "show", "j", "-o", "json").json
    assert (job["state"], job["priority"], job["on_failed"]) == ("scheduled", 9, "mourn")
    assert job["due_at"] is not None
    assert job["expires_at"] > job["due_at"]
    options = job["options"]
    assert (options["max_attempts"], options["timeout_ms"]) == (7, 90_000)
    assert options["headers"] == {"trace": "1=2", "by": "ops"}


def test_a_key_that_came_before_names_the_first_job(here: Cli) -> None:
    words = ("enqueue", "t", "-q", "x", "--idempotency-key", "order 7", "--idempotency-ttl", "1h")
    first = here(*words, "-o", "json").json
    again = here(*words, "--id", "mine", "-o", "json").json
    assert (again["id"], again["outcome"]) == (first["id"], "duplicate")
    late = here(*words, "--wait", "--timeout", "10ms", "-o", "json")
    assert late.json["id"] == first["id"]
    assert here("enqueue", "t", "-q", "x", "--idempotency-ttl", "1h").code == 2


def test_an_instant_has_its_zone(here: Cli) -> None:
    here("enqueue", "t", "-q", "x", "--id", "j", "--at", "2030-01-31T08:00:00+01:00")
    assert here("job", "show", "j", "-o", "json").json["due_at"] == "2030-01-31T07:00:00Z"


def test_arguments_can_come_from_standard_input(cli: Cli, here: Cli) -> None:
    cli("enqueue", "t", "-q", "x", "--id", "j", "--args", "-", stdin='{"secret": "s3cret"}')
    assert here("job", "show", "j", "-o", "json").json["args"] == {"secret": "s3cret"}


def test_big_integers_keep_their_digits(here: Cli) -> None:
    big = 123456789012345678901234567890
    here("enqueue", "t", "-q", "x", "--id", "j", "--args", f'{{"n": {big}}}')
    assert here("job", "show", "j", "-o", "json").json["args"] == {"n": big}


def test_an_id_that_waits_already_is_said_to_be_there(here: Cli) -> None:
    words = ("enqueue", "t", "-q", "x", "--id", "j")
    here(*words)
    assert here(*words).out == "Job j of t is there already in x: nothing was changed.\n"
    assert here(*words, "-o", "json").json["outcome"] == "duplicate"


@pytest.mark.usefixtures("worker")
def test_waiting_prints_the_result(cli: Cli, here: Cli) -> None:
    ran = cli("enqueue", "add", "-A", APP, "--args", "[1, 2]", "--wait", "--timeout", "30s")
    assert (ran.code, ran.out, ran.err) == (0, "3\n", "")
    ran = here("enqueue", "headers", "-q", "quick", "--header", "a=b", "-w", "-o", "json")
    assert ran.code == 0
    assert (ran.json["state"], ran.json["result"]) == ("completed", {"a": "b"})


@pytest.mark.usefixtures("worker")
def test_a_job_that_fails_while_waited_for_is_exit_code_5(cli: Cli) -> None:
    ran = cli("enqueue", "fail", "-A", APP, "--id", "f", "--wait", "--timeout", "30s", "-o", "json")
    assert ran.code == 5
    assert (ran.json["state"], ran.json["reason"]) == ("failed", "permanent")
    assert ran.json["error"] == "headrace.FailPermanently: boom"
    assert ran.err == ("Error: job 'f' failed (permanent): headrace.FailPermanently: boom\n")


def test_a_wait_that_ends_in_time_out_is_exit_code_124_and_names_the_job(
    cli: Cli, here: Cli
) -> None:
    ran = cli("enqueue", "add", "-q", "idle", "--id", "j", "--wait", "--timeout", "100ms")
    assert (ran.code, ran.out) == (124, "")
    assert ran.err == (
        "Error: job 'j' has not ended within 0.1 s: it is queued, and no worker serves queue "
        "'idle': start one; look at it with headrace job show j\n"
    )
    assert here("job", "show", "j").code == 0


def named_app(monkeypatch: pytest.MonkeyPatch, directory: Path, name: str, call: str) -> None:
    monkeypatch.syspath_prepend(str(directory))
    monkeypatch.delitem(sys.modules, name, raising=False)
    (directory / f"{name}.py").write_text(
        f"from headrace import App\napp = {call}\n"
        "@app.task(name='t', queue='q')\nasync def t() -> None: ...\n"
    )


def test_a_url_of_the_code_goes_before_the_environment_and_an_option_before_both(
    here: Cli, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_app(monkeypatch, tmp_path, "elsewhere_app", "App('redis://127.0.0.1:1')")
    words = ("enqueue", "t", "-A", "elsewhere_app")
    assert here(*words).code == 3
    assert here(*words, "--url", environment["HEADRACE_REDIS_URL"]).code == 0


def test_a_tenant_of_the_code_goes_before_the_environment_and_an_option_before_both(
    here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_app(monkeypatch, tmp_path, "tenant_app", "App(tenant='inside')")
    assert here("enqueue", "t", "-A", "tenant_app", "--id", "code").code == 0
    assert here("job", "show", "code", "--tenant", "inside").code == 0
    words = ("enqueue", "t", "-A", "tenant_app", "--id", "option", "--tenant", "outside")
    assert here(*words).code == 0
    assert here("job", "show", "option", "--tenant", "outside").code == 0


def test_workers_are_listed_with_their_queues(
    here: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    assert here("workers").err.startswith("There are no workers in tenant ")
    with WorkerProcess.module(
        "headrace", "worker", APP, "-q", "quick=3,slow", "--name", "w1", "-c", "7",
        directory=tmp_path, env=environment,
    ) as process:  # fmt: skip
        # Ends when the worker runs the job, so that it is known by then.
        assert (
            here("enqueue", "add", "-A", APP, "--args", "[1]", "-w", "--timeout", "30s").code == 0
        )
        (worker,) = here("workers", "-o", "json").json
        line = here("workers").out.splitlines()[1]
    assert (worker["name"], worker["pid"], worker["concurrency"]) == ("w1", process.pid, 7)
    assert (worker["active"], worker["condemned"], worker["lease_ms"]) == (0, False, 15_000)
    assert "quick" in worker["queues"]
    assert line.startswith("w1 ")
