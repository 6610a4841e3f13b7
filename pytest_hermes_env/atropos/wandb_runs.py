"""Keeps what is logged to wandb, in memory: wandb itself runs in its disabled mode.

Place in the flow: the fixture ``wandb_capture``. A ``wandb.log`` without a run starts one.

Source: wandb 0.31: ``sdk/lib/noop_run.py`` is the run of the disabled mode; ``log`` without a step logs for the current one, and
advances it unless ``commit`` is False.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.patches import assign, intercept


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
    """What was logged since the context began."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    @property
    def runs(self) -> list[LoggedRun]:
        """All runs, in the order in which they began."""
        return [run.logged() for run in self._runs]

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

    def init(self, real: Any, *args: Any, **kwargs: Any) -> Any:
        """Stand in for ``wandb.init``: start a run in disabled mode."""
        run = _Run(real(*args, **{**kwargs, "mode": "disabled"}), str(kwargs.get("group") or ""))
        self._runs.append(run)
        for target, owner in (("Run.log", run.run), ("wandb.log", None)):
            assign(target, run.log, owner=owner)
        return run.run


class _Run:
    """A run of the disabled mode, and what was logged to it."""

    def __init__(self, run: Any, group: str) -> None:
        self.run = run
        self._group = group
        self._steps: dict[int, dict[str, Any]] = {}
        self._step = 0

    def log(self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **_: Any) -> None:
        """Stand in for ``wandb.log``."""
        self._step = self._step if step is None else step
        self._steps.setdefault(self._step, {}).update({name: _plain(value) for name, value in data.items()})
        if commit or (step is None and commit is None):
            self._step += 1

    def logged(self) -> LoggedRun:
        """Return what was logged so far."""
        return LoggedRun(
            name=self.run.name,
            project=self.run.project,
            group=self._group,
            config=dict(self.run.config),
            steps=[LoggedStep(step=number, metrics=dict(metrics)) for number, metrics in sorted(self._steps.items())],
        )


@contextlib.contextmanager
def capturing_runs() -> Iterator[WandbCapture]:
    """Keep what is logged while the context lasts; a run that is open at its beginning or end is ended."""
    import wandb  # noqa: PLC0415 - heavy

    def log(_: Any, *args: Any, **kwargs: Any) -> Any:
        return wandb.init().log(*args, **kwargs)

    capture = WandbCapture()
    wandb.finish()
    try:
        with intercept("wandb.init", capture.init), intercept("wandb.log", log):
            yield capture
    finally:
        wandb.finish()


def _plain(value: Any) -> Any:
    """Return a value as it is, but a table as columns and rows, and a number of a library as Python's."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if type(value).__name__ == "Table":
        return LoggedTable(columns=list(value.columns), rows=[list(row) for row in value.data])
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
