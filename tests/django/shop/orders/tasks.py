"""Tasks of every kind; a worker finds them here."""

from typing import Any

from asgiref.sync import sync_to_async

from headrace.django.api import task, task_enqueued, task_finished, task_started
from tests.django.shop.orders.models import Heard, Order


@task()
def pay(order_id: int) -> str:
    """Mark an order as paid."""
    order = Order.objects.get(pk=order_id)
    order.is_paid = True
    order.save()
    return f"paid {order.email}"


@task(queue_name="mail", priority=40)
def send(to: str, *, lines: list[str]) -> dict[str, Any]:
    """Return what was sent."""
    return {"to": to, "lines": lines}


@task(takes_context=True)
async def look(context: Any, number: int) -> list[Any]:
    """Return what a coroutine is told."""
    count = await sync_to_async(Order.objects.count)()
    return [number, context.attempt, context.task_result.id, count]


@task()
def refuse(why: str) -> None:
    """Fail."""
    raise LookupError(why)


@task(backend="reports", queue_name="reports")
def report() -> int:
    """Belong to another backend."""
    return 7


def _hear(signal: str) -> Any:
    def hear(task_result: Any, **_kwargs: Any) -> None:
        Heard.objects.create(
            signal=signal,
            result_id=task_result.id,
            status=str(task_result.status),
            attempts=task_result.attempts,
        )

    return hear


HEARERS = {
    "enqueued": (task_enqueued, _hear("enqueued")),
    "started": (task_started, _hear("started")),
    "finished": (task_finished, _hear("finished")),
}
for known, hearer in HEARERS.values():
    known.connect(hearer)
