"""Works where an author works: not in this repository, whose own files would be read as the environments' imports."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer is installed there, as for authors; here it would be parsed again for each environment."""
    monkeypatch.chdir(tmp_path)
