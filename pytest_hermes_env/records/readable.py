"""Reads the rollouts of files for commands that go on without a line that holds none: they name it on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_hermes_env.records.reading import Line, none_in, read_lines


def read_told(files: Sequence[str | Path]) -> list[Line]:
    """Return the rollouts of the files, and name the lines that hold none. Raises: a file cannot be read, or none has a rollout → UsageError."""
    lines = list(read_lines(files))
    found = [line for line in lines if line.record is not None]
    if not found:
        raise none_in(files, lines[0] if lines else None)
    sys.stderr.writelines(f"hermes-env: {line.place} is left out: {line.problem}\n" for line in lines if line.record is None)
    return found
