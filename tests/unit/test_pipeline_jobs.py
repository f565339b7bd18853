"""The tasks of the pipeline, which need no Spark to be declared."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from headrace import App, Every, InvalidOption
from headrace.app import declared_of
from headrace.spark.pipeline.jobs import pipeline


def test_its_tasks_come_with_their_schedules() -> None:
    app = App("memory://")
    tasks = pipeline("/archive", queues=["orders"], archive_every=10, keep_days=90, timeout=60)
    app.include(tasks, prefix="eu.")
    assert list(app.tasks) == [
        "eu.pipeline.archive",
        "eu.pipeline.rollup",
        "eu.pipeline.compact",
        "eu.pipeline.retain",
        "eu.pipeline.replay",
    ]
    assert {task.settings.queue for task in app.tasks.values()} == {"pipeline"}
    assert {task.settings.timeout_ms for task in app.tasks.values()} == {60_000}
    schedules = declared_of(app).schedules
    assert {name: body.timing for name, body in schedules.items()} == {
        "eu.pipeline.archive": Every(10),
        "eu.pipeline.rollup": Every(300),
        "eu.pipeline.compact": Every(3600),
        "eu.pipeline.retain": Every(86_400),
    }
    assert schedules["eu.pipeline.retain"].job.payload == b'{"days":90}'
    assert {body.overlap for body in schedules.values()} == {"skip"}


def test_a_task_may_have_no_schedule() -> None:
    app = App("memory://")
    tasks = pipeline(
        "/archive", queues=["orders"], archive_every=None, rollup_every=None, compact_every=None
    )
    app.include(tasks)
    assert not declared_of(app).schedules


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"queues": []}, r"queues=\[\] is not valid: use a list of names"),
        ({"queues": "orders"}, r"queues='orders' is not valid: use a list of names"),
        ({"queues": ["a b"]}, r"queue 'a b' is not valid"),
        ({"tenant": "a b"}, r"tenant 'a b' is not valid"),
        ({"url": "http://h"}, r"is not valid"),
        ({"archive_every": 0}, r"out of bounds"),
        ({"keep_days": 0}, r"keep_days=0 is out of bounds: use a whole number, 1 to 36,500"),
        ({"timeout": 0}, r"timeout=0 is out of bounds"),
    ],
    ids=["no queues", "one queue", "a queue", "tenant", "url", "every", "days", "timeout"],
)
def test_what_is_wrong_is_said_at_once(said: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        pipeline("/archive", **{"queues": ["orders"], **said})


def test_declaring_them_imports_nothing_of_spark() -> None:
    program = (
        "import sys; from headrace.spark.pipeline.jobs import pipeline;"
        "pipeline('/archive', queues=['orders']);"
        "print([name for name in sys.modules if name.startswith(('pyspark.', 'py4j', 'pyarrow'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
