"""Every way to end has its exit code and says why in one line, without traceback or password."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import APP, Cli
from tests.support.ports import closed_port
from tests.support.processes import ROOT
from tests.support.redis_server import RedisServer


def nowhere() -> str:
    return f"redis://someone:pa55word@127.0.0.1:{closed_port()}"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("queue", "stats", "!!"), 2, "queue '!!' is not valid"),
        (("no-such-command",), 2, "No such command 'no-such-command'"),
        (("job", "show"), 2, "Missing argument 'ID'"),
        (("job", "list", "--state", "lost"), 2, "'lost' is not one of"),
        (("worker",), 2, "say which app"),
        (("worker", APP, "--queues", "quick=fast"), 2, "'quick=fast' is not a queue"),
        (("worker", APP, "--concurrency", "0"), 2, "concurrency=0 is out of bounds"),
        (("worker", APP, "--lease", "soon"), 2, "'soon' is not a duration"),
        (("worker", f"{APP}:nothing"), 4, "has no 'nothing'"),
        (("worker", f"{APP}:not_an_app"), 4, "no headrace.App"),
        (("worker", "no.such.module"), 4, "there is no module 'no.such.module'"),
        (("queue", "list", "--url", "http://u:pa55word@h"), 2, "is not valid"),
        (("queue", "list", "--url", "redis://:pa55word/@h"), 2, "percent-encode"),
        (("queue", "list", "--tenant", "a:b"), 2, "tenant 'a:b' is not valid"),
        (("enqueue", "add"), 2, "--queue"),
        (("enqueue", "add", "-q", "x", "--args", "[1]"), 2, "need --app"),
        (("enqueue", "add", "-q", "x", "--args", "{"), 2, "is not JSON"),
        (("enqueue", "add", "-q", "x", "--args", "3"), 2, "neither a JSON object nor a list"),
        (("enqueue", "add", "-q", "x", "--timeout", "3"), 2, "--timeout goes with --wait"),
        (("enqueue", "add", "-q", "x", "--at", "2030-01-01"), 2, "is not an instant"),
        (("enqueue", "add", "-q", "x", "--header", "novalue"), 2, "is not a header"),
        (("enqueue", "add", "-q", "x", "--limit-key", "stripe"), 2, "is not a key of a limit"),
        (("enqueue", "nope", "-A", APP), 2, "the app has no task 'nope' (it has: add,"),
        (("enqueue", "add", "-A", APP, "--args", '["one"]'), 2, "Expected `int`, got `str`"),
        (("enqueue", "add", "-A", APP), 2, "missing a required argument: 'a'"),
        (("dead", "redrive"), 2, "say which dead letters"),
        (("dead", "purge", "a", "--all"), 2, "say which dead letters"),
        (("job", "cancel", "--all"), 2, "need --queue"),
        (("job", "show", "nope"), 1, "there is no job 'nope' in any queue"),
        (("job", "cancel", "nope"), 1, "there is no job 'nope'"),
        (("job", "retry", "nope"), 1, "there is no job 'nope'"),
    ],
)
def test_an_error_is_one_line_with_an_exit_code(
    here: Cli, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = here(*words)
    assert ran.code == code, ran
    assert ran.out == ""
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert told in ran.err
    assert "pa55word" not in ran.err


@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize(
    "words",
    [
        ("queue", "list"),
        ("job", "list"),
        ("dead", "list"),
        ("workers",),
        ("doctor",),
        ("enqueue", "add", "--queue", "x"),
    ],
)
def test_a_server_that_is_not_there_is_exit_code_3(here: Cli, words: tuple[str, ...]) -> None:
    ran = here(*words, "--url", nowhere())
    assert ran.code == 3, ran
    assert ran.err.count("\n") == 1
    assert "is it running there? Name another by url=, --url or HEADRACE_URL" in ran.err
    assert "pa55word" not in ran.err


@pytest.mark.usefixtures("redis_url")
def test_health_tells_a_server_that_answers_from_one_that_does_not(cli: Cli) -> None:
    assert (cli("health").code, cli("health").out) == (0, "healthy\n")
    ran = cli("health", "--url", nowhere(), "-o", "json")
    assert ran.code == 1
    assert ran.json["healthy"] is False
    assert "Connect call failed" in ran.json["error"]
    assert "pa55word" not in ran.out + ran.err


@pytest.mark.usefixtures("redis_url")
def test_a_server_that_may_evict_jobs_is_refused_unless_that_is_allowed(cli: Cli) -> None:
    with RedisServer("--maxmemory-policy", "allkeys-lru") as server:
        ran = cli("queue", "list", "--url", server.url)
        assert (ran.code, ran.out) == (3, "")
        assert "maxmemory-policy is allkeys-lru" in ran.err
        assert cli("worker", APP, "--url", server.url, "--log-level", "error").code == 3
        assert cli("queue", "list", "--url", server.url, "--allow-eviction").code == 0
        ran = cli("doctor", "--url", server.url)
        assert ran.code == 1
        assert "eviction" in ran.err


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """Return variables that name an app whose module raises when it is imported."""
    (tmp_path / "broken_app.py").write_text("x = 1\nraise RuntimeError('no \\x1b[31mkey')\n")
    return {"HEADRACE_APP": "broken_app:app", "PYTHONPATH": str(tmp_path)}


@pytest.mark.usefixtures("redis_url")
def test_the_cause_of_a_failed_import_is_shown(cli: Cli, broken: dict[str, str]) -> None:
    for words in (("worker",), ("enqueue", "add", "--queue", "x")):
        ran = cli(*words, env=broken)
        assert ran.code == 4
        assert "the app 'broken_app:app' can't be imported: RuntimeError: no " in ran.err
        assert ran.err.count("\n") == 1
        assert "\x1b" not in ran.err


@pytest.mark.usefixtures("redis_url")
def test_f33_the_traceback_is_shown_when_asked_for_before_or_behind_the_command(
    cli: Cli, broken: dict[str, str]
) -> None:
    """F33: who has seen an error adds the option to the end of the line."""
    for words in (("--traceback", "worker"), ("worker", "--traceback")):
        assert 'broken_app.py", line 2' in cli(*words, env=broken).err
    ran = cli("worker", env={**broken, "HEADRACE_TRACEBACK": "1"})
    assert ran.code == 4
    assert 'broken_app.py", line 2' in ran.err
    assert "Traceback" not in cli("worker", env={**broken, "HEADRACE_TRACEBACK": "0"}).err


LOOKING = [
    ("job", "list"),
    ("queue", "list"),
    ("queue", "stats"),
    ("queue", "pause", "x"),
    ("dead", "list"),
    ("workers",),
    ("doctor",),
]


@pytest.mark.parametrize("words", LOOKING)
def test_looking_at_the_storage_of_an_app_that_cannot_be_imported_says_what_else_to_say(
    here: Cli, broken: dict[str, str], words: tuple[str, ...]
) -> None:
    ran = here(*words, env=broken)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.endswith("; with both --url and --tenant no app is needed\n")


@pytest.mark.parametrize("words", LOOKING)
def test_looking_needs_no_user_code_where_url_and_tenant_are_said(
    here: Cli, broken: dict[str, str], environment: dict[str, str], words: tuple[str, ...]
) -> None:
    place = ("--url", environment["HEADRACE_REDIS_URL"], "--tenant", environment["HEADRACE_TENANT"])
    ran = here(*words, *place, env=broken)
    assert ran.code == 0, ran
    assert "broken_app" not in sys.modules


@pytest.mark.usefixtures("redis_url")
def test_a_probe_needs_no_user_code(cli: Cli, broken: dict[str, str]) -> None:
    assert cli("health", env=broken).code == 0
    assert cli("version", env=broken).code == 0


@pytest.mark.usefixtures("redis_url")
def test_a_usage_error_ends_the_process_with_2(cli: Cli) -> None:
    ran = cli("job", "show")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: Missing argument 'ID' (see headrace job show --help)\n"


@pytest.mark.usefixtures("redis_url")
def test_the_working_directory_is_on_the_path_and_the_attribute_is_app_by_default(
    cli: Cli,
) -> None:
    assert cli("enqueue", "add", "-A", APP, "--args", "[1]").code == 0
    assert cli("enqueue", "add", "--args", "[1]", env={"HEADRACE_APP": f"{APP}:app"}).code == 0


def test_an_error_inside_task_groups_is_still_one_line(
    cli: Cli, environment: dict[str, str], redis_server: RedisServer
) -> None:
    # A queue that a newer release has written: each queue's task group ends with the refusal.
    with redis_server.client() as client:
        for queue in ("quick", "slow"):
            client.hset(f"hr:{{{environment['HEADRACE_TENANT']}:{queue}}}:config", "layout", "99")
    ran = cli("worker", APP, "--log-level", "error")
    assert ran.code == 3, ran
    assert ran.err.startswith("Error: Redis: the queue has layout 99")
    assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("redis_url")
def test_a_lifespan_that_fails_is_exit_code_1(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "sad_app.py").write_text(
        "from contextlib import asynccontextmanager\n"
        "from headrace import App\n"
        "@asynccontextmanager\n"
        "async def lifespan():\n"
        "    raise RuntimeError('the database is away')\n"
        "    yield\n"
        "app = App(lifespan=lifespan)\n"
    )
    words = ("worker", "sad_app", "-q", "x", "--log-level", "error")
    ran = cli(*words, env={"PYTHONPATH": str(tmp_path)})
    assert ran.code == 1
    assert ran.err == "Error: RuntimeError: the database is away (add --traceback to see where)\n"


@pytest.mark.usefixtures("redis_url")
def test_a_reader_that_has_gone_is_no_error_to_speak_of(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "doctor"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.usefixtures("redis_url")
def test_text_that_the_terminal_cannot_show_is_escaped(cli: Cli) -> None:
    cli("enqueue", "t", "-q", "x", "--id", "j\N{SNOWMAN}")
    ran = cli("job", "list", env={"PYTHONIOENCODING": "latin-1"})
    assert ran.code == 0, ran
    assert "j\\u2603" in ran.out
