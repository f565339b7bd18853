"""Which jobs were enqueued: what matches, and what a failure says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast
from unittest.mock import ANY

import pytest

from headrace import InvalidArguments, InvalidOption, Task
from headrace.app import clients_of
from headrace.clock import datetime_of
from headrace.request import JobRequest
from headrace.storage import Occurrence
from headrace.testing import EnqueuedJob, Kit
from tests.apps.shop_app import Order, app, bill, send, ship


async def test_a_job_is_told_with_its_arguments_as_the_handler_gets_them(kit: Kit) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    await ship.options(run_at=at, headers={"user": "ada"}, priority=8).enqueue(Order(1, ("a",)))
    handle = await send.options(delay=2.5).enqueue("x")
    [first, second] = kit.enqueued()
    assert first.arguments == {"order": Order(1, ("a",))}
    assert (first.run_at, first.headers, first.priority) == (at, {"user": "ada"}, 8)
    assert second == EnqueuedJob(
        id=handle.id,
        queue="mail",
        task=send.name,
        arguments={"to": "x", "template": "plain", "tries": 0},
        priority=5,
        delay=2.5,
        run_at=None,
        headers={},
        job=second.job,
    )


async def test_an_update_is_told_and_runs_in_place_of_the_job_that_it_changed(kit: Kit) -> None:
    call = send.options(id="x", on_conflict="update", delay=60)
    await call.enqueue("ada")
    handle = await call.enqueue("bob")
    assert [job.arguments["to"] for job in kit.enqueued(send)] == ["ada", "bob"]
    await kit.advance(60)
    [attempt] = await kit.run_until_idle()
    assert attempt.outcome == "completed"
    assert (await handle.status()).args == {"to": "bob"}


async def test_the_job_of_an_occurrence_is_told_once(kit: Kit) -> None:
    storage = clients_of(app).current().storage
    request = cast(JobRequest, send.options(id="mails:5").job("x"))
    for until_ms in (0, 2**50, 2**50):
        await storage.fire("mail", [Occurrence("mails", 5, request)], until_ms=until_ms)
    [job] = kit.assert_enqueued(send, {"to": "x"}, id="mails:5")
    assert (job.schedule, job.occurrence) == ("mails", datetime_of(5))


async def test_jobs_are_told_apart_by_where_they_come_from(kit: Kit) -> None:
    storage = clients_of(app).current().storage
    for number, schedule in enumerate(["mails", "mails", "bills"]):
        request = cast(JobRequest, send.options(id=f"{schedule}:{number}").job("x"))
        await storage.fire("mail", [Occurrence(schedule, number, request)], until_ms=2**50)
    await send.enqueue("x")
    kit.assert_enqueued(send, schedule="mails", count=2)
    kit.assert_enqueued(send, schedule="mails", occurrence=datetime_of(1))
    kit.assert_enqueued(send.job("x"), occurrence=datetime_of(2), schedule="bills")
    kit.assert_not_enqueued(schedule="bills", occurrence=datetime_of(0))
    with pytest.raises(AssertionError, match=r"like any task\(\.\.\.\), schedule='bill', found 0"):
        kit.assert_enqueued(schedule="bill")
    with pytest.raises(InvalidOption, match="occurrence=5 is not an instant"):
        kit.enqueued(occurrence=5)  # type: ignore[arg-type]  # the point


async def test_a_task_matches_all_its_jobs_and_a_name_does_too(kit: Kit) -> None:
    await bill.enqueue(1)
    await send.enqueue("x")
    [job] = kit.assert_enqueued(bill)
    assert kit.assert_enqueued(bill.name) == [job]
    assert kit.enqueued(bill) == [job]
    assert len(kit.enqueued()) == 2


async def test_some_arguments_match_whatever_the_others_are(kit: Kit) -> None:
    await send.enqueue("x", template="welcome")
    kit.assert_enqueued(send, {"to": "x"})
    kit.assert_enqueued(send, {"template": "welcome", "tries": 0})
    kit.assert_enqueued(send, {"to": ANY})
    kit.assert_enqueued(send, {})
    kit.assert_not_enqueued(send, {"to": "y"})
    kit.assert_not_enqueued(send, {"to": "x", "template": "plain"})


async def test_a_job_matches_if_all_its_arguments_are_the_same(kit: Kit) -> None:
    await send.enqueue("x", template="welcome")
    kit.assert_enqueued(send.job("x", template="welcome"))
    kit.assert_enqueued(send.job(to="x", template="welcome", tries=0))
    kit.assert_not_enqueued(send.job("x"))


async def test_values_match_as_they_come_out_of_their_encoded_form(kit: Kit) -> None:
    await ship.enqueue(Order(1, ("a", "b")))
    kit.assert_enqueued(ship.job(Order(1, ("a", "b"))))
    kit.assert_enqueued(ship, {"order": Order(1, ("a", "b"))})
    kit.assert_enqueued(ship, {"order": {"number": 1, "items": ["a", "b"]}})
    kit.assert_not_enqueued(ship, {"order": Order(1)})
    kit.assert_not_enqueued(ship, {"order": object()})


@pytest.mark.parametrize(
    ("options", "others"),
    [
        ({"queue": "other"}, {"queue": "mail"}),
        ({"id": "one"}, {"id": "two"}),
        ({"priority": 8}, {"priority": 7}),
        ({"delay": 60}, {"delay": timedelta(seconds=61)}),
        (
            {"run_at": datetime(2030, 1, 1, tzinfo=UTC)},
            {"run_at": datetime(2030, 1, 2, tzinfo=UTC)},
        ),
    ],
    ids=["queue", "id", "priority", "delay", "run_at"],
)
async def test_an_option_matches_if_it_is_said(
    kit: Kit, options: dict[str, object], others: dict[str, object]
) -> None:
    await send.options(**options).enqueue("x")  # type: ignore[arg-type]  # one of several
    kit.assert_enqueued(send, **options)  # type: ignore[arg-type]  # the same
    kit.assert_enqueued(send.options(**options).job("x"))  # type: ignore[arg-type]  # the same
    kit.assert_not_enqueued(send, **others)  # type: ignore[arg-type]  # the same
    kit.assert_not_enqueued(send.options(**others).job("x"))  # type: ignore[arg-type]  # the same


async def test_a_job_says_nothing_of_the_options_that_it_leaves_out(kit: Kit) -> None:
    await send.options(delay=60, id="one", max_attempts=9).enqueue("x")
    kit.assert_enqueued(send.job("x"))
    kit.assert_enqueued(send.options(max_attempts=9).job("x"))
    kit.assert_not_enqueued(send.options(max_attempts=8).job("x"))


async def test_one_job_is_expected_unless_another_number_is_said(kit: Kit) -> None:
    for _ in range(2):
        await bill.enqueue(1)
    with pytest.raises(
        AssertionError, match=r"expected 1 like .*shop_app\.bill\(\.\.\.\), found 2"
    ):
        kit.assert_enqueued(bill)
    assert len(kit.assert_enqueued(bill, count=2)) == 2
    assert len(kit.assert_enqueued(bill, count=None)) == 2
    with pytest.raises(AssertionError, match="expected one or more"):
        kit.assert_enqueued(send, count=None)
    kit.assert_not_enqueued(send)
    with pytest.raises(AssertionError, match=r"expected 0 .* found 2"):
        kit.assert_not_enqueued(bill)


async def test_a_failure_says_what_was_enqueued_instead(kit: Kit) -> None:
    with pytest.raises(AssertionError, match="found 0\nnothing was enqueued"):
        kit.assert_enqueued(bill)
    await bill.options(id="one").enqueue(1)
    call = ship.options(id="two", delay=60, priority=8, max_attempts=1)
    await call.enqueue(Order(1))
    with pytest.raises(AssertionError) as caught:
        kit.assert_enqueued(bill, {"number": 2}, queue="orders")
    ship_line = (
        "  - tests.apps.shop_app.ship(order=Order(number=1, items=())) in 'orders', id 'two', "
        'delay 60 s, priority 8, options {"max_attempts":1}'
    )
    assert str(caught.value).splitlines() == [
        "expected 1 like tests.apps.shop_app.bill(number=2, ...), queue='orders', found 0",
        "enqueued were:",
        "  - tests.apps.shop_app.bill(number=1) in 'orders', id 'one'",
        ship_line,
    ]


async def test_a_failure_marks_what_matched_and_stays_short(kit: Kit) -> None:
    await app.enqueue_many(bill.job(number) for number in range(100))
    with pytest.raises(AssertionError) as caught:
        kit.assert_enqueued(bill, {"number": 3}, count=2)
    lines = str(caught.value).splitlines()
    assert [line for line in lines if line.startswith("  *")] == [lines[5]]
    assert "bill(number=3)" in lines[5]
    assert lines[-1] == "  and 80 more"


async def test_jobs_are_told_after_they_ran_and_duplicates_are_not(kit: Kit) -> None:
    for _ in range(2):
        await bill.options(id="one", keep=0).enqueue(1)
    await kit.run_until_idle()
    kit.assert_enqueued(bill.job(1))


async def test_a_misspelt_argument_is_no_match_but_an_error(kit: Kit) -> None:
    with pytest.raises(InvalidArguments, match="no parameter 'too': it has to, template, tries"):
        kit.assert_not_enqueued(send, {"too": "x"})
    with pytest.raises(InvalidArguments, match="no parameter 'context'"):
        kit.assert_not_enqueued(ship, {"context": 1})


@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [(3, None), (bill, ["x"]), (bill.job(1), {"number": 1})],
    ids=["task", "arguments", "both"],
)
async def test_what_can_not_be_looked_for_is_refused(
    kit: Kit, wanted: Task[..., object], arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidOption):
        kit.enqueued(wanted, arguments)
    with pytest.raises(InvalidOption):
        kit.enqueued(bill, delay=-1)


async def test_a_job_that_no_handler_could_take_is_told_as_it_is(kit: Kit) -> None:
    await ship.enqueue("no order")  # type: ignore[arg-type]  # the point
    kit.assert_enqueued(ship, {"order": "no order"})
