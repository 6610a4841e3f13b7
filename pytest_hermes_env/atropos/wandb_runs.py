"""Lets wandb log offline into a temporary directory, and reads what its runs recorded there.

Place in the flow: the fixture ``wandb_capture``. Nothing of wandb is replaced but its settings; a ``wandb.log`` without a run starts one.

Source: wandb 0.31: a run's file is ":W&B" and three bytes, then a LevelDB log of ``wandb_internal_pb2.Record``; tables are JSON
files beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_hermes_env.patches import intercept

FILE_HEADER, BLOCK, RECORD_HEADER = 7, 32768, 7
FULL, LAST = 1, 4
"""Kinds of parts with which a record of the log is complete."""

DIRECTORIES = ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR")


@dataclass(frozen=True, kw_only=True)
class LoggedTable:
    """A ``wandb.Table``: the names of its columns, and its rows."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True, kw_only=True)
class LoggedStep:
    """What was logged for one step. wandb joins calls with the same step; a table is a `LoggedTable`."""

    step: int
    metrics: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """One run of wandb: what ``wandb.init`` was given, and its steps in order."""

    name: str
    project: str
    group: str
    config: dict[str, Any] = field(default_factory=dict)
    steps: list[LoggedStep] = field(default_factory=list)


class WandbCapture:
    """What was logged since the context began. Reading ends the open run, so that wandb has written everything."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def runs(self) -> list[LoggedRun]:
        """All runs, in the order in which they began."""
        _end_runs()
        files = sorted(self._directory.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_ctime_ns)
        return [_read(path) for path in files]

    @property
    def steps(self) -> list[LoggedStep]:
        """The steps of all runs."""
        return [step for run in self.runs for step in run.steps]

    def values(self, name: str) -> list[Any]:
        """Return the values of one metric, one for each step that has it; a prefix such as ``env_0_`` may be left out."""
        found = (
            next((value for full, value in step.metrics.items() if full == name or full.endswith(f"_{name}")), None)
            for step in self.steps
        )
        return [value for value in found if value is not None]


@contextlib.contextmanager
def capturing_runs() -> Iterator[WandbCapture]:
    """Let wandb log offline while the context lasts; a run that is open at its end is ended."""
    import wandb  # noqa: PLC0415 - heavy

    left: list[Any] = []

    def log(real: Any, *args: Any, **kwargs: Any) -> Any:
        if wandb.run is None or wandb.run in left:
            wandb.init()
        return wandb.run.log(*args, **kwargs) if wandb.run is not None else real(*args, **kwargs)

    with tempfile.TemporaryDirectory(prefix="hermes-env-wandb-", ignore_cleanup_errors=True) as name, _settings(Path(name)):
        _end_runs()
        left.append(wandb.run)  # of somebody who called teardown() alone: it is the current run forever, and cannot log
        try:
            with intercept("wandb.log", log):
                yield WandbCapture(Path(name))
        finally:
            _end_runs()


def _end_runs() -> None:
    """End the open run, which wandb.teardown() alone leaves as the current one, and everything else of wandb in this process."""
    import wandb  # noqa: PLC0415 - heavy
    from wandb.sdk.lib.asyncio_manager import AlreadyJoinedError  # noqa: PLC0415

    with contextlib.suppress(AlreadyJoinedError):
        wandb.finish()
    wandb.teardown()


@contextlib.contextmanager
def _settings(directory: Path) -> Iterator[None]:
    """Set wandb's variables, and restore all that begin with WANDB_ afterwards."""
    before = {name: value for name, value in os.environ.items() if name.startswith("WANDB_")}
    chosen = dict.fromkeys(DIRECTORIES, str(directory))
    chosen |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "WANDB_DISABLE_GIT": "true"}
    chosen |= {"WANDB_DISABLE_CODE": "true", "WANDB_X_DISABLE_STATS": "true", "WANDB_X_DISABLE_META": "true"}
    _set_variables(chosen)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        del os.environ[name]
    os.environ.update(values)


# ---------------------------------------------------------------------- the file of a run


def _read(path: Path) -> LoggedRun:
    """Return the run of a file."""
    from wandb.proto import wandb_internal_pb2  # noqa: PLC0415 - heavy

    new_record: Any = vars(wandb_internal_pb2)["Record"]  # the module has no types
    run: Any = None
    steps: dict[int, dict[str, Any]] = {}
    for content in _records(path.read_bytes()):
        record = new_record()
        record.ParseFromString(content)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
        elif kind == "history":
            metrics = steps.setdefault(record.history.step.num, {})
            metrics.update(_metrics(record.history.item, path.parent / "files"))
    return LoggedRun(
        name=run.display_name if run is not None else "",
        project=run.project if run is not None else "",
        group=run.run_group if run is not None else "",
        config={} if run is None else {_name(one): json.loads(one.value_json) for one in run.config.update},
        steps=[LoggedStep(step=number, metrics=metrics) for number, metrics in sorted(steps.items())],
    )


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a log, whose parts do not cross blocks."""
    position, record = FILE_HEADER, b""
    while position + RECORD_HEADER <= len(content):
        left = BLOCK - position % BLOCK
        if left < RECORD_HEADER:
            position += left
            continue
        size, kind = int.from_bytes(content[position + 4 : position + 6], "little"), content[position + 6]
        position += RECORD_HEADER
        record += content[position : position + size]
        position += size
        if kind in {FULL, LAST}:
            yield record
            record = b""


def _metrics(items: Any, files: Path) -> dict[str, Any]:
    """Return one row of the history: nested values as dicts, tables as tables; without wandb's own fields."""
    metrics: dict[str, Any] = {}
    for item in items:
        *parents, last = item.nested_key or [item.key]
        place = metrics
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = json.loads(item.value_json)
    return {name: _table(value, files) for name, value in metrics.items() if not name.startswith("_")}


def _table(value: Any, files: Path) -> Any:
    if not isinstance(value, dict) or value.get("_type") != "table-file":
        return value
    content = json.loads((files / value["path"]).read_text(encoding="utf-8"))
    return LoggedTable(columns=content["columns"], rows=content["data"])


def _name(item: Any) -> str:
    return ".".join(item.nested_key) or str(item.key)
