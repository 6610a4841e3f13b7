"""The command ``hermes-env``: check, rules, explain, cassettes, mutants, record, replay, mock.

``check`` reads source and imports nothing of it: neither the files that it judges, nor atroposlib, nor pytest.
"""

from __future__ import annotations

import argparse
import functools
import gc
import io
import os
import sys
import threading
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import HermesEnvError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

DISTRIBUTION = "pytest-hermes-env"
OK, FINDINGS, USAGE = 0, 1, 2
FORMATS = ("text", "json", "github", "sarif")
TAKE_OTHERS = frozenset({"mutants", "record", "replay"})
"""Commands behind whose ``--`` stand the words of another one."""

_EPILOG = """\
examples:
  hermes-env check environments/                     judge every environment below a directory
  hermes-env check my_env.py:MyEnv --select HE7      one class, the rules about evaluation
  hermes-env explain HE702                           what a rule means, why it matters, how to mend a breach
  hermes-env init my_env.py                          write a file of cases with the environment's items in it
  hermes-env mutants my_env.py -- tests/test_my.py   break the environment on purpose; do its tests notice?
  hermes-env mock --script script.yaml --port 8000   a model server that says what the script says
  hermes-env record -- python my_env.py evaluate     record its rollouts; hermes-env replay -- ... needs no model
  hermes-env cassettes                               recordings: age, what has changed since, what no test uses

exit codes: 0 nothing found, 1 something is broken, 2 the command was used wrongly
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 clean, 1 findings, 2 wrong use."""
    words, rest = _split(list(sys.argv[1:] if argv is None else argv))
    parser = _parser(words[0] if words else "")
    try:
        options = parser.parse_args(words, argparse.Namespace(rest=rest))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    if options.version:
        print(f"hermes-env {_version()}")
        return OK
    if options.run is None:
        parser.print_help(sys.stderr)
        return USAGE
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may hold bytes that are no text
    try:
        return int(options.run(options))
    except UsageError as error:
        print(f"hermes-env: error: {error}", file=sys.stderr)
        return USAGE
    except HermesEnvError as error:
        print(f"hermes-env: error: {type(error).__name__}: {error}", file=sys.stderr)
        return FINDINGS
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        return FINDINGS


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of this command, and those behind ``--`` where it takes another command's."""
    if words[:1] and words[0] in TAKE_OTHERS and "--" in words:
        place = words.index("--")
        return words[:place], words[place + 1 :]
    return words, []


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser; the arguments of heavy commands are only there when one of them is called."""
    parser = argparse.ArgumentParser(
        prog="hermes-env",
        description="Judge Hermes Agent RL environments by their contract, without running them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    check = commands.add_parser(
        "check",
        help="judge environment classes by reading their source",
        description="Judge environment classes by reading their source. Nothing of it is imported or run.",
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help="file, directory, or path/to/file.py:Class")
    check.add_argument("--select", action="append", default=[], metavar="IDS", help="only these rules: HE301,HE8")
    check.add_argument("--ignore", action="append", default=[], metavar="IDS", help="not these rules: HE802")
    check.add_argument("--strict", action="store_true", help="warnings fail too")
    check.add_argument("--format", choices=FORMATS, default="text", help="text (default), json, github or sarif")
    check.add_argument("--output", metavar="FILE", default="", help="write the report to a file instead of the terminal")
    check.add_argument("--allow-none", action="store_true", help="files without any environment are no error: for hooks")
    check.add_argument("--baseline", metavar="FILE", default="", help="accept the findings that FILE records, and no others")
    check.add_argument(
        "--write-baseline", action="store_true", help="record today's findings; an existing baseline only shrinks"
    )
    check.add_argument(
        "--force-new", action="store_true", help="with --write-baseline: add new findings to an existing one, too"
    )
    check.set_defaults(run=_check)

    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="text (default), json or markdown"
    )
    rules.add_argument("--write-docs", metavar="DIR", default="", help="write a page for each rule, and an index, into DIR")
    rules.set_defaults(run=_rules)

    explain = commands.add_parser("explain", help="say what a rule means, why it matters and how to mend a breach")
    explain.add_argument("rule", metavar="RULE", help="id or name: HE702, eval-rolls-back-buffers")
    explain.set_defaults(run=_explain)

    cassettes = commands.add_parser(
        "cassettes",
        help="list recordings: age, size, what has changed since, and what no test uses",
        description="List cassettes. Tests and environments are looked up below the current directory; nothing is imported.",
    )
    cassettes.add_argument("directories", nargs="*", metavar="DIR", help="where to look (default: cassettes)")
    cassettes.add_argument("--format", choices=("text", "json"), default="text", help="for a reader, or for a program")
    cassettes.set_defaults(run=_cassettes)

    init = commands.add_parser(
        "init",
        help="write a file of cases for an environment, with its items in it",
        description="Write a file of cases beside an environment: transcripts of known worth that the contract plays. "
        "The environment is imported, set up without a network on a mock model, and its first items are written down.",
    )
    init.add_argument("target", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class")
    init.add_argument("--output", metavar="FILE", default="", help="where to write (default: MODULE.contract.yaml beside it)")
    init.add_argument("--force", action="store_true", help="write over a file that is there")
    init.set_defaults(run=_init)

    mutants = commands.add_parser(
        "mutants",
        help="break an environment on purpose, and see whether its tests notice",
        description="Break an environment on purpose, one rule at a time, and run its own tests on each breakage. "
        "No file is changed: the tests import the broken text in the place of the file.",
        add_help=command == "mutants",
    )
    if command == "mutants":
        from pytest_hermes_env.contract.mutation import mutants_command as mutation  # noqa: PLC0415  # only here

        mutation.add_arguments(mutants)
        mutants.set_defaults(run=mutation.run)

    for verb, what in (
        ("record", "run a command and record its rollouts"),
        ("replay", "run a command again on what it recorded"),
    ):
        recorded = commands.add_parser(verb, help=what, add_help=command == verb)
        if command == verb:
            from pytest_hermes_env.recorded_command import record_and_replay as recorded_command  # noqa: PLC0415

            recorded_command.add_arguments(recorded, plays=verb == "replay")
            recorded.set_defaults(run=functools.partial(recorded_command.run, plays=verb == "replay"))

    mock = commands.add_parser("mock", help="serve a scripted model over HTTP", add_help=command == "mock")
    if command == "mock":
        from pytest_hermes_env.inference import mock_command as serving  # noqa: PLC0415  # it loads a web server

        serving.add_arguments(mock)
        mock.set_defaults(run=serving.run)
    return parser


def _check(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.check_command import check  # noqa: PLC0415

    gc.disable()  # syntax trees are many small objects that live to the end: collecting doubles the time
    if options.force_new and not options.write_baseline:
        raise UsageError("--force-new goes with --write-baseline")
    done = check(
        options.paths,
        select=_ids(options.select),
        ignore=_ids(options.ignore),
        is_strict=options.strict,
        form=options.format,
        has_colour=_has_colour() and not options.output,
        processes=_processes(),
        baseline=options.baseline,
        writes_baseline=options.write_baseline,
        adds_to_baseline=options.force_new,
        allows_none=options.allow_none,
    )
    if options.output:
        from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415

        write_text(options.output, done.text)
    else:
        sys.stdout.write(done.text)
    if done.note:
        print(f"hermes-env: {done.note}", file=sys.stderr)
    return done.exit_code


def _rules(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.rules import ALL_RULES  # noqa: PLC0415

    if options.write_docs:
        from pytest_hermes_env.contract.rule_pages import main as write  # noqa: PLC0415

        return write([options.write_docs])
    if options.format == "markdown":
        from pytest_hermes_env.contract.rule_pages import index_text  # noqa: PLC0415

        sys.stdout.write(index_text())
        return OK
    from pytest_hermes_env.contract.reports.text import rule_table, rules_json  # noqa: PLC0415

    sys.stdout.write(rules_json(ALL_RULES) if options.format == "json" else "\n".join(rule_table(ALL_RULES)) + "\n")
    return OK


def _explain(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.catalogue import find_rule  # noqa: PLC0415
    from pytest_hermes_env.contract.reports.text import explain_lines  # noqa: PLC0415

    print("\n".join(explain_lines(find_rule(options.rule))))
    return OK


def _cassettes(options: argparse.Namespace) -> int:
    import json  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from pytest_hermes_env.cassette.inventory import (  # noqa: PLC0415
        DEFAULT_DIRECTORY,
        inventory_lines,
        inventory_of,
        inventory_values,
    )

    inventory = inventory_of(options.directories or [DEFAULT_DIRECTORY], Path.cwd())
    if options.format == "json":
        print(json.dumps(inventory_values(inventory), indent=2))
    else:
        print("\n".join(inventory_lines(inventory)))
    return FINDINGS if inventory.has_findings else OK


def _init(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.cases.init_file import start  # noqa: PLC0415

    done = start(options.target, output=options.output, is_forced=options.force)
    items = f"{done.items} item{'' if done.items == 1 else 's'}" if done.items else "a place for an item"
    print(f"wrote {done.file}: {items} of {done.class_name}")
    print(f"next: fill in gold, then pytest --hermes-env {options.target}")
    return OK


def _processes() -> int:
    """Return how many processes may judge: one while this process has threads, which a fork would not carry over."""
    return (os.cpu_count() or 1) if threading.active_count() == 1 else 1


def _ids(values: Sequence[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # only --version needs it

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
