"""The files by which the two processes of a recorded command communicate, in a temporary directory."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

VARIABLE = "HERMES_ENV_CASSETTE_RUN"
"""The environment variable with the directory; removed when the cassette opens, so that no tool inherits it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings from the user's process. ``cassette`` is the absolute path, ``name`` as the user wrote it; ``python_path`` is the
    command's own PYTHONPATH, None if it had none.
    """

    plays: bool
    cassette: str
    name: str
    again: str
    tools: Literal["recorded", "live"] = "recorded"
    allow_leftovers: bool = False
    recorded_from: str = ""
    provider: str = ""
    python_path: str | None = None

    def write(self, directory: Path) -> None:
        """Write the settings for the command."""
        (directory / "settings.json").write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Settings:
        """Return the settings in a directory."""
        return cls(**json.loads((directory / "settings.json").read_text(encoding="utf-8")))


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcome in one process. ``error`` is a whole message, empty on success.

    ``is_whole`` is False until the process exits normally. ``refused`` are hosts whose connections were blocked.
    """

    process: int
    is_whole: bool = False
    error: str = ""
    calls: int = 0
    rollouts: int = 0
    rewards: list[float | None] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def write(self, directory: Path) -> None:
        """Write the report atomically."""
        path = directory / f"report-{self.process}.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.replace(temporary, path)


def read_reports(directory: Path) -> list[Report]:
    """Return the reports of all processes that had an environment."""
    return [Report(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(directory.glob("report-*.json"))]
