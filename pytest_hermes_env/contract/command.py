"""What `hermes-env check` does: settings and flags in, the text of a report and an exit code out."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.check import check_paths, path_of, select_rules
from pytest_hermes_env.contract.settings import settings_for

if TYPE_CHECKING:
    from pytest_hermes_env.contract.check import StaticReport

__all__ = ["check"]


def check(
    paths: Sequence[str],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    is_strict: bool = False,
    form: str = "text",
    has_colour: bool = False,
    processes: int = 1,
) -> tuple[str, int]:
    """Judge ``paths`` and return the report as text and the exit code. ``select`` given here replaces that of pyproject.toml.

    Raises: UsageError for what cannot be judged or was set wrongly.
    """
    start = time.perf_counter()
    settings = settings_for(_common(paths))
    rules = select_rules(select or settings.select, ignore if select else (*settings.ignore, *ignore))
    report = check_paths(paths, rules, processes=processes)
    strict = is_strict or settings.strict
    text = _formatted(report, form, is_strict=strict, has_colour=has_colour, seconds=time.perf_counter() - start)
    return text, report.exit_code(is_strict=strict)


def _formatted(report: StaticReport, form: str, *, is_strict: bool, has_colour: bool, seconds: float) -> str:
    if form == "text":
        from pytest_hermes_env.contract.report import report_lines  # noqa: PLC0415

        return "\n".join(report_lines(report, is_strict=is_strict, has_colour=has_colour)) + "\n"
    from pytest_hermes_env.contract.reports import FORMATS, account_of  # noqa: PLC0415  # text needs none of it

    return FORMATS[form](account_of(report, is_strict=is_strict, seconds=seconds))


def _common(paths: Sequence[str]) -> str:
    """Return the directory, or the one file, that holds all that is judged: the search for pyproject.toml starts there."""
    return os.path.commonpath([os.path.abspath(path_of(path)) for path in paths])
