"""The command ``hermes-env``: the line of a command is read here, and a room runs it.

``check`` only reads source: it imports neither the files that it checks, nor atroposlib, nor pytest.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import sys
from typing import TYPE_CHECKING

from pytest_hermes_env.cli import check
from pytest_hermes_env.cli.commands import add_commands, add_serve_rollouts
from pytest_hermes_env.errors import HermesEnvError, UsageError
from pytest_hermes_env.pages.record_commands import add_commands as add_record_commands
from pytest_hermes_env.pages.rollout_commands import add_commands as add_rollout_commands
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

DISTRIBUTION = "pytest-hermes-env"
OK, FINDINGS, USAGE, INTERRUPTED = 0, 1, 2, 130
TAKE_FLAGS = frozenset({"serve-rollouts", "judge", "watch", "attack"})
"""Commands that take the flags of an environment, or of pytest."""

_EPILOG = """\
examples:
  hermes-env check environments/                     check every environment below a directory
  hermes-env check my_env.py:MyEnv --select HE7      one class, the rules about evaluation
  hermes-env watch my_env.py                         play and judge it again on each save
  hermes-env attack my_env.py                        what a verifier pays for without the work
  hermes-env judge evidence.gz                       judge again what pytest --hermes-evidence FILE kept, without playing
  hermes-env explain HE702                           what a rule means, why it matters, how to fix a violation
  hermes-env doctor                                  what this machine has: confinement, versions, leftovers
  hermes-env docs                                    what there is to read; hermes-env docs live prints a page
  hermes-env new my_env                              write a project: environment, cases, tests, CI
  hermes-env init my_env.py                          write a file of cases with the environment's items in it
  hermes-env serve-rollouts my_env.py:MyEnv          rollouts over HTTP, for training engines other than Atropos
  hermes-env mock --script script.yaml --port 8000   a model server that follows the script
  hermes-env view groups.jsonl                       rollouts as a page for a browser
  hermes-env export --inspect groups.jsonl           rollouts as a log for inspect view; --atif, --openai, --dataset
  hermes-env rescore my_env.py r.rollouts.jsonl      today's reward on yesterday's rollouts
  hermes-env health r.rollouts.jsonl                 whether a run was healthy
  hermes-env compare main my_env.py --env my_env.py  what differs between two versions
  hermes-env cassettes                               recordings: age, later changes, which are unused

exit codes: 0 no findings, 1 findings, 2 usage error
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 no findings, 1 findings, 2 usage error."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(words[0] if words else "")
    known = re.findall(r"^  hermes-env ([\w-]+)", _EPILOG, re.MULTILINE)
    if words and words[0] not in known and (near := difflib.get_close_matches(words[0], known, n=1)):
        print(f"hermes-env: error: there is no command {shown(words[0])}. Did you mean {near[0]}?", file=sys.stderr)
        return USAGE
    try:
        options, others = parser.parse_known_args(words, argparse.Namespace(rest=[]))
        if problem := _problem_of(others, words[0] if words else "", parser):
            print(shown(f"hermes-env: error: {problem}"), file=sys.stderr)
            return USAGE
        options.rest += others
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    if options.version:
        from pytest_hermes_env.versions import installed_versions  # noqa: PLC0415  # only --version needs it

        print(f"hermes-env {installed_versions()[DISTRIBUTION]}")
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
    except KeyboardInterrupt:
        print("hermes-env: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the interpreter fails when it flushes
        return FINDINGS


def _problem_of(others: Sequence[str], command: str, parser: argparse.ArgumentParser) -> str:
    """Return what is wrong with arguments that are not the command's own; flags of pytest, or of an environment, are far from its own."""
    about = parser.get_default("commands").get(command, parser)
    usage = about.format_usage() if others else ""
    own = re.findall(r"(?<![\w-])--?[a-z][\w-]*", usage)
    for other in others:
        name = other.partition("=")[0]
        near = difflib.get_close_matches(name, own, n=1, cutoff=0.75) if name.startswith("-") else []
        if near:
            return f"{about.prog} has no option {name}. Did you mean {near[0]}?"
    if not others or command in TAKE_FLAGS:
        return ""
    has = ", ".join(dict.fromkeys(one for one in own if one.startswith("--")))
    return f"{about.prog} knows nothing of {' '.join(others)}.\n  has  {has}\n  fix  {about.prog} --help shows what they do"


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser. The arguments of commands with slow imports are added only if ``command`` is one of them."""
    parser = argparse.ArgumentParser(
        prog="hermes-env",
        description="Test Hermes Agent RL environments: contract checks, recordings and a mock model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    parser.set_defaults(commands=commands.choices)

    check.add(commands)
    add_commands(commands)
    add_rollout_commands(commands)
    add_record_commands(commands)

    serve = commands.add_parser(
        "serve-rollouts",
        help="serve the rollouts of an environment to a training engine",
        description="Serve the rollouts of an environment over HTTP. --env.* flags set the environment's configuration.",
        add_help=command == "serve-rollouts",
    )
    if command == "serve-rollouts":
        add_serve_rollouts(serve)

    mock = commands.add_parser("mock", help="serve a scripted model over HTTP", add_help=command == "mock")
    if command == "mock":
        from pytest_hermes_env.inference import mock_command as serving  # noqa: PLC0415  # it loads a web server

        serving.add_arguments(mock)
        mock.set_defaults(run=serving.run)
    return parser
