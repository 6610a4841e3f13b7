"""What `hermes-env check` does: settings and flags in, the text of a report and an exit code out."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.catalogue import select_rules
from pytest_hermes_env.contract.check import check_paths, path_of
from pytest_hermes_env.contract.ledger.settings import settings_for

if TYPE_CHECKING:
    from pytest_hermes_env.contract.check import StaticReport


def check(
    paths: Sequence[str],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    is_strict: bool = False,
    form: str = "text",
    has_colour: bool = False,
    allows_none: bool = False,
    with_base_env: bool = False,
) -> tuple[str, int]:
    """Judge ``paths``; return the report as text and the exit code. ``select`` given here replaces that of pyproject.toml.

    Raises: UsageError for what cannot be checked or was set wrongly.
    """
    start = time.perf_counter()
    settings = settings_for(_common(paths))
    rules = select_rules(select or settings.select, ignore if select else (*settings.ignore, *ignore))
    report = check_paths(paths, rules, settings=settings, allows_none=allows_none, with_base_env=with_base_env)
    strict = is_strict or settings.strict
    if strict:
        report = dataclasses.replace(report, ledgers=tuple(ledger.strictly() for ledger in report.ledgers))
    text = _formatted(report, form, is_strict=strict, has_colour=has_colour, seconds=time.perf_counter() - start)
    return text, report.exit_code(is_strict=strict)


def _formatted(report: StaticReport, form: str, *, is_strict: bool, has_colour: bool, seconds: float) -> str:
    if form == "text":
        from pytest_hermes_env.contract.reports.text import report_lines  # noqa: PLC0415

        text = "\n".join(report_lines(report, is_strict=is_strict, has_colour=has_colour)) + "\n"
        return text + _annotations(report, is_strict=is_strict)
    from pytest_hermes_env.contract.reports import FORMATS, account_of  # noqa: PLC0415  # text needs none of it

    return FORMATS[form](account_of(report, is_strict=is_strict, seconds=seconds))


def _annotations(report: StaticReport, *, is_strict: bool) -> str:
    """Return GitHub's annotations where its actions run, else nothing."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return ""
    from pytest_hermes_env.contract.reports import account_of, github_text  # noqa: PLC0415

    return github_text(account_of(report, is_strict=is_strict, seconds=0.0))


def _common(paths: Sequence[str]) -> str:
    """Return the directory, or the one file, that holds all that is checked: the search for pyproject.toml starts there."""
    return os.path.commonpath([os.path.abspath(path_of(path)) for path in paths])
