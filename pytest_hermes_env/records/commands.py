"""The commands of the second life of rollouts: each adds its arguments, and hands them to the module that does the work."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import UsageError

ROLLOUTS = "*.rollouts.jsonl of process, evaluate or serve; groups.jsonl, samples.jsonl, ATIF or a cassette"


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``hermes-env``."""
    _add_rescore(commands)
    _add_health(commands)
    _add_compare(commands)


def _add_rescore(commands: Any) -> None:
    parser = commands.add_parser(
        "rescore",
        help="compute today's reward on yesterday's rollouts",
        description="Compute compute_reward again on recorded rollouts: the sandbox is restored, the verifier's commands run for real in a confined "
        "cell, judges answer as they did. A reward that reads what was not stored is not rescorable, and gets no number. Exit code 1 where "
        "more than --threshold of the rewards moved, flipped, failed or cannot be computed.",
    )
    parser.add_argument("target", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class")
    parser.add_argument("files", nargs="+", metavar="ROLLOUTS", help=ROLLOUTS)
    parser.add_argument(
        "--output", metavar="FILE", default="", help="JSON Lines of results, written as they come; a second run goes on there"
    )
    parser.add_argument("--json", metavar="FILE", default="", help="write the summary as JSON; - for standard output")
    parser.add_argument(
        "--workers",
        type=int,
        default=min(4, os.cpu_count() or 1),
        metavar="N",
        help="processes (default: 4, or the processors)",
    )
    parser.add_argument(
        "--pass", type=float, default=0.5, dest="pass_score", metavar="SCORE", help="a reward flips where it crosses this (0.5)"
    )
    parser.add_argument(
        "--threshold", type=float, default=0.0, metavar="SHARE", help="the share of findings that is accepted, from 0 to 1 (0)"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="NAME", help="a host path, variable or kind (clock) that you vouch for"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="NAME=VALUE", help="a setting of the environment"
    )
    parser.set_defaults(run=_rescore)


def _rescore(options: argparse.Namespace) -> int:
    import logging  # noqa: PLC0415

    from pytest_hermes_env.records.rescored_run import Settings, rescore_files, summary_lines  # noqa: PLC0415

    settings = Settings(
        target=options.target,
        allowed=tuple(options.allow),
        pass_score=options.pass_score,
        settings=tuple(map(_setting, options.settings)),
        workers=options.workers,
    )
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what rewards log is not the answer to this command
    try:
        summary = rescore_files(
            options.files, settings, output=Path(options.output) if options.output else None, progress=_progress
        )
    finally:
        logging.disable(before)
    if not summary.results:
        from pytest_hermes_env.records.reading import none_in, read_lines  # noqa: PLC0415

        raise none_in(options.files, next(read_lines(options.files), None))
    if options.json != "-":
        _say(summary_lines(summary))
    _write_json(options.json, summary.as_json())
    return int(summary.share_of_findings > options.threshold)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{done:,} of {total:,} rollouts{end}")
        sys.stderr.flush()


def _write_json(file: str, document: Any) -> None:
    from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415

    text = json.dumps(document, indent=1) + "\n"
    if file == "-":
        sys.stdout.write(text)
    elif file:
        write_text(file, text)


def _add_health(commands: Any) -> None:
    parser = commands.add_parser(
        "health",
        help="tell whether a run was healthy",
        description="Look at the rollouts of a finished run: failures that count as zeros, constant groups, loops, failing tools and judges, rewards "
        "that follow length, and more. Each check is healthy, unhealthy or unobserved, and names rollouts. Exit code 1 where one is unhealthy.",
    )
    parser.add_argument("files", nargs="*", metavar="ROLLOUTS", help=ROLLOUTS)
    parser.add_argument("--limit", action="append", default=[], metavar="CHECK=NUMBER", help="another limit; --list shows all")
    parser.add_argument("--list", action="store_true", help="list the checks with their limits, and exit")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the healthy and the unobserved checks, too")
    parser.add_argument("--json", metavar="FILE", default="", help="write the verdicts as JSON; - for standard output")
    parser.set_defaults(run=_health)


def _health(options: argparse.Namespace) -> int:
    from pytest_hermes_env.records.health import CHECKS, as_json, health_of, verdict_lines  # noqa: PLC0415

    if options.list:
        _say(f"{check.name:<23}{check.limit:>6g}   {check.says}" for check in CHECKS)
        return 0
    if not options.files:
        raise UsageError("health requires files of rollouts, or --list")
    verdicts = health_of(options.files, dict(map(_limit, options.limit)))
    if options.json != "-":
        _say(verdict_lines(verdicts, is_long=options.verbose))
    _write_json(options.json, as_json(verdicts))
    return int(any(one.status == "unhealthy" for one in verdicts))


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(f"--limit {text}: expected CHECK=NUMBER, such as constant_groups=0.8") from None


def _say(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="tell what differs between two versions or two recordings",
        description="A and B are environments (path/to/env.py), git revisions or Pythons of two virtual environments (with --env), or files of rollouts. The "
        "same cases are played on both. Shows what differs, causes first: tools, schemas, prompts, tokens, tool results, ends, rewards, metrics. "
        "Exit code 1 where something does.",
    )
    parser.add_argument("before", metavar="A", help="an environment, a git revision, a Python, or rollouts")
    parser.add_argument("after", metavar="B", help="the same of the other version")
    parser.add_argument("--env", default="", metavar="TARGET", help="the environment, where A or B is a revision or a Python")
    parser.add_argument(
        "--mode", choices=("token", "chat"), default="token", help="how rollouts are played (default: token, with token ids)"
    )
    parser.add_argument("--json", metavar="FILE", default="", help="write the differences as JSON; - for standard output")
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from pytest_hermes_env.records.comparing import as_json, compare, compared_lines, side_of  # noqa: PLC0415

    sides = side_of(options.before, options.env), side_of(options.after, options.env)
    found, unstable = compare(*sides, mode=options.mode)
    if options.json != "-":
        _say(compared_lines(found, options.before, options.after, unstable))
    _write_json(options.json, as_json(found, unstable))
    return int(bool(found))
