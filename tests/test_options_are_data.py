"""An option costs few files: two of them are added to a copy, and go all the way to who reads them.

The lists are those of "Add an option" in CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.until import patience

ROOT = Path(__file__).parents[1]

Patch = tuple[str, str, str]
"""A file, a text that it has once, and what comes in its place, where … is that text."""

OPTIONS = "src/headrace/options.py"
NEW_JOB = "src/headrace/cli/new_job.py"
LIST_JOBS = "lua/functions/list_jobs.lua"
REPLIES = "src/headrace/storage/redis/calls/inspector.py"
LISTING = "src/headrace/storage/sqlite/verbs/listing.py"
QUEUES = "src/headrace/queue_jobs.py"
JOBS = "src/headrace/cli/jobs.py"

STORED: list[Patch] = [
    (
        OPTIONS,
        "        headers: strings for the handler, 8 KiB together.\n",
        "…        note: a text.\n",
    ),
    (OPTIONS, "    headers: Mapping[str, str] | None\n", "…    note: str | None\n"),
    (
        OPTIONS,
        '    "headers": _same("headers", check_headers, is_stored=True),\n',
        '…    "note": _same("note", partial(check_text, what="note"), is_stored=True),\n',
    ),
    (
        NEW_JOB,
        '    @option("--header",',
        '    @option("--note", metavar="TEXT", help="To be shown.")\n…',
    ),
    (NEW_JOB, "        header: tuple[str, ...],\n", "…        note: str | None,\n"),
    (NEW_JOB, '            "fair_key": fair_key,\n', '…            "note": note,\n'),
]

SEARCHABLE: list[Patch] = [
    (
        "src/headrace/job.py",
        '    error_message: str = ""\n\n\n_NAME',
        '    error_message: str = ""\n    options: bytes = b""\n\n\n_NAME',
    ),
    (LIST_JOBS, "'error', 'put_back'", "…, 'options'"),
    (LIST_JOBS, "error_type, error,\n", "error_type, error, v[10] or '',\n"),
    (REPLIES, "ROW_WIDTH = 15", "ROW_WIDTH = 16"),
    (REPLIES, "last_error = words[8:]", "last_error, options = words[8:]"),
    (REPLIES, "        incarnation=read_owner(claim),\n", "…        options=options,\n"),
    (LISTING, "nonce, reason, error, put_back,\n", "nonce, reason, error, options, put_back,\n"),
    (
        LISTING,
        "reason, error, put_back, last_error = row[8:]",
        "reason, error, options, put_back, last_error = row[8:]",
    ),
    (LISTING, "        error=error,\n", "…        options=options,\n"),
    (
        QUEUES,
        "        task: NamedTask | str | None = None,\n        limit: int | None = None,\n    ) ->",
        "        note: str | None = None,\n…",
    ),
    (
        QUEUES,
        "            task: only jobs of this task, itself or its name.\n            limit: at",
        "            note: its own.\n…",
    ),
    (
        QUEUES,
        "            for row in page.rows:\n",
        "…                own = msgspec.json.decode(row.options or b'{}').get('note')\n",
    ),
    (
        QUEUES,
        "if name is None or row.task == name:",
        "if name in (None, row.task) and note in (None, own):",
    ),
    (
        JOBS,
        'help="Only jobs of this task.")\n',
        '…@option("--note", metavar="TEXT", help="Only with this note.")\n',
    ),
    (JOBS, "    task: str | None,\n    limit: int,\n    is_wide", "    note: str | None,\n…"),
    (JOBS, "wanted, task, limit)", "wanted, task, limit, note)"),
    (JOBS, "    limit: int,\n) -> tuple", "    limit: int,\n    note: str | None,\n) -> tuple"),
    (JOBS, "jobs(state, task=task,", "… note=note,"),
]

USE = """
import asyncio, inspect, json, sys
import msgspec
from click.testing import CliRunner
from headrace import App, InvalidOption, Task
from headrace.cli import cli

url, is_searchable = sys.argv[1], sys.argv[2] == "searchable"
app = App(url)

@app.task(name="send", queue="q")
async def send(to: str) -> None: ...

async def main():
    async with app:
        job = await send.options(id="a", note="for ada").enqueue("x")
        assert (await job.status()).options == {"note": "for ada"}
        [copied] = await app.enqueue_many(
            [msgspec.structs.replace(send.options(note="copy").job("x"), id="c")]
        )
        assert (await copied.status()).options == {"note": "copy"}
        await send.enqueue("x")
        if is_searchable:
            found = [row.id async for row in app.queue("q").jobs("queued", note="for ada")]
            assert found == ["a"], found

def ran(*words):
    done = CliRunner().invoke(cli, [*words, "-q", "q", "-o", "json", "--url", url])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)

assert "note" in inspect.signature(Task.options).parameters
assert "note: a text" in Task.options.__doc__
try:
    send.options(note="a\\nb")
except InvalidOption as error:
    assert "note" in str(error)
else:
    raise AssertionError("a note of two lines was taken")
asyncio.run(main())
ran("enqueue", "send", "--id", "b", "--note", "for bob")
assert ran("job", "show", "b")["options"] == {"note": "for bob"}
if is_searchable:
    assert [row["id"] for row in ran("job", "list", "--note", "for bob")] == ["b"]
print("seen")
"""


def patched(copy: Path, patches: list[Patch]) -> set[str]:
    """Apply patches to a copy of the production tree; return the files that they touch."""
    for name in ("src", "lua"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in patches:
        text = (copy / name).read_text()
        assert text.count(old) == 1, (name, old)
        (copy / name).write_text(text.replace(old, new.replace("…", old)))
    return {name for name, _, _ in patches}


def use(copy: Path, url: str, kind: str) -> None:
    """Let the option go from a call to every place where it is read."""
    done = subprocess.run(
        [sys.executable, "-c", USE, url, kind],
        env={**os.environ, "PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.stdout == "seen\n", done.stdout + done.stderr


def listed(heading: str) -> set[str]:
    """Return the files that CONTRIBUTING.md lists below a line."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = text[text.index(heading) :].split("```")[1]
    return set(re.findall(r"^((?:src|lua)/\S+)", block, re.M))


@pytest.mark.parametrize("url", ["redis", "file"])
@pytest.mark.parametrize("kind", ["stored", "searchable"])
def test_an_option_is_added_in_few_files(
    kind: str, url: str, redis_url: str, tmp_path: Path
) -> None:
    patches, most, files = STORED, 6, listed("An option that is only stored")
    if kind == "searchable":
        patches, most, files = STORED + SEARCHABLE, 10, files | listed("If jobs are found by it")
    touched = patched(tmp_path / "copy", patches)
    assert touched == files
    assert len(touched) <= most
    use(tmp_path / "copy", redis_url if url == "redis" else f"file://{tmp_path}/data", kind)
