"""The results of an evaluation, one JSON line per task as it ends, so that an evaluation that was stopped can be resumed."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

Sample = dict[str, Any]


class ResultsFile:
    """Appends results to a file and reads those of earlier runs. Without a directory it does nothing.

    ``settings`` are what a result depends on: a result under other settings is not one of this evaluation.
    """

    def __init__(self, directory: str | None, settings: Mapping[str, Any]) -> None:
        self.path = Path(directory) / "results.jsonl" if directory else None
        self.settings = json.loads(json.dumps(settings, default=str))

    def finished(self) -> dict[str, Sample]:
        """Return the scored results under the same settings, by the names of their tasks."""
        found: dict[str, Sample] = {}
        if self.path is None or not self.path.exists():
            return found
        for number, line in enumerate(self.path.read_text(encoding="utf-8").split("\n"), start=1):
            if not line:
                continue
            try:
                row = json.loads(line)
                sample, settings = row["sample"], row["settings"]
                if settings == self.settings and sample["score"] is not None:
                    found[sample["task_name"]] = sample
            except (ValueError, TypeError, LookupError):
                logger.warning(
                    "%s, line %d, is not a result: the evaluation was stopped while it was written", self.path, number
                )
        return found

    def write(self, sample: Sample) -> None:
        """Append one result."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # a line break first: an evaluation that was killed may have left half a line
            file.write(f"\n{json.dumps({'settings': self.settings, 'sample': sample}, default=str)}\n")
