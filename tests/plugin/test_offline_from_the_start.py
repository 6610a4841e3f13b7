"""A contract run is offline before the first conftest is imported: libraries read the variable once."""

from __future__ import annotations

import pytest


@pytest.mark.usefixtures("warm_python")
def test_a_conftest_of_a_contract_run_is_imported_offline(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it imports; a run of other tests is left alone."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    pytester.makeconftest("import os\nprint('offline:', os.environ.get('HF_HUB_OFFLINE'))")

    contract = pytester.runpytest_subprocess("-s", "--hermes-env", "json:JSONDecoder")
    other = pytester.runpytest_subprocess("-s")

    contract.stdout.fnmatch_lines(["*offline: 1"])
    other.stdout.fnmatch_lines(["*offline: None"])
