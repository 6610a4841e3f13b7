"""A fresh in-memory machine, and a way to read its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox


@pytest.fixture
def sandbox() -> FakeSandbox:
    """An empty machine."""
    return FakeSandbox()


@pytest.fixture
def ask() -> Callable[..., dict[str, Any]]:
    """``ask(machine, name, **arguments)`` is one tool call's result as a dict."""

    def call(machine: FakeSandbox, name: str, **arguments: Any) -> dict[str, Any]:
        result = json.loads(machine.call(name, arguments))
        assert isinstance(result, dict)
        return result

    return call
