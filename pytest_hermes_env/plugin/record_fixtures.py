"""Recorded rollouts in tests: the marker ``hermes_rollouts``, and assertions about their rewards and their health."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import RewardsChanged, UnhealthyRun, UsageError

if TYPE_CHECKING:
    from pytest_hermes_env.records.reading import Line
    from pytest_hermes_env.records.rescored_run import Summary
    from pytest_hermes_env.records.verdicts import Verdict

MARKER = "hermes_rollouts"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each rollout, where a marked test takes the argument ``recorded_rollout``."""
    mark = metafunc.definition.get_closest_marker(MARKER)
    if mark is not None and "recorded_rollout" in metafunc.fixturenames:
        lines = _lines(mark, metafunc.config)
        ids = [f"{os.path.basename(line.file)}:{line.line}" for line in lines]
        metafunc.parametrize("recorded_rollout", lines, ids=ids, indirect=True)


def _files(mark: pytest.Mark | None, config: pytest.Config) -> list[str]:
    """Return the files of a marker, whose patterns begin at the root directory. Raises: none, or no marker → UsageError."""
    if mark is None or not mark.args or mark.kwargs:
        raise UsageError('a test of rollouts requires @pytest.mark.hermes_rollouts("runs/*.rollouts.jsonl")')
    found = [sorted(glob.glob(os.path.join(config.rootpath, pattern), recursive=True)) for pattern in mark.args]
    if missing := [pattern for pattern, files in zip(mark.args, found, strict=True) if not files]:
        raise UsageError(f"@pytest.mark.hermes_rollouts finds no file {', '.join(missing)} below {config.rootpath}")
    return [file for files in found for file in files]


def _lines(mark: pytest.Mark | None, config: pytest.Config) -> list[Line]:
    from pytest_hermes_env.records.reading import read_records  # noqa: PLC0415 - pydantic, only where rollouts are read

    return read_records(_files(mark, config))


@pytest.fixture
def recorded_rollout(request: pytest.FixtureRequest) -> Line:
    """One rollout of the marker's files, a test each: ``recorded_rollout.record`` is its record."""
    line: Line | None = getattr(request, "param", None)
    if line is None:
        raise UsageError('recorded_rollout requires @pytest.mark.hermes_rollouts("runs/*.rollouts.jsonl")')
    return line


@pytest.fixture
def recorded_rollouts(request: pytest.FixtureRequest) -> list[Line]:
    """All rollouts of the marker's files."""
    return _lines(request.node.get_closest_marker(MARKER), request.config)


@pytest.fixture
def rescored() -> Callable[..., Summary]:
    """``rescored(MyEnv, recorded_rollouts)``: the rewards of today are those of then; `RewardsChanged` says what differs.

    ``threshold`` is the share that may differ, ``allow`` what the test vouches for, ``settings`` those of the environment.
    """

    def check(env_class: type | str, of: Line | list[Line], *, threshold: float = 0.0, **options: Any) -> Summary:
        from pytest_hermes_env.records.rescored_run import Summary, summary_lines  # noqa: PLC0415 - heavy
        from pytest_hermes_env.records.rescoring import Rescorer  # noqa: PLC0415

        __tracebackhide__ = True
        with Rescorer(env_class, allowed=options.pop("allow", ()), **options) as rescorer:
            summary = Summary(results=[rescorer.rescore(line) for line in (of if isinstance(of, list) else [of])])
        if all(one.status == "unscored" for one in summary.results):
            raise RewardsChanged("no rollout had a reward to compare with: nothing was checked")
        if summary.share_of_findings > threshold:
            raise RewardsChanged("\n".join(summary_lines(summary)))
        return summary

    return check


@pytest.fixture
def health(request: pytest.FixtureRequest) -> Callable[..., list[Verdict]]:
    """``health()``: the run of the marker's files is healthy; `UnhealthyRun` says what is not. ``limits`` replace the usual ones."""

    def check(limits: Mapping[str, float] | None = None) -> list[Verdict]:
        from pytest_hermes_env.records.health import health_of  # noqa: PLC0415 - pydantic
        from pytest_hermes_env.records.verdicts import verdict_lines  # noqa: PLC0415 - pydantic

        __tracebackhide__ = True
        verdicts = health_of(_files(request.node.get_closest_marker(MARKER), request.config), limits)
        if any(one.status == "unhealthy" for one in verdicts):
            raise UnhealthyRun("\n".join(verdict_lines(verdicts)))
        return verdicts

    return check
