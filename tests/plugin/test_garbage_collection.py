"""hermes and what it loads are taken out of garbage collection, which would look at all of it several times in a run."""

from __future__ import annotations

import gc

import pytest


@pytest.mark.parametrize(("frozen_before", "freezes"), [(0, 1), (5, 0)])
def test_modules_are_frozen_once(pytester: pytest.Pytester, monkeypatch, frozen_before: int, freezes: int) -> None:
    """After the collection of the tests, unless somebody else has done so."""
    calls = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen_before)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    pytester.makepyfile("def test_it(): ...")

    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)

    assert len(calls) == freezes
