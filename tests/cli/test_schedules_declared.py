"""``headrace schedule`` of what code has declared: who has set it, and what came of it."""

from __future__ import annotations

import asyncio
import re

import pytest
from msgspec.structs import replace

from headrace import Cron
from headrace.schedule import (
    HistoryEntry,
    JobBody,
    ScheduleBody,
    encode_body,
    encode_entry,
)
from headrace.storage.connect import open_storage
from headrace.storage.schedules import ScheduleWrite
from tests.cli.conftest import Cli

MONDAY_MS = 1_764_579_600_000  # 2025-12-01T09:00:00Z
WEEK_MS = 7 * 24 * 3_600_000

BODY = ScheduleBody(
    job=JobBody(
        task="shop.send", queue="mail", payload=b"{}", priority=5, max_stalls=3, keep_ms=3_600_000,
        lane="", expires_in_ms=0, options=b"",
    ),
    timing=Cron("0 9 * * mon"),
    next_ms=MONDAY_MS + 4000 * WEEK_MS,
    set_by="code",
    created_ms=MONDAY_MS,
    changed_ms=MONDAY_MS,
    declaration="d1",
    release="r1",
)  # fmt: skip

HISTORY = (
    HistoryEntry(
        instant_ms=MONDAY_MS, fired_ms=MONDAY_MS + 5, outcome="enqueued", job_id="mondays:1"
    ),
    HistoryEntry(
        instant_ms=MONDAY_MS + WEEK_MS, until_ms=MONDAY_MS + 3 * WEEK_MS, count=3,
        fired_ms=MONDAY_MS + 4 * WEEK_MS, outcome="skipped", reason="catch_up",
    ),
    HistoryEntry(
        instant_ms=MONDAY_MS + 4 * WEEK_MS, until_ms=MONDAY_MS + 5 * WEEK_MS, count=0,
        fired_ms=MONDAY_MS + 6 * WEEK_MS, outcome="missed",
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def declared(environment: dict[str, str]) -> None:
    """Have a schedule ``mondays`` that app ``shop`` declares, as its workers store it."""

    async def store() -> None:
        url, tenant = environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]
        storage = open_storage(url, tenant=tenant)
        write = ScheduleWrite(
            id="mondays", expected=0, app="shop", due_ms=BODY.next_ms or 0,
            body=encode_body(BODY), history=tuple(map(encode_entry, HISTORY)),
        )  # fmt: skip
        ended = replace(BODY, next_ms=None, declaration="", set_by="operator")
        other = ScheduleWrite(
            id="over", expected=0, due_ms=BODY.next_ms or 0, body=encode_body(ended)
        )
        alien = ScheduleWrite(id="alien", expected=0, due_ms=BODY.next_ms or 0, body=b"?")
        writes = [write, other, alien]
        assert all(await storage.write_schedules(writes, wakes=False))
        await storage.aclose()

    asyncio.run(store())


def notes(here: Cli) -> list[str]:
    """Return the notes of ``mondays`` and ``over`` in the list."""
    header, *lines = here("schedule", "list").out.splitlines()
    return [line[header.index("NOTE") :] for line in lines]


def test_a_declared_schedule_shows_whose_it_is(cli: Cli, here: Cli) -> None:
    text = cli("schedule", "show", "mondays").out
    assert "declared by the code of app 'shop'\n" in text
    assert "\nstate" not in text
    assert re.search(r"^state +ended$", cli("schedule", "show", "over").out, re.M)
    found = here("schedule", "show", "mondays", "-o", "json").json
    assert (found["app"], found["set_by"], found["is_edited"]) == ("shop", "code", False)
    assert notes(here) == ["", "ended"]
    for app, ids in (("shop", ["mondays"]), ("sho", [])):
        ran = here("schedule", "list", "--declared-by", app, "-o", "json")
        assert [one["id"] for one in ran.json] == ids


@pytest.mark.parametrize(
    "words", [("edit", "--priority", "8"), ("pause",)], ids=lambda words: words[0]
)
def test_it_shows_that_an_operator_has_edited_it(here: Cli, words: tuple[str, ...]) -> None:
    assert here("schedule", *words, "mondays").code == 0
    text = here("schedule", "show", "mondays").out
    assert "declared by the code of app 'shop', edited since by an operator\n" in text
    found = here("schedule", "show", "mondays", "-o", "json").json
    assert (found["app"], found["set_by"], found["is_edited"]) == ("shop", "operator", True)
    assert notes(here)[0] == ("paused, edited" if words == ("pause",) else "edited")


def test_its_deletion_warns_that_it_comes_back(here: Cli) -> None:
    ran = here("schedule", "delete", "mondays", "over", "--dry-run")
    assert ran.err.splitlines() == [
        "This will delete 2 schedules:",
        "  mondays  cron 0 9 * * mon UTC  (app 'shop' declares it: its next worker brings it back)",
        "  over  cron 0 9 * * mon UTC",
    ]


def test_what_this_release_can_not_read_is_told_of_and_can_be_deleted(here: Cli) -> None:
    assert [one["id"] for one in here("schedule", "list", "-o", "json").json] == ["mondays", "over"]
    ran = here("schedule", "show", "alien")
    assert (ran.code, ran.out) == (1, "")
    assert "schedule 'alien' can't be read by this release" in ran.err
    ran = here("schedule", "delete", "alien", "--dry-run")
    assert "  alien  (stored by another release, which alone can read it)\n" in ran.err
    assert here("schedule", "delete", "alien", "--yes").out == "1 schedule deleted.\n"
    assert "there is no schedule 'alien'" in here("schedule", "show", "alien").err


def test_the_history_has_the_newest_first_and_says_why_something_was_passed_over(
    cli: Cli, here: Cli
) -> None:
    header, *lines = cli("schedule", "history", "mondays").out.splitlines()
    outcome, count = header.index("OUTCOME"), header.index("COUNT")
    assert [line[outcome:count].strip() for line in lines] == [
        "missed", "skipped: catch_up", "enqueued",
    ]  # fmt: skip
    assert lines[1].startswith("2025-12-08 09:00:00 to 2025-12-22 09:00:00 ")
    assert lines[2].startswith("2025-12-01 09:00:00 ")
    assert lines[2].endswith(" mondays:1")
    missed, skipped, enqueued = here("schedule", "history", "mondays", "-o", "json").json
    assert (missed["count"], skipped["count"], enqueued["count"]) == (None, 3, 1)
    assert (skipped["at"], skipped["until"]) == ("2025-12-08T09:00:00Z", "2025-12-22T09:00:00Z")
    assert enqueued["job_id"] == "mondays:1"
    ran = here("schedule", "history", "over")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "Nothing has come of schedule 'over' yet.\n"
