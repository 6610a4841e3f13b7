"""What `hermes-env check` does: settings and flags in, the text of a report and an exit code out."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.contract.baseline import DEFAULT_FILE, Baseline, read_baseline, rewritten
from pytest_hermes_env.contract.catalogue import select_rules
from pytest_hermes_env.contract.check import check_paths, path_of
from pytest_hermes_env.contract.ledger.settings import settings_for
from pytest_hermes_env.contract.project_files import shown_path

if TYPE_CHECKING:
    from pytest_hermes_env.contract.check import StaticReport


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The report as text, what else there is to say, and the exit code."""

    text: str
    note: str
    exit_code: int


def check(
    paths: Sequence[str],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    is_strict: bool = False,
    form: str = "text",
    has_colour: bool = False,
    processes: int = 1,
    baseline: str = "",
    writes_baseline: bool = False,
    adds_to_baseline: bool = False,
    allows_none: bool = False,
    with_base_env: bool = False,
) -> Checked:
    """Judge ``paths``. ``select`` given here replaces that of pyproject.toml, and so does ``baseline``.

    Raises: UsageError for what cannot be checked or was set wrongly.
    """
    start = time.perf_counter()
    settings = settings_for(_common(paths))
    rules = select_rules(select or settings.select, ignore if select else (*settings.ignore, *ignore))
    file = baseline or settings.baseline
    if writes_baseline:
        file = file or os.path.join(settings.root, DEFAULT_FILE)
    old = read_baseline(file) if file and not (writes_baseline and not os.path.exists(file)) else None
    run = functools.partial(check_paths, paths, rules, settings=settings, with_base_env=with_base_env)
    report = run(baseline=old, processes=processes, allows_none=allows_none)
    note = ""
    is_refused = False
    if writes_baseline:
        report, note, is_refused = _rewrite(report, file, old, run, adds=adds_to_baseline)
    strict = is_strict or settings.strict
    if strict:
        report = dataclasses.replace(report, ledgers=tuple(ledger.strictly() for ledger in report.ledgers))
    text = _formatted(report, form, is_strict=strict, has_colour=has_colour, seconds=time.perf_counter() - start)
    return Checked(text=text, note=note, exit_code=1 if is_refused else report.exit_code(is_strict=strict))


def _rewrite(
    report: StaticReport,
    file: str,
    old: Baseline | None,
    run: Callable[..., StaticReport],
    *,
    adds: bool,
) -> tuple[StaticReport, str, bool]:
    """Write the baseline and check again with it; return the new report, what was done, and whether findings were refused."""
    text, count, taken, refused = rewritten(file, old, report.ledgers, adds=adds)
    write_text(file, text)
    note = f"{shown_path(os.path.abspath(file))}: {count} {'finding' if count == 1 else 'findings'} recorded, {taken} removed"
    if refused:
        note += (
            f"; {len(refused)} refused, because a baseline only shrinks: fix them, waive them with a reason, "
            "or add them with --force-new"
        )
    again = run(baseline=read_baseline(file), allows_none=True)
    return again, note, bool(refused)


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
