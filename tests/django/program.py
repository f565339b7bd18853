"""A process of the project that is no worker: it does what its argument says, and prints JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from functools import partial
from typing import Any

import django
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

django.setup()

from headrace.django.api import TaskResultDoesNotExist, task_backends  # noqa: E402
from tests.django.shop.orders import tasks  # noqa: E402
from tests.django.shop.orders.models import Heard, Order  # noqa: E402


def migrate() -> None:
    """Make the tables."""
    call_command("migrate", run_syncdb=True, verbosity=0)


def enqueue() -> list[str]:
    """Enqueue one of each kind, and return their ids."""
    order = Order.objects.create(email="ada@example.org")
    return [
        tasks.pay.enqueue(order.pk).id,
        tasks.send.enqueue("ada@example.org", lines=["hello"]).id,
        asyncio.run(tasks.look.aenqueue(3)).id,
        tasks.refuse.enqueue("no such order").id,
    ]


def results(*ids: str) -> list[dict[str, Any]]:
    """Return how jobs stand."""
    return [_shown(task_backends["default"].get_result(name)) for name in ids]


def aresult(name: str) -> Any:
    """Return a result by the asynchronous way."""
    result = asyncio.run(tasks.send.aget_result(name))
    return result.return_value


def _shown(result: Any) -> dict[str, Any]:
    is_done = str(result.status) == "SUCCESSFUL"
    return {
        "task": result.task.module_path,
        "queue": result.task.queue_name,
        "status": str(result.status),
        "args": result.args,
        "kwargs": result.kwargs,
        "value": result.return_value if is_done else None,
        "errors": [[e.exception_class.__name__, e.traceback] for e in result.errors],
        "attempts": result.attempts,
        "is_aware": [
            at is not None and timezone.is_aware(at)
            for at in (result.enqueued_at, result.started_at, result.finished_at)
        ],
        "is_ordered": None
        if result.finished_at is None
        else result.enqueued_at <= result.started_at <= result.finished_at,
    }


def commit() -> list[Any]:
    """Enqueue after a commit, and after what is rolled back; return how many jobs each brought."""
    queue = task_backends["default"].tasks.sync.queue("default")
    seen = [queue.stats().queued]
    with transaction.atomic():
        order = Order.objects.create(email="bob@example.org")
        transaction.on_commit(partial(tasks.pay.enqueue, order.pk))
        seen.append(queue.stats().queued)
    seen.append(queue.stats().queued)
    with transaction.atomic():
        transaction.on_commit(partial(tasks.pay.enqueue, order.pk))
        transaction.set_rollback(True)
    return [*seen, queue.stats().queued]


def later() -> list[list[Any]]:
    """Enqueue for another time and with other options, and return how they stand."""
    at = timezone.now() + timedelta(hours=1)
    delayed = tasks.send.using(run_after=at).enqueue("a@b.c", lines=[])
    moved = tasks.send.using(queue_name="default", priority=-100).enqueue("a@b.c", lines=[])
    sync = task_backends["default"].tasks.sync
    found = []
    for result in (delayed, moved):
        queue, _, job_id = result.id.partition(":")
        status = sync.job(job_id, queue=queue).status()
        due = status.due_at and abs((status.due_at - at).total_seconds()) < 1 if at.tzinfo else True
        found.append([status.queue, status.priority, status.state.value, bool(due)])
    return found


def refused() -> list[str]:
    """Return what bad input is answered."""

    class Odd:
        pass

    said = []
    for call in (
        lambda: tasks.send.using(queue_name="nowhere"),
        lambda: tasks.send.using(priority=101),
        lambda: tasks.send.enqueue(Odd(), lines=[]),
        lambda: task_backends["default"].get_result("mail:none"),
        lambda: task_backends["default"].get_result("no queue"),
        lambda: task_backends["default"].get_result("not/valid:1"),
    ):
        try:
            call()
            said.append("nothing")
        except (TypeError, TaskResultDoesNotExist) as error:
            said.append(type(error).__name__)
        except Exception as error:
            said.append(type(error).__name__.removesuffix("Error"))
    return said


def heard() -> list[list[Any]]:
    """Return the signals that came."""
    rows = Heard.objects.order_by("pk").values_list("signal", "result_id", "status", "attempts")
    return [list(row) for row in rows]


def orders() -> list[bool]:
    """Return which orders are paid."""
    return list(Order.objects.order_by("pk").values_list("is_paid", flat=True))


def check() -> str:
    """Run Django's own checks."""
    call_command("check")
    return "fine"


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    print(json.dumps(globals()[name](*words)))  # noqa: T201
