"""The pytest plugin in projects of users: real runs of pytest, in every mode."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.until import patience

SHOP = """
    from headrace import App

    app = App("redis://localhost:1", retry_for=0)


    @app.task(queue="mail")
    async def send(to: str) -> str:
        return f"sent to {to}"


    async def sign_up(email: str) -> None:
        await send.options(delay=60).enqueue(email)
"""
CONFTEST = """
    import pytest
    import shop


    @pytest.fixture
    def headrace_app():
        return shop.app
"""
BODY = """
    {mark}
    async def test_the_mail_waits_for_its_time(headrace_kit, headrace_clock, headrace_events):
        await shop.sign_up("a@b.c")
        headrace_kit.assert_enqueued(shop.send.job("a@b.c"), delay=60)
        assert await headrace_kit.run_until_idle() == []
        await headrace_kit.advance(60)
        [attempt] = await headrace_kit.run_until_idle()
        assert attempt.result == "sent to a@b.c"
        assert headrace_kit.now == headrace_clock.now
        assert headrace_events.finished(attempt.job_id)


    {mark}
    async def test_a_request_is_answered(headrace_kit):
        assert await shop.send.enqueue_and_wait("x") == "sent to x"


    {mark}
    async def test_the_mail_is_sent_at_once(headrace_inline_kit):
        job = await shop.send.enqueue("x")
        assert (await job.status()).state == "completed"
"""
SYNC = """
    import asyncio
    import shop


    def test_the_mail_waits_for_its_time(headrace_kit):
        asyncio.run(shop.sign_up("a@b.c"))
        headrace_kit.assert_enqueued(shop.send, {"to": "a@b.c"})
        assert len(asyncio.run(headrace_kit.run_until_idle(advance=True))) == 1


    def test_the_next_one_begins_empty(headrace_kit):
        headrace_kit.assert_not_enqueued()
"""
ANYIO = """
    import pytest
    import shop

    pytestmark = pytest.mark.anyio


    @pytest.fixture
    def anyio_backend():
        return "asyncio"

"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    (folder / "pytest.ini").write_text("[pytest]\n")  # so that no other settings are found


def run_pytest(folder: Path, *arguments: str, path: str = "") -> tuple[str, dict[str, int]]:
    """Run pytest in a project, with warnings as errors; return what it printed and its counts."""
    if "no:asyncio" not in arguments:  # else it warns of its own settings
        arguments = ("-o", "asyncio_default_fixture_loop_scope=function", *arguments)
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-W", "error"),
            *("-p", "no:cacheprovider", "-p", "no:randomly"),
            *arguments,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(folder))))},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    lines = done.stdout.splitlines()
    words = lines[-1].strip("= ").partition(" in ")[0].split(", ") if lines else []
    counts = {word: int(number) for number, _, word in (part.partition(" ") for part in words)}
    return done.stdout + done.stderr, counts


AUTO = "    import shop\n" + BODY.format(mark="")
STRICT = "    import pytest\n    import shop\n" + BODY.format(mark="@pytest.mark.asyncio")


def test_async_and_plain_tests_use_the_fixtures(tmp_path: Path) -> None:
    write(tmp_path, shop=SHOP, conftest=CONFTEST, test_shop=AUTO, test_plain=SYNC)
    output, counts = run_pytest(tmp_path, "-o", "asyncio_mode=auto")
    assert counts == {"passed": 5}, output


FAILING = """
    import asyncio
    import shop


    def test_a_mail_was_sent(headrace_kit):
        headrace_kit.assert_enqueued(shop.send)


    def test_no_mail_was_sent(headrace_kit):
        asyncio.run(shop.sign_up("a@b.c"))
        headrace_kit.assert_not_enqueued(shop.send)
"""


def test_p14_a_failed_assertion_shows_the_line_of_the_test(tmp_path: Path) -> None:
    write(tmp_path, shop=SHOP, conftest=CONFTEST, test_shop=FAILING)
    output, counts = run_pytest(tmp_path, "-o", "asyncio_mode=strict")
    assert counts == {"failed": 2}, output
    assert ">       headrace_kit.assert_enqueued(shop.send)" in output
    assert ">       headrace_kit.assert_not_enqueued(shop.send)" in output
    assert "kit.py" not in output


def test_in_strict_mode_marked_tests_use_the_fixtures(tmp_path: Path) -> None:
    under_anyio = ANYIO + BODY.format(mark="")
    write(tmp_path, shop=SHOP, conftest=CONFTEST, test_shop=STRICT, test_anyio=under_anyio)
    output, counts = run_pytest(tmp_path, "-o", "asyncio_mode=strict")
    assert counts == {"passed": 6}, output


def test_under_anyio_alone_the_fixtures_work_too(tmp_path: Path) -> None:
    write(tmp_path, shop=SHOP, conftest=CONFTEST, test_shop=ANYIO + BODY.format(mark=""))
    output, counts = run_pytest(tmp_path, "-p", "no:asyncio")
    assert counts == {"passed": 3}, output


def test_nothing_is_imported_for_who_asks_for_nothing_and_who_asks_is_told(tmp_path: Path) -> None:
    write(
        tmp_path,
        test_other="""
            import sys

            def test_first():
                assert "headrace_pytest" in sys.modules
                assert [name for name in sys.modules if name.startswith("headrace.")] == []
                assert "msgspec" not in sys.modules

            def test_second(headrace_kit): ...
        """,
    )
    output, counts = run_pytest(tmp_path)
    assert counts == {"passed": 1, "error": 1}, output
    assert "write a fixture `headrace_app` that returns your App" in output


def test_the_plugin_can_be_turned_off(tmp_path: Path) -> None:
    write(tmp_path, shop=SHOP, conftest=CONFTEST, test_shop=SYNC)
    output, counts = run_pytest(tmp_path, "-p", "no:headrace")
    assert counts == {"errors": 2}, output
    assert "fixture 'headrace_kit' not found" in output


def test_the_plugin_is_in_the_wheel(tmp_path: Path) -> None:
    built = tmp_path / "built"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built],
        cwd=ROOT,
        capture_output=True,
        timeout=patience(60),
        check=True,
    )
    [wheel] = built.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    project = tmp_path / "project"
    project.mkdir()
    where = f"""
    import headrace
    import headrace_pytest
    import headrace.testing


    def test_all_is_from_the_wheel(headrace_kit):
        for module in (headrace, headrace_pytest, headrace.testing):
            assert module.__file__.startswith({str(installed)!r})
    """
    write(project, shop=SHOP, conftest=CONFTEST, test_shop=SYNC, test_where=where)
    output, counts = run_pytest(project, path=str(installed))
    assert counts == {"passed": 3}, output


@pytest.mark.parametrize("missing", ["pytest", "pytest_asyncio"])
def test_without_the_extra_the_error_names_it(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import headrace.testing"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: headrace.testing needs pytest and pytest-asyncio: "
        "pip install pytest pytest-asyncio"
    )
