"""P7: clocks differ by no -0 ms."""

from __future__ import annotations

from headrace.storage.redis.server import findings, server_info


def test_p7_the_doctor_tells_no_negative_difference_of_clocks() -> None:
    """P7."""
    info = server_info({"redis_version": "7.2.4", "executable": ""}, {})
    for skew_ms, told in ((-0.3, "by 0 ms"), (-12.0, "by 12 ms"), (12.0, "by 12 ms")):
        [clock] = [f for f in findings(info, clock_skew_ms=skew_ms) if f.topic == "clock"]
        assert told in clock.detail
