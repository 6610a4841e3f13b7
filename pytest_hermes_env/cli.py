"""The command ``hermes-env``: check, watch, judge, rules, explain, docs, cassettes, init, new, mutants, serve-rollouts, view, export,
mock.

``check`` only reads source: it imports neither the files that it checks, nor atroposlib, nor pytest.
"""

from __future__ import annotations

import argparse
import functools
import gc
import io
import os
import sys
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import HermesEnvError, UsageError
from pytest_hermes_env.pages.rollout_commands import add_commands as add_rollout_commands
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

DISTRIBUTION = "pytest-hermes-env"
OK, FINDINGS, USAGE = 0, 1, 2
FORMATS = ("text", "json", "github", "sarif")
TAKE_FLAGS = frozenset({"serve-rollouts", "judge", "watch"})
"""Commands that take the flags of an environment, or of pytest."""

_EPILOG = """\
examples:
  hermes-env check environments/                     check every environment below a directory
  hermes-env check my_env.py:MyEnv --select HE7      one class, the rules about evaluation
  hermes-env watch my_env.py                         play and judge it again on each save
  hermes-env judge evidence.gz                       judge again what pytest --hermes-evidence FILE kept, without playing
  hermes-env explain HE702                           what a rule means, why it matters, how to fix a violation
  hermes-env docs                                    what there is to read; hermes-env docs live prints a page
  hermes-env new my_env                              write a project: environment, cases, tests, CI
  hermes-env init my_env.py                          write a file of cases with the environment's items in it
  hermes-env mutants my_env.py -- tests/test_my.py   break the environment on purpose; do its tests fail?
  hermes-env serve-rollouts my_env.py:MyEnv          rollouts over HTTP, for training engines other than Atropos
  hermes-env mock --script script.yaml --port 8000   a model server that follows the script
  hermes-env view groups.jsonl                       rollouts as a page for a browser
  hermes-env export --inspect groups.jsonl           rollouts as a log for inspect view
  hermes-env cassettes                               recordings: age, later changes, which are unused

exit codes: 0 no findings, 1 findings, 2 usage error
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 no findings, 1 findings, 2 usage error."""
    words, rest = _split(list(sys.argv[1:] if argv is None else argv))
    parser = _parser(words[0] if words else "")
    try:
        options, others = parser.parse_known_args(words, argparse.Namespace(rest=rest))
        if others and words[0] not in TAKE_FLAGS:
            parser.error(f"unrecognized arguments: {' '.join(others)}")
        options.rest += others
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    if options.version:
        print(f"hermes-env {_version()}")
        return OK
    if options.run is None:
        parser.print_help(sys.stderr)
        return USAGE
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may hold bytes that are not text
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # it prints that there is no torch
    try:
        return int(options.run(options))
    except UsageError as error:
        print(shown(f"hermes-env: error: {error}"), file=sys.stderr)
        return USAGE
    except HermesEnvError as error:
        print(shown(f"hermes-env: error: {type(error).__name__}: {error}"), file=sys.stderr)
        return FINDINGS
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the interpreter fails when it flushes
        return FINDINGS


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of this command, and those after ``--`` for `mutants`, which hands them to pytest."""
    if words[:1] == ["mutants"] and "--" in words:
        place = words.index("--")
        return words[:place], words[place + 1 :]
    return words, []


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser. The arguments of commands with slow imports are added only if ``command`` is one of them."""
    parser = argparse.ArgumentParser(
        prog="hermes-env",
        description="Test Hermes Agent RL environments: contract checks, mutants, recordings and a mock model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

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
    check.set_defaults(run=_check)

    watch = commands.add_parser(
        "watch",
        help="play and judge an environment again on each save",
        description="Play and judge an environment now and after each change of a file in its directory, until Ctrl-C. A process that "
        "has loaded atroposlib and hermes is kept. Other flags go to pytest: --hermes-rules HE4, -x, -v.",
    )
    watch.add_argument(
        "targets", nargs="+", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class"
    )
    watch.set_defaults(run=_watch)

    judge = commands.add_parser(
        "judge",
        help="judge what a contract run kept, without playing",
        description="Judge the evidence that pytest --hermes-env TARGET --hermes-evidence FILE kept. Nothing is played, and nothing of the "
        "environment is imported. Other flags go to pytest: --hermes-rules HE4, --hermes-report-json FILE, --hermes-strict, -v.",
    )
    judge.add_argument("file", metavar="FILE", help="the evidence file")
    judge.set_defaults(run=_judge)

    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="text (default), json or markdown"
    )
    rules.add_argument("--write-docs", metavar="DIR", default="", help="write a page for each rule, and an index, into DIR")
    rules.set_defaults(run=_rules)

    explain = commands.add_parser("explain", help="explain a rule: what it means, why it matters and how to fix a violation")
    explain.add_argument("rule", metavar="RULE", help="id or name: HE702, eval-rolls-back-buffers")
    explain.set_defaults(run=_explain)

    docs = commands.add_parser(
        "docs",
        help="print a page of the documentation",
        description="Print a page of the documentation, which comes with the package: in a pipe as Markdown.",
    )
    docs.add_argument(
        "page", nargs="?", default="README", metavar="PAGE", help="live, how-to/faults, HE702 (default: the index)"
    )
    docs.set_defaults(run=_docs)

    cassettes = commands.add_parser(
        "cassettes",
        help="list recordings: age, size, later changes, and which are unused",
        description="List cassettes. Tests and environments are searched below the current directory; nothing is imported.",
    )
    cassettes.add_argument("directories", nargs="*", metavar="DIR", help="directories to search (default: cassettes)")
    cassettes.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    cassettes.set_defaults(run=_cassettes)

    init = commands.add_parser(
        "init",
        help="write a file of cases for an environment, with its items in it",
        description="Write a file of cases beside an environment: transcripts with known rewards that the contract plays. "
        "The environment is imported and set up offline on a mock model, and its first items are written to the file.",
    )
    init.add_argument("target", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class")
    init.add_argument(
        "--output", metavar="FILE", default="", help="the file to write (default: MODULE.contract.yaml beside it)"
    )
    init.add_argument("--force", action="store_true", help="overwrite an existing file")
    init.set_defaults(run=_init)

    add_rollout_commands(commands)

    new = commands.add_parser(
        "new",
        help="write a small project: an environment, its cases, tests, a recording and CI",
        description="Write a small project with an environment that keeps every rule. Its tests pass at once; replace its items, "
        "its prompt and its reward by yours.",
    )
    new.add_argument("name", metavar="NAME", help="module of the environment: my_env; the class is then MyEnv")
    new.add_argument("--output", metavar="DIR", default="", help="a new or empty directory (default: NAME)")
    new.set_defaults(run=_new)

    mutants = commands.add_parser(
        "mutants",
        help="break an environment on purpose and see whether its tests fail",
        description="Break an environment on purpose, one rule at a time, and run its own tests on each mutant. "
        "No file is changed: the tests import the mutant instead of the file.",
        add_help=command == "mutants",
    )
    if command == "mutants":
        from pytest_hermes_env.contract.mutation import mutants_command as mutation  # noqa: PLC0415  # only here

        mutation.add_arguments(mutants)
        mutants.set_defaults(run=mutation.run)

    serve = commands.add_parser(
        "serve-rollouts",
        help="serve the rollouts of an environment to a training engine",
        description="Serve the rollouts of an environment over HTTP. --env.* flags set the environment's configuration.",
        add_help=command == "serve-rollouts",
    )
    if command == "serve-rollouts":
        from pytest_hermes_env.layer import service_command  # noqa: PLC0415  # it loads atroposlib

        serve.add_argument("target", metavar="TARGET", help="path/to/env.py:Class or package.module:Class")
        service_command().add_arguments(serve)
        serve.set_defaults(run=_serve_rollouts)

    mock = commands.add_parser("mock", help="serve a scripted model over HTTP", add_help=command == "mock")
    if command == "mock":
        from pytest_hermes_env.inference import mock_command as serving  # noqa: PLC0415  # it loads a web server

        serving.add_arguments(mock)
        mock.set_defaults(run=serving.run)
    return parser


def _check(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.check_command import check  # noqa: PLC0415

    gc.disable()  # the check collects by itself, every few files
    gc.freeze()
    if options.hermes_base:
        os.environ["HERMES_ENV_BASE"] = options.hermes_base
    text, exit_code = check(
        options.paths,
        select=_ids(options.select),
        ignore=_ids(options.ignore),
        is_strict=options.strict,
        form=options.format,
        has_colour=_has_colour() and not options.output,
        allows_none=options.allow_none,
        with_base_env=options.hermes_base_env,
    )
    if options.output:
        from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415

        write_text(options.output, text)
    else:
        sys.stdout.write(text)
    return exit_code


def _watch(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.run.watch import watch  # noqa: PLC0415

    return watch(options.targets, options.rest, functools.partial(print, flush=True))


def _judge(options: argparse.Namespace) -> int:
    import subprocess  # noqa: PLC0415

    if not os.path.isfile(options.file):
        raise UsageError(
            f"there is no file {options.file}: pytest --hermes-env TARGET --hermes-evidence {options.file} writes it"
        )
    flags = ["-q", "--no-header", "-p", "no:cacheprovider", "--hermes-judge", options.file, *options.rest]
    return subprocess.call([sys.executable, "-m", "pytest", *flags])


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


def _docs(options: argparse.Namespace) -> int:
    from pytest_hermes_env.pages.documentation import print_page  # noqa: PLC0415

    print_page(options.page)
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
    from pytest_hermes_env.contract.init_file import start  # noqa: PLC0415

    done = start(options.target, output=options.output, is_forced=options.force)
    items = f"{done.items} item{'' if done.items == 1 else 's'}" if done.items else "a place for an item"
    print(f"wrote {done.file}: {items} of {done.class_name}")
    print(f"next: fill in gold, then pytest --hermes-env {options.target}")
    return OK


def _serve_rollouts(options: argparse.Namespace) -> int:
    from pytest_hermes_env.layer import find_class, service_command  # noqa: PLC0415

    classes = find_class(options.target)
    if len(classes) != 1:
        raise UsageError(f"{options.target} has several environments; name one: {options.target}:{classes[0].__name__}")
    if not hasattr(classes[0], "run_rollout"):
        raise UsageError(f"{classes[0].__name__} is built on a layer without run_rollout; build it on this distribution's")
    return int(service_command().run(classes[0], options, options.rest))


def _new(options: argparse.Namespace) -> int:
    from pathlib import Path  # noqa: PLC0415

    from pytest_hermes_env.new_project import create  # noqa: PLC0415

    project = create(options.name, Path(options.output) if options.output else None)
    print(
        f"wrote {len(project.files)} files to {project.directory}/: {project.class_name} in {project.module}.py, its cases, tests and CI"
    )
    print(f"next: cd {project.directory} && pytest, then put your items, prompt and reward into {project.module}.py")
    return OK


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
