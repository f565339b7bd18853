"""F10: an app in one module and its tasks in others, and what says which modules those are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import App, AppImportError, InvalidOption, UsageError, Worker
from headrace.testing import Kit
from tests.support.project import Project

TASK = """
    from shop.app import app

    @app.task(queue="{queue}")
    async def send(to: str) -> str:
        return "{queue} to " + to
"""
FILES = {
    "shop/__init__.py": "",
    "shop/app.py": "from headrace import App\napp = App()\n",
    "shop/__main__.py": "raise SystemExit('the program was run')\n",
    "shop/tasks/__init__.py": "",
    "shop/tasks/mail.py": TASK.format(queue="mail"),
    "shop/tasks/money/__init__.py": "",
    "shop/tasks/money/bill.py": TASK.format(queue="bill"),
    "shop/tasks/__main__.py": "raise SystemExit('the program was run')\n",
}
ALL = ["shop.tasks.mail.send", "shop.tasks.money.bill.send"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, FILES)


@pytest.fixture
def shop(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Return the project, which this process can import for as long as the test runs."""
    monkeypatch.syspath_prepend(str(project.folder))
    yield project
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def include(shop: Project, modules: str) -> App[Any]:
    """Return the shop's app, which includes some modules."""
    shop.write("shop/app.py", f"from headrace import App\napp = App('memory://', {modules})\n")
    from shop.app import app  # type: ignore[import-not-found]  # written just now

    assert isinstance(app, App)
    return app


def test_f10_the_error_of_an_app_without_tasks_says_how_to_import_them(project: Project) -> None:
    ran = project.headrace("worker", "shop.app:app")
    assert ran.returncode == 2
    assert "there is no queue to serve: the app has no tasks" in ran.stderr
    assert "by App(include=[...]) or headrace worker --import" in ran.stderr


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("--import", "shop.tasks"), {}),
        (("--import", "shop.tasks.mail", "--import", "shop.tasks.money"), {}),
        (("--import", "shop.tasks.mail, shop.tasks.money.bill"), {}),
        ((), {"HEADRACE_IMPORT": "shop.tasks.mail,shop.tasks.money.bill"}),
    ],
)
def test_f10_a_worker_imports_modules_and_packages(
    project: Project, words: tuple[str, ...], env: dict[str, str]
) -> None:
    for queue, task in zip(("mail", "bill"), ALL, strict=True):
        assert (
            project.headrace("enqueue", task, "-q", queue, "--args", '{"to": "x"}').returncode == 0
        )
    ran = project.headrace("worker", "shop.app:app", *words, "--burst", **env)
    assert ran.returncode == 0, ran.stderr
    assert project.completed() == ALL


def test_f10_enqueue_imports_them_too(project: Project) -> None:
    words = ("enqueue", ALL[0], "--args", '["x"]', "--app", "shop.app")
    assert "the app has no task" in project.headrace(*words).stderr
    ran = project.headrace(*words, "--import", "shop.tasks")
    assert (ran.returncode, ran.stdout.endswith("is queued in mail.\n")) == (0, True), ran.stderr
    ran = project.headrace("enqueue", "x", "-q", "x", "--import", "shop.tasks")
    assert (ran.returncode, "--import goes with --app" in ran.stderr) == (2, True)


def test_f10_an_error_of_an_import_names_the_module_and_why_it_was_imported(
    project: Project,
) -> None:
    project.write("shop/tasks/broken.py", "x = 1\nraise RuntimeError('no key')\n")
    ran = project.headrace("worker", "shop.app:app", "--import", "shop.tasks")
    assert ran.returncode == 4
    assert ran.stderr == (
        "Error: the module 'shop.tasks.broken' (--import shop.tasks) can't be imported: "
        "RuntimeError: no key (shop/tasks/broken.py, line 2)\n"
    )
    ran = project.headrace("worker", "shop.app:app", "--import", "shop.mails")
    assert ran.returncode == 4
    assert "there is no module 'shop.mails' in " in ran.stderr


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("shop/tasks/mail.py", "perhaps shop.tasks.mail"),
        (".tasks", "as in shop.tasks"),
        ("shop.app:app", "as in shop.tasks"),
    ],
)
def test_f10_what_is_no_name_of_a_module_is_refused(
    project: Project, module: str, hint: str
) -> None:
    ran = project.headrace("worker", "shop.app:app", "--import", module)
    assert ran.returncode == 2
    assert f"--import='{module}' is no name of a module: use its full name, {hint}" in ran.stderr


@pytest.mark.parametrize("include", ["shop.tasks", [""], ["shop tasks"], [b"shop"], 5])
def test_f10_an_app_includes_a_list_of_module_names(include: Any) -> None:
    with pytest.raises(InvalidOption, match="include="):
        App("memory://", include=include)


def test_f10_an_app_imports_what_it_includes_when_it_is_loaded_and_not_before(
    shop: Project,
) -> None:
    app = include(shop, "include=['shop.tasks']")
    assert list(app.tasks) == []
    app.load()
    assert sorted(app.tasks) == ALL
    app.load()
    assert sorted(app.tasks) == ALL


def test_f10_a_worker_of_a_program_loads_its_app(shop: Project) -> None:
    app = include(shop, "include=['shop.tasks.mail']")
    assert list(Worker(app).queues) == ["mail"]


async def test_f10_a_kit_loads_its_app(shop: Project) -> None:
    app = include(shop, "include=['shop.tasks']")
    async with Kit(app) as kit:
        job = await app.enqueue(ALL[1], "x")
        await kit.run_until_idle()
        assert await job.result() == "bill to x"


def test_f10_an_error_of_an_include_is_typed_and_names_the_module(shop: Project) -> None:
    app = include(shop, "include=['shop.tusks']")
    with pytest.raises(AppImportError, match=r"'shop\.tusks' \(the app includes shop\.tusks\)"):
        Worker(app)


def test_f10_a_worker_without_tasks_says_what_to_import() -> None:
    with pytest.raises(UsageError, match=r"Import the modules that declare tasks, by App\(incl"):
        Worker(App("memory://"))


def test_f10_commands_that_only_look_import_no_module_of_tasks(project: Project) -> None:
    include = "from headrace import App\napp = App(include=['shop.no_such_module'])\n"
    project.write("shop/app.py", include)
    ran = project.headrace("enqueue", "x", "-q", "x", "--app", "shop.app")
    assert (ran.returncode, "'shop.no_such_module'" in ran.stderr) == (4, True)
    assert project.headrace("enqueue", "x", "-q", "x").returncode == 0
    ran = project.headrace("queue", "list", "--app", "shop.app")
    assert ran.returncode == 0, ran.stderr


def test_f10_an_app_by_another_name_is_proposed(project: Project) -> None:
    project.write("shop/app.py", "from headrace import App\none = App()\ntwo = App()\n")
    ran = project.headrace("worker", "shop.app")
    assert ran.returncode == 4
    assert ran.stderr == (
        "Error: the app 'shop.app' can't be imported: 'shop.app' has no 'app'; "
        "perhaps shop.app:one or shop.app:two\n"
    )
