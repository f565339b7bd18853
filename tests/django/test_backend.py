"""A real Django project: a process that enqueues, one that looks, and a worker, on each storage."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT
from tests.support.until import patience

LIMIT_S = 60
TASKS = "tests.django.shop.orders.tasks"


class Project:
    """The project, with a database and a storage of its own."""

    def __init__(self, directory: Path, url: str) -> None:
        self.env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.django.shop.settings",
            "PYTHONPATH": str(ROOT),
            "SHOP_DATABASE": str(directory / "shop.db"),
            "SHOP_URL": url,
            "SHOP_TENANT": f"t-{secrets.token_hex(6)}",
        }

    def ran(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            [sys.executable, "-m", *argv],
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(LIMIT_S),
        )

    def run(self, *words: str, **env: str) -> Any:
        """Return what a process of the project says."""
        done = self.ran("tests.django.program", *words, **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def work(self, app: str = "app", **env: str) -> str:
        """Have a worker do all that waits, and return what it logged."""
        done = self.ran("headrace", "worker", f"headrace.django:{app}", "--burst", **env)
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Return a project in a directory; on Redis where a test says so by a parameter."""
    is_redis = getattr(request, "param", "file") == "redis"
    url = request.getfixturevalue("redis_url") if is_redis else f"file://{tmp_path}/jobs"
    made = Project(tmp_path, url)
    made.run("migrate")
    return made


@pytest.mark.parametrize("project", ["redis", "file"], indirect=True)
def test_tasks_of_every_kind_run_and_their_results_are_found(project: Project) -> None:
    ids = project.run("enqueue")
    assert [name.partition(":")[0] for name in ids] == ["default", "mail", "default", "default"]
    waiting = project.run("results", *ids)
    assert [result["status"] for result in waiting] == ["READY"] * 4
    assert [result["attempts"] for result in waiting] == [0] * 4

    project.work()

    paid, sent, looked, refused = project.run("results", *ids)
    assert paid["value"] == "paid ada@example.org"
    assert project.run("orders") == [True]
    assert (sent["task"], sent["queue"]) == (f"{TASKS}.send", "mail")
    assert (sent["args"], sent["kwargs"]) == (["ada@example.org"], {"lines": ["hello"]})
    assert sent["value"] == {"to": "ada@example.org", "lines": ["hello"]}
    assert project.run("aresult", ids[1]) == sent["value"]
    assert looked["value"] == [3, 1, ids[2], 1]
    assert [refused["status"], refused["value"]] == ["FAILED", None]
    [[kind, traceback]] = refused["errors"]
    assert kind == "LookupError"
    assert "raise LookupError(why)" in traceback
    assert traceback.count('  File "') == 1, "it begins with the project's own frame"
    for result in (paid, sent, looked, refused):
        assert result["attempts"] == 1
        assert result["is_aware"] == [True] * 3
        assert result["is_ordered"] is True

    heard = project.run("heard")
    assert sorted(map(tuple, heard)) == sorted(
        [
            *(("enqueued", name, "READY", 0) for name in ids),
            *(("started", name, "RUNNING", 1) for name in ids),
            *(("finished", name, "SUCCESSFUL", 1) for name in ids[:3]),
            ("finished", ids[3], "FAILED", 1),
        ]
    )


@pytest.mark.parametrize("project", ["redis", "file"], indirect=True)
def test_what_is_enqueued_on_commit_comes_with_the_commit_or_not_at_all(project: Project) -> None:
    assert project.run("commit") == [0, 0, 1, 1]
    project.work()
    assert project.run("orders") == [True]


def test_a_time_a_queue_and_a_priority_are_those_of_the_job(project: Project) -> None:
    [delayed, moved] = project.run("later")
    assert delayed == ["mail", 7, "scheduled", True]
    assert moved[:3] == ["default", 0, "queued"]


def test_a_task_that_failed_is_tried_again_where_the_options_say_so(project: Project) -> None:
    retrying = {"SHOP_OPTIONS": json.dumps({"max_attempts": 2, "retry": None})}
    *_, refused = project.run("enqueue", **retrying)
    project.work(**retrying)
    [result] = project.run("results", refused)
    assert (result["status"], result["attempts"]) == ("READY", 1)
    assert [kind for kind, _ in result["errors"]] == ["LookupError"]
    finished = [row for row in project.run("heard") if row[0] == "finished"]
    assert refused not in [name for _, name, _, _ in finished]


def test_each_backend_has_an_app_and_a_worker_of_its_own(project: Project) -> None:
    log = project.work("apps.reports")
    assert f"{TASKS}.report" in log
    assert f"{TASKS}.pay" not in log
    done = project.ran("headrace", "worker", "headrace.django:apps.nowhere", "--burst")
    assert done.returncode != 0
    assert "TASKS has no backend 'nowhere': use one of default, reports" in done.stderr


def test_bad_input_is_refused_as_django_refuses_it(project: Project) -> None:
    assert project.run("refused") == [
        *("InvalidTask", "InvalidTask", "TypeError"),
        *["TaskResultDoesNotExist"] * 3,
    ]
    assert project.run("check") == "fine"


def test_naive_times_are_those_of_the_project_where_it_has_no_time_zones(project: Project) -> None:
    naive = {"SHOP_USE_TZ": "0"}
    ids = project.run("enqueue", **naive)
    project.work(**naive)
    [result] = project.run("results", ids[1], **naive)
    assert result["is_aware"] == [False] * 3
    assert result["is_ordered"] is True
    assert project.run("later", **naive)[0][:3] == ["mail", 7, "scheduled"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "nowhere://x"}, "'nowhere://x' is not valid"),
        ({"max_attempts": 0}, "max_attempts=0"),
        ({"max_retries": 1}, "max_retries"),
    ],
)
def test_options_that_mean_nothing_are_refused_at_the_start(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    project = Project(tmp_path, f"file://{tmp_path}/jobs")
    done = project.ran("tests.django.program", "check", SHOP_OPTIONS=json.dumps(options))
    assert done.returncode != 0
    assert "ImproperlyConfigured: TASKS['default']['OPTIONS']: " in done.stderr
    assert said in done.stderr
