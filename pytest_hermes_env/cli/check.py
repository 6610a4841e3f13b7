"""``hermes-env check``: judge environments by their source. Nothing that is checked is imported."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UsageError

if TYPE_CHECKING:
    from pytest_hermes_env.contract.ledger.account import Account

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
    check.add_argument("--verbose", "-v", action="store_true", help="say of each finding why it matters, and list each rule")
    check.add_argument("--allow-none", action="store_true", help="succeed on files without environments; for hooks")
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check, and print or write the report. ``--select`` replaces that of pyproject.toml.

    Raises: UsageError for what cannot be checked or was set wrongly.
    """
    from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415
    from pytest_hermes_env.contract.check import check_paths, path_of  # noqa: PLC0415
    from pytest_hermes_env.contract.ledger.settings import settings_for  # noqa: PLC0415
    from pytest_hermes_env.contract.rules import rule_words, select_rules  # noqa: PLC0415  # other commands need no rules
    from pytest_hermes_env.redaction.file_check import check_text, keys_among  # noqa: PLC0415
    from pytest_hermes_env.redaction.shown_text import environment_redactor  # noqa: PLC0415

    gc.disable()  # the check collects by itself, every few files
    gc.freeze()
    if options.hermes_base:
        os.environ["HERMES_ENV_BASE"] = options.hermes_base
    start = time.perf_counter()
    settings = settings_for(os.path.commonpath([os.path.abspath(path_of(path)) for path in options.paths]))
    select, ignore = rule_words(options.select), rule_words(options.ignore)
    rules = select_rules(select or settings.select, ignore if select else (*settings.ignore, *ignore))
    account = check_paths(
        options.paths,
        rules,
        settings=settings,
        allows_none=options.allow_none,
        with_base_env=options.hermes_base_env,
        is_strict=options.strict or settings.strict,
    )
    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not options.output
    account = dataclasses.replace(account, seconds=time.perf_counter() - start)
    text = _formatted(account, options.format, is_verbose=options.verbose, has_colour=has_colour)
    if options.output:
        check_text(options.output, text, keys_among(environment_redactor().known), UsageError)
        write_text(options.output, text)
    else:
        sys.stdout.write(text)
    return account.exit_code


def _formatted(account: Account, form: str, *, is_verbose: bool, has_colour: bool) -> str:
    if form != "text":
        from pytest_hermes_env.contract.ledger.account import versions  # noqa: PLC0415  # text needs none of it
        from pytest_hermes_env.contract.reports import report_text  # noqa: PLC0415

        return report_text(dataclasses.replace(account, versions=versions()), form)
    from pytest_hermes_env.contract.reports.text import report_lines  # noqa: PLC0415

    text = "\n".join(report_lines(account, is_verbose=is_verbose, has_colour=has_colour)) + "\n"
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    from pytest_hermes_env.contract.reports.github import github_text  # noqa: PLC0415

    return text + github_text(account)
