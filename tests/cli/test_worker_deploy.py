"""The files in examples/deploy fit the command line, and leave a worker the time that it needs."""

from __future__ import annotations

import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from headrace.cli.worker import worker
from tests.support.processes import ROOT

DEPLOY = ROOT / "examples" / "deploy"
LEAST_S = 20.0
"""How much longer than its grace a worker may take: as the documents say."""


def unit() -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "headrace.service")
    return parser


def lists(name: str) -> list[list[str]]:
    """Return the lists of a file that are written as JSON has them."""
    found = re.findall(r'\[(?:"[^"]*"(?:, )?)+\]', (DEPLOY / name).read_text())
    return [json.loads(text) for text in found]


def commands() -> list[tuple[str, list[str]]]:
    """Return every worker command of the files, without the program."""
    found = [("headrace.service", shlex.split(unit()["Service"]["ExecStart"]))]
    for name in ("kubernetes.yaml", "compose.yaml", "Dockerfile"):
        found += [(name, words) for words in lists(name) if words[0] == "headrace"]
    return [(name, words[1:]) for name, words in found]


def setting(name: str, pattern: str) -> str:
    """Return what a file says, once and no more."""
    found: list[str] = re.findall(pattern, (DEPLOY / name).read_text(), re.MULTILINE)
    assert len(found) == 1, (name, pattern, found)
    return found[0]


def grace_s(words: list[str]) -> float:
    seconds: float = worker.make_context("worker", words[1:]).params["shutdown_timeout"]
    return seconds


def test_there_is_a_command_in_every_file() -> None:
    assert [name for name, _ in commands()] == [
        "headrace.service", "kubernetes.yaml", "compose.yaml", "Dockerfile", "Dockerfile",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "words"), commands())
def test_every_option_is_one_of_the_command_line(name: str, words: list[str]) -> None:
    assert words[0] == "worker"
    params = worker.make_context("worker", words[1:]).params
    assert params["path"] == "shop:app"
    with pytest.raises(click.NoSuchOption):
        worker.make_context("worker", [*words[1:], "--no-such-option"])


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("headrace.service", r"^TimeoutStopSec=(\d+)$"),
        ("kubernetes.yaml", r"^ +terminationGracePeriodSeconds: (\d+)$"),
        ("compose.yaml", r"^ +stop_grace_period: (\d+)s$"),
    ],
)
def test_there_is_time_to_end(name: str, pattern: str) -> None:
    words = dict(commands())[name]
    assert float(setting(name, pattern)) >= grace_s(words) + LEAST_S


def test_the_unit_is_of_the_kind_that_is_notified() -> None:
    service = unit()["Service"]
    assert (service["Type"], service["KillMode"]) == ("notify", "mixed")
    assert float(service["WatchdogSec"]) > 0
    assert {section: bool(unit()[section]) for section in unit().sections()} == {
        "Unit": True, "Service": True, "Install": True,
    }  # fmt: skip


def test_the_probes_are_those_of_the_health_port() -> None:
    words = dict(commands())["kubernetes.yaml"]
    port = worker.make_context("worker", words[1:]).params["health_port"]
    assert int(setting("kubernetes.yaml", r"containerPort: (\d+)")) == port
    text = (DEPLOY / "kubernetes.yaml").read_text()
    probes = dict(re.findall(r"(\w+)Probe:\n +httpGet: \{path: (\S+), port: health\}", text))
    assert probes == {"startup": "/startupz", "liveness": "/livez", "readiness": "/readyz"}
    assert f"127.0.0.1:{port}/readyz" in (DEPLOY / "compose.yaml").read_text()


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.yaml")), ids=lambda path: path.name)
def test_yaml_is_indented_by_two_without_tabs(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert [line for line in lines if "\t" in line] == []
    assert [line for line in lines if (len(line) - len(line.lstrip(" "))) % 2] == []
