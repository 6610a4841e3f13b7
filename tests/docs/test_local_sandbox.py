"""The lists of docs/reference/local-sandbox.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.local_cell import PASSED_VARIABLES
from pytest_hermes_env.sandbox.view import DEVICES, SYSTEM

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "local-sandbox.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_named_places_are_those_of_the_code() -> None:
    """The directories of the system, the devices and the default limits on the page are those of a cell."""
    system = re.search(r"programs and libraries of the system \| (.*?) \|", TEXT)
    devices = re.search(r"\| devices \| (.*?) and a private", TEXT)
    limits = Limits()

    assert system
    assert set(re.findall(r"`([^`]+)`", system[1])) == {re.sub(r"^/lib.*", "/lib*", place) for place in SYSTEM}
    assert devices
    assert tuple(re.findall(r"`([^`]+)`", devices[1])) == DEVICES
    assert f"| `cpu_s` | {limits.cpu_s} s " in TEXT
    assert f"| `memory_bytes` | {limits.memory_bytes >> 30} GiB " in TEXT
    assert f"| `processes` | {limits.processes} at" in TEXT
    assert f"| `disk_bytes` | {limits.disk_bytes >> 20} MiB " in TEXT


def test_the_named_variables_are_passed_on() -> None:
    """The page and the code list the same variables; LC_* means all that begin with LC_."""
    sentence = TEXT.partition("of the test run's variables")[2].partition(": no key")[0]
    named = set(re.findall(r"`([A-Z_*]+)`", sentence))

    assert named == {re.sub(r"^LC_.*", "LC_*", name) for name in PASSED_VARIABLES if name != "LANGUAGE"}
