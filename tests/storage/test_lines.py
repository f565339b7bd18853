"""The lines in which events are kept, and what of them each release reads."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.storage import ErrorInfo, EventRecord, JobEventKind
from headrace.storage.lines import (
    LAST_MS,
    MOST_DIGITS,
    MOST_START_DIGITS,
    NO_ERROR,
    PART_LIMIT,
    error_words,
    read_lines,
)
from headrace.views.value import instant

KIND = JobEventKind


def read(*lines: str, last: int = 0) -> list[EventRecord]:
    """Return the events of an entry."""
    return list(read_lines("\n".join(lines), stream_id="7-0", at_ms=7, last=last))


def line(kind: str, *parts: str) -> str:
    """Return a line with these parts of detail."""
    return "\t".join((kind, "x", "send", "2", "w", "3", "4", *parts))


def test_each_line_has_the_number_that_its_place_in_the_entry_gives_it() -> None:
    lines = (line("queued", ""), "rubbish", line("of a newer release", ""), line("active", ""))
    assert [(event.number, event.kind) for event in read(*lines, last=12)] == [
        (9, KIND.QUEUED),
        (12, KIND.ACTIVE),
    ]


def test_no_event_has_a_number_where_that_of_the_entry_is_not_known() -> None:
    assert [event.number for event in read(line("queued", ""), line("active", ""))] == [0, 0]


def test_the_parts_of_detail_are_read_by_the_kind() -> None:
    error = ("ValueError", "no such address", "shop/mail.py:12 in send")
    worker = ("mailer", "box-1", "1.0", "2025-11")
    said = dict(zip(("error", "message", "frame"), error, strict=True))
    of_worker: dict[str, object] = dict(
        zip(("worker", "host", "version", "app_version"), worker, strict=True)
    )
    parts: dict[tuple[str, ...], dict[str, object]] = {
        ("queued", ""): {},
        ("queued", "due"): {"detail": "due"},
        ("scheduled", "9"): {"due_ms": 9},
        ("scheduled", "9", "next"): {"due_ms": 9, "detail": "next"},
        ("blocked", ""): {},
        ("updated", ""): {},
        ("updated", "9"): {"due_ms": 9},
        ("active", ""): {},
        ("retrying", *error, "9"): {**said, "detail": "ValueError", "due_ms": 9},
        ("snoozed", "not yet", "9"): {"detail": "not yet", "due_ms": 9},
        ("put_back", ""): {},
        ("put_back", "unknown_task", "9"): {"detail": "unknown_task", "due_ms": 9},
        ("stalled", *error): {**said, "detail": "ValueError"},
        ("completed", "5"): {"created_ms": 5},
        ("failed", "exhausted", *error, "5"): {**said, "detail": "exhausted", "created_ms": 5},
        ("cancelled", "", "5"): {"created_ms": 5},
        ("purged", "queued", "5"): {"detail": "queued", "created_ms": 5},
        ("progress", "0.5 of\tall"): {"detail": "0.5 of\tall"},
        ("joined", *worker): of_worker,
        ("left", "reaped", *worker): {"detail": "reaped", **of_worker},
    }
    assert {kind for kind, *_ in parts} == set(JobEventKind)
    for (kind, *detail), told in parts.items():
        fields = {"detail": "", **told}
        [event] = read(line(kind, *detail), last=1)
        assert event == EventRecord(
            stream_id="7-0",
            number=1,
            at_ms=7,
            kind=JobEventKind(kind),
            job_id="x",
            task="send",
            start=2,
            incarnation="w",
            wait_ms=3,
            run_ms=4,
            **fields,  # type: ignore[arg-type]  # each field's own type
        )


def test_lines_of_releases_that_said_less_are_read() -> None:
    old = {
        ("scheduled", ""): "",
        ("retrying", "ValueError"): "ValueError",
        ("snoozed", "not yet"): "not yet",
        ("stalled", "WorkerDied"): "WorkerDied",
        ("completed", ""): "",
        ("failed", "exhausted"): "exhausted",
        ("cancelled", "could_not_stop"): "could_not_stop",
    }
    for (kind, detail), told in old.items():
        [event] = read(line(kind, detail))
        assert event.detail == told
        assert (event.message, event.frame, event.due_ms, event.created_ms) == ("", "", 0, 0)


def test_a_time_that_is_no_number_is_none() -> None:
    for word in ("soon", "-1", "1_0", "٣", "9" * 16, "1.5", str(LAST_MS + 1)):
        [event] = read(line("scheduled", word))
        assert event.due_ms == 0
    [event] = read(line("scheduled", str(LAST_MS)))
    assert instant(event.due_ms) == datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)


def test_a_line_whose_numbers_are_none_is_passed_over() -> None:
    good = ["active", "x", "send", "2", "w", "3", "4", ""]
    assert len(read("\t".join(good))) == 1
    for place, most_digits in ((3, MOST_START_DIGITS), (5, MOST_DIGITS), (6, MOST_DIGITS)):
        words = list(good)
        words[place] = "9" * most_digits
        assert len(read("\t".join(words))) == 1
        for word in ("soon", "-1", " 1", "1_0", "٣", "0x1", "9" * (most_digits + 1)):
            words[place] = word
            assert read("\t".join(words)) == []


def test_the_words_of_an_error_have_three_parts_in_one_line() -> None:
    traceback = 'Traceback (most recent call last):\n  File "mail.py", line 12, in send\nE: x\n'
    words = error_words(ErrorInfo("shop.E", "no\tsuch\naddress", traceback))
    assert words == "shop.E\tno such address\tmail.py:12 in send"
    assert error_words(ErrorInfo("", "")) == NO_ERROR


def test_no_text_of_an_error_breaks_its_line_or_makes_it_long() -> None:
    message = "\0\t\r\n\x1b[31m\x85" + "½" * 2_000 + "\ud800"
    frame = f'  File "{"d/" * 500}mail.py", line 12, in send'
    words = error_words(ErrorInfo("shop.\tE\ud800", message, frame))
    kind, said, place = words.encode().decode().split("\t")
    assert kind == "shop. E?"
    assert said == " " * 5 + "[31m " + "½" * 190
    assert place.startswith("…")
    assert place.endswith("d/mail.py:12 in send")
    assert len(place) == len(said) == PART_LIMIT
    assert words.replace("\t", "").isprintable()


def test_a_cut_message_has_no_half_of_a_pair() -> None:
    assert error_words(ErrorInfo("E", "\ud83d" * 300)).split("\t")[1] == "?" * PART_LIMIT
