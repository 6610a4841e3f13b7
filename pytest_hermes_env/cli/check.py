"""``hermes-env check``: judge environments by their source. Nothing that is checked is imported."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hermes_env.contract.check import StaticReport

FORMATS = ("text", "json", "github", "sarif")


def add(commands: Any) -> None:
    """Add the command to the parser."""
    check = commands.add_parser(
        "check",
        help="check environment classes by reading their source",
        description="Check environment classes by reading their source. Nothing is imported or run.",
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help="file, directory, or path/to/file.py:Class")
    check.add_argument("--select", action="append", default=[], metavar="IDS", help="only these rules: HE301,HE8")
    check.add_argument("--ignore", action="append", default=[], metavar="IDS", help="not these rules: HE802")
    check.add_argument("--strict", action="store_true", help="warnings fail too")
    check.add_argument(
        "--hermes-base",
        metavar="CLASS",
        default="",
        help="the base class of a fork's environments: AcmeEnv or acme.base:AcmeEnv",
    )
    check.add_argument(
        "--hermes-base-env",
        action="store_true",
        help="also check environments on Atropos' BaseEnv alone, against the rules that concern it",
    )
    check.add_argument("--format", choices=FORMATS, default="text", help="text (default), json, github or sarif")
    check.add_argument("--output", metavar="FILE", default="", help="write the report to a file instead of the terminal")
    check.add_argument("--allow-none", action="store_true", help="succeed on files without environments; for hooks")
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check, and print or write the report. ``--select`` replaces that of pyproject.toml.

    Raises: UsageError for what cannot be checked or was set wrongly.
    """
    from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415
    from pytest_hermes_env.contract.check import check_paths, path_of  # noqa: PLC0415
    from pytest_hermes_env.contract.ledger.settings import settings_for  # noqa: PLC0415
    from pytest_hermes_env.contract.rules import select_rules  # noqa: PLC0415  # other commands need no rules

    gc.disable()  # the check collects by itself, every few files
    gc.freeze()
    if options.hermes_base:
        os.environ["HERMES_ENV_BASE"] = options.hermes_base
    start = time.perf_counter()
    settings = settings_for(os.path.commonpath([os.path.abspath(path_of(path)) for path in options.paths]))
    select, ignore = rule_words(options.select), rule_words(options.ignore)
    rules = select_rules(select or settings.select, ignore if select else (*settings.ignore, *ignore))
    report = check_paths(
        options.paths, rules, settings=settings, allows_none=options.allow_none, with_base_env=options.hermes_base_env
    )
    is_strict = options.strict or settings.strict
    if is_strict:
        report = dataclasses.replace(report, ledgers=tuple(ledger.strictly() for ledger in report.ledgers))
    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not options.output
    seconds = time.perf_counter() - start
    text = _formatted(report, options.format, is_strict=is_strict, has_colour=has_colour, seconds=seconds)
    if options.output:
        write_text(options.output, text)
    else:
        sys.stdout.write(text)
    return report.exit_code(is_strict=is_strict)


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


def rule_words(values: Iterable[str]) -> list[str]:
    """Return the words of options that may be repeated and that hold several words each."""
    return [word.strip() for value in values for word in value.split(",") if word.strip()]
