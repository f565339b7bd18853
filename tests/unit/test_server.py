"""Which servers are refused, and what the doctor says of the others."""

from __future__ import annotations

import pytest

from headrace.storage.redis.server import findings, parse_info, refusal, server_info

REDIS = {"redis_version": "7.0.15", "maxmemory_policy": "noeviction", "role": "master"}


def problem_of(*, allow_eviction: bool = False, **fields: str) -> str:
    return refusal(server_info({**REDIS, **fields}, {}), allow_eviction=allow_eviction)


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.0.0", "10.0.1", "7.0.15-rc1"])
def test_redis_from_7_0_on_is_taken(version: str) -> None:
    assert problem_of(redis_version=version) == ""


@pytest.mark.parametrize("version", ["6.2.20", "6.0.16", "5.0.7", "2.8.0"])
def test_an_older_redis_is_refused_by_its_version(version: str) -> None:
    problem = problem_of(redis_version=version)
    assert f"Redis {version} is too old" in problem
    assert "Redis 7.0 or Valkey 7.2" in problem


@pytest.mark.parametrize(
    ("version", "is_taken"), [("7.2.4", True), ("8.1.0", True), ("7.0.0", False)]
)
def test_valkey_is_judged_by_its_own_version(version: str, *, is_taken: bool) -> None:
    # Valkey calls itself Redis 7.2.4 for the sake of old clients.
    problem = problem_of(redis_version="7.2.4", valkey_version=version)
    assert (problem == "") is is_taken
    if not is_taken:
        assert f"Valkey {version}" in problem


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
def test_a_server_that_throws_keys_away_is_refused_unless_allowed(policy: str) -> None:
    problem = problem_of(maxmemory_policy=policy)
    assert policy in problem
    assert "CONFIG SET maxmemory-policy noeviction" in problem
    assert "allow_eviction=True" in problem
    assert problem_of(maxmemory_policy=policy, allow_eviction=True) == ""


def test_eviction_can_be_allowed_but_an_old_version_can_not() -> None:
    assert "too old" in problem_of(redis_version="6.2.0", allow_eviction=True)


def test_a_service_that_hides_its_policy_is_taken() -> None:
    assert problem_of(maxmemory_policy="") == ""


def test_info_is_read_with_colons_in_its_values() -> None:
    text = "# Server\r\nredis_version:7.0.15\r\nexecutable:/a:b\r\n\r\n# Memory\r\nmaxmemory:0\r\n"
    assert parse_info(text) == {
        "redis_version": "7.0.15",
        "executable": "/a:b",
        "maxmemory": "0",
    }


def levels_of(config: dict[str, str], skew_ms: float = 0.0, **fields: str) -> dict[str, str]:
    info = server_info({**REDIS, **fields}, config)
    return {f.topic: f.level for f in findings(info, clock_skew_ms=skew_ms)}


def test_the_doctor_warns_of_what_costs_jobs() -> None:
    assert levels_of({"save": ""})["persistence"] == "warning"
    assert levels_of({"save": "3600 1"})["persistence"] == "warning"
    assert levels_of({"appendfsync": "everysec"}, aof_enabled="1")["persistence"] == "ok"
    assert levels_of({}, maxmemory_policy="allkeys-lru")["eviction"] == "error"
    assert levels_of({}, skew_ms=-90_000)["clock"] == "warning"
    assert levels_of({}, redis_version="7.2.4")["patch level"] == "warning"
    assert levels_of({}, redis_version="8.2.2")["patch level"] == "ok"
