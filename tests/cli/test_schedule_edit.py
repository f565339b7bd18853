"""``headrace schedule edit`` changes what is said."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.limit import Gate, Terms, read_gates
from headrace.storage import open_storage
from tests.cli.conftest import APP, Cli
from tests.cli.schedules import FAR, add, shown
from tests.support.schedules import stored


def test_an_edit_changes_what_is_said_and_nothing_else(here: Cli) -> None:
    add(
        here, "--args", '{"to": "a@b.c"}', "--tz", "Europe/Berlin", "--jitter", "5m", "--end", FAR,
        "--priority", "8", "--max-attempts", "7", "--header", "a=b",
    )  # fmt: skip
    before = shown(here)
    ran = here("schedule", "edit", "mondays", "--cron", "0 8 * * tue", "--attempt-timeout", "90s")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Schedule mondays is changed: every Tuesday at 08:00, Berlin time; ")
    after = shown(here)
    assert after["timing"] == "cron 0 8 * * tue Europe/Berlin"
    assert after["options"] == {**before["options"], "timeout_ms": 90_000}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"timing", "cron", "words", "next_at", "due_at", "options", "changed_at"}

    def edit(*words: str) -> dict[str, Any]:
        assert here("schedule", "edit", "mondays", *words).code == 0
        return shown(here)

    assert edit("--tz", "UTC")["timing"] == "cron 0 8 * * tue UTC"
    assert edit("--priority", "2", "--queue", "other")["priority"] == 2
    assert edit("--args", '{"to": "d@e.f"}')["args"] == {"to": "d@e.f"}
    assert edit("--no-end", "--catch-up", "3")["end_at"] is None
    last = edit("--every", "1h", "--overlap", "skip")
    assert (last["timing"], last["catch_up"], last["overlap"]) == ("every 3600 s", 3, "skip")
    assert (last["queue"], last["task"], last["options"]) == (
        "other", "shop.send", after["options"]
    )  # fmt: skip


def test_an_edit_can_hold_the_arguments_against_the_signature(here: Cli) -> None:
    here("schedule", "add", "sum", "add", "-A", APP, "--args", "[1, 2]", "--every", "30s")
    ran = here("schedule", "edit", "sum", "-A", APP, "--args", '["one"]')
    assert ran.code == 2
    assert "Expected `int`, got `str`" in ran.err
    assert here("schedule", "edit", "sum", "-A", APP, "--args", "[5]").code == 0
    assert shown(here, "sum")["args"] == {"a": 5}


def test_an_edit_says_what(here: Cli) -> None:
    add(here)
    ran = here("schedule", "edit", "mondays")
    assert ran.code == 2
    assert "say what to change" in ran.err


def test_an_edit_is_told_as_a_document_too(here: Cli) -> None:
    add(here)
    ran = here("schedule", "edit", "mondays", "--overlap", "skip", "-o", "json")
    assert ran.json == shown(here)
    ran = here("schedule", "edit", "mondays", "--end", "2020-01-01T00:00Z")
    assert (ran.code, ran.out) == (2, "")
    assert "would never fire" in ran.err
    ran = here("schedule", "edit", "mondays", "--end", FAR, "--no-end")
    assert (ran.code, ran.err.split(" (")[0]) == (2, "Error: say --end or --no-end")


def test_an_edit_of_arguments_is_one_of_the_keys_of_limits(
    here: Cli, environment: dict[str, str], cli_url: str
) -> None:
    async def read() -> list[Gate]:
        storage = open_storage(cli_url, tenant=environment["HEADRACE_TENANT"])
        body = await stored(storage, "charge")
        await storage.aclose()
        assert body is not None
        return read_gates(body.job.gates)

    def edit(*words: str) -> list[Gate]:
        assert here("schedule", "edit", "charge", *words).code == 0
        return asyncio.run(read())

    here("schedule", "add", "charge", "charge", "-A", APP, "--args", '["a"]', "--every", "30s")
    assert asyncio.run(read()) == [Gate("charge:customer", "a", Terms(1))]
    of_b = [Gate("charge:customer", "b", Terms(1))]
    assert edit("-A", APP, "--args", '["b", 7]') == of_b
    assert edit("--priority", "8") == of_b
    # Without the app the task's limits are not known, so that the keys have to be said.
    of_c = [Gate("charge:customer", "c", Terms(1))]
    assert edit("--args", '{"customer": "c"}', "--limit-key", "charge:customer=c") == of_c
    assert edit("--limit-key", "stripe=") == [*of_c, Gate("stripe", "")]
    fair = Gate("fair", "ada")
    assert edit("--fair-key", "ada", "--slots", "2") == [*of_c, Gate("stripe", ""), fair]
    assert edit("-A", APP, "--args", '["d"]', "--fair-key", "ada")[-1] == fair
    ran = here("schedule", "edit", "charge", *(w for n in "abc" for w in ("--limit-key", f"{n}=1")))
    assert ran.code == 2
    assert "5 limits are too many" in ran.err
