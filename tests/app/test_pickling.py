"""What leads to connections of a process is not sent to another one, and says what is."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import App, SyncApp, UsageError

asynchronous = App("memory://")
app = SyncApp(asynchronous)


@app.task(queue="q")
def send(to: str) -> str:
    return to


LIVE: dict[str, tuple[Callable[[], Any], str]] = {
    "SyncJobHandle": (lambda: app.job("7", queue="q"), r"its id and queue, and call app\.job\("),
    "JobHandle": (lambda: asynchronous.job("7", queue="q"), r"its id and queue"),
    "SyncQueue": (lambda: app.queue("q"), r"its name, and call app\.queue\("),
    "Queue": (lambda: asynchronous.queue("q"), r"its name"),
    "SyncTaskCall": (lambda: send.options(delay=3), "the task, and say its options there"),
    "TaskCall": (lambda: send.task.options(delay=3), "the task"),
    "SyncTaskRef": (lambda: app.task_ref("send", queue="q"), r"the app and the task's name"),
    "TaskRef": (lambda: asynchronous.task_ref("send", queue="q"), r"the app and the task's name"),
    "SyncBulkWrite": (lambda: app.bulk("w"), r"one writer: call app\.bulk\("),
    "BulkWrite": (lambda: asynchronous.bulk("w"), r"one writer"),
}


@pytest.mark.parametrize("kind", LIVE)
def test_what_is_of_this_process_says_what_to_send(kind: str) -> None:
    make, advice = LIVE[kind]
    with pytest.raises(UsageError, match=rf"^{kind} is of this process .*pickled: .*{advice}"):
        pickle.dumps({"captured": make()})


@pytest.mark.parametrize("kept", [asynchronous, app], ids=["App", "SyncApp"])
def test_what_is_in_memory_is_refused_where_nobody_would_look_for_it(
    kept: App | SyncApp, tmp_path: Path
) -> None:
    assert repr(pickle.loads(pickle.dumps(kept))).partition(",")[0] == repr(kept).partition(",")[0]  # noqa: S301 (it is ours)
    path = tmp_path / "pickled"
    path.write_bytes(pickle.dumps(kept))
    program = f"import pickle; pickle.load(open({str(path)!r}, 'rb'))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == (
        "headrace.errors.UsageError: memory:// is in the memory of another process, which has sent "
        "this: use a storage that processes share, redis:// or file://"
    )
