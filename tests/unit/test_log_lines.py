"""A record that `logging` passes to several handlers, as a line of headrace's."""

from __future__ import annotations

import json
import logging

from headrace.logs.formatting import LineFormatter


def test_what_another_handler_leaves_in_a_record_is_no_field_of_the_line() -> None:
    record = logging.makeLogRecord(
        {"msg": "task %s", "args": ("7",), "name": "django.tasks", "customer": "c-7"}
    )
    assert logging.Formatter("%(asctime)s %(message)s").format(record).endswith("task 7")
    line = json.loads(LineFormatter(is_json=True).format(record))
    assert (line["event"], line["customer"]) == ("task 7", "c-7")
    assert not {"message", "asctime"} & set(line)
