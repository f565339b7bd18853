"""The web service over HTTP, with jobs that run when a test says so."""

import asyncio

from fastapi.testclient import TestClient
from headrace.testing import Kit

from shop.app import app
from shop.tasks.orders import place, quote
from tests.orders import order


def test_an_order_is_accepted_and_its_job_can_be_looked_at(
    client: TestClient, headrace_kit: Kit
) -> None:
    answer = client.post("/orders", json=order(7))
    assert (answer.status_code, answer.json()) == (202, {"job": "order-7", "outcome": "queued"})
    at = answer.headers["Location"]
    assert client.get(at).json()["state"] == "queued"

    asyncio.run(headrace_kit.run_until_idle(raise_errors=True))
    status = client.get(at).json()
    assert (status["state"], status["result"]) == ("completed", {"order": 7, "total": "10.00"})


def test_an_order_that_is_sent_twice_is_one_job(client: TestClient, headrace_kit: Kit) -> None:
    client.post("/orders", json=order(7))
    assert client.post("/orders", json=order(7)).json()["outcome"] == "duplicate"
    headrace_kit.assert_enqueued(place, count=1)


def test_what_is_no_order_is_refused(client: TestClient, headrace_kit: Kit) -> None:
    assert client.post("/orders", json=order(7) | {"email": "Ada"}).status_code == 422
    headrace_kit.assert_not_enqueued(place)


def test_many_orders_are_taken_at_once(client: TestClient, headrace_kit: Kit) -> None:
    client.post("/orders", json=order(1))
    answer = client.post("/orders/import", json=[order(number) for number in range(1, 1_001)])
    assert answer.json() == {"new": 999, "known": 1}
    headrace_kit.assert_enqueued(place, count=1_000)


def test_a_quote_is_answered_in_the_same_request(client: TestClient, headrace_kit: Kit) -> None:
    answer = client.post("/quotes", json=order(1, "tea", "cake"))
    assert answer.json() == {"goods": "20.00", "delivery": "4.90"}
    headrace_kit.assert_enqueued(quote, priority=8)


def test_a_quote_that_nobody_works_out_in_time_is_a_504(
    client: TestClient, headrace_kit: Kit
) -> None:
    asyncio.run(app.queue("quotes").pause())
    answer = client.post("/quotes", json=order(1))
    assert answer.status_code == 504


def test_a_report_is_followed_to_its_end(client: TestClient, headrace_kit: Kit) -> None:
    client.post("/orders/import", json=[order(n, "tea", "cake") for n in range(1, 4)])
    asyncio.run(headrace_kit.run_until_idle(raise_errors=True))
    at = client.post("/reports/bought-together", params={"best": 1}).headers["Location"]
    with client.stream("GET", f"{at}/events") as answer:
        lines = [line for line in answer.iter_lines() if line.startswith(("event:", "data:"))]
    assert lines[:2] == ["event: step", 'data: {"done": 1, "total": 3}']
    assert lines[-2] == "event: end"
    assert '"state": "completed"' in lines[-1]
    assert client.get(at).json()["progress"] == 1


def test_a_job_is_cancelled_before_it_starts(client: TestClient, headrace_kit: Kit) -> None:
    at = client.post("/orders", json=order(7)).headers["Location"]
    assert client.delete(at).json() == {"outcome": "cancelled"}
    assert asyncio.run(headrace_kit.run_until_idle()) == []
    assert client.get(at).json()["state"] == "cancelled"
    assert client.delete(at).json() == {"outcome": "cancelled"}  # again, and nothing changes


def test_an_unknown_job_is_a_404(client: TestClient) -> None:
    assert client.get("/jobs/nobody").status_code == 404
    assert client.delete("/jobs/nobody").status_code == 404
    assert client.get("/jobs/nobody/events").status_code == 404
