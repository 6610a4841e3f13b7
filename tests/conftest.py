"""Set-up that all tests share."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `tox run -e matrix`."""
    parser.addoption("--all-rules", action="store_true", help="ask every rule about every mutant, instead of about a sample")
