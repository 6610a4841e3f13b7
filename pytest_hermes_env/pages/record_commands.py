"""The commands of the second life of rollouts: each adds its arguments, and hands them to the module that does the work."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import EnvironmentSetupError, UsageError
from pytest_hermes_env.pages.findings_page import link_of, write_findings

if TYPE_CHECKING:
    from pytest_hermes_env.records.live_judge import LiveJudge
    from pytest_hermes_env.records.rescored_run import GroupChange

MOST_ROWS = 500
"""Rows of a table on a page; the JSON has all."""
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
    processes = min(4, os.cpu_count() or 1)
    parser.add_argument(
        "--workers", type=_count, default=processes, metavar="N", help="processes (default: 4, or the processors)"
    )
    passes = "a reward passes from here on, and flips where it crosses it (0.5)"
    parser.add_argument("--pass", type=float, default=0.5, dest="pass_score", metavar="SCORE", help=passes)
    share = "the share of findings that is accepted, from 0 to 1 (0)"
    parser.add_argument("--threshold", type=float, default=0.0, metavar="SHARE", help=share)
    vouched = "a host path, variable or kind (clock) that you vouch for"
    parser.add_argument("--allow", action="append", default=[], metavar="NAME", help=vouched)
    fields = "a setting of the environment"
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE", help=fields)
    live = parser.add_argument_group(
        "judges that are asked anew", "What a reward asks a model and no recording holds costs money."
    )
    live.add_argument("--live", metavar="PROVIDER", default="", help="ask it: openrouter, openai, vllm, sglang, custom")
    live.add_argument("--model", "--hermes-model", metavar="M", default="", help="the model")
    live.add_argument(
        "--base-url", "--hermes-base-url", metavar="URL", default="", help="the server's, where it is not the usual one"
    )
    live.add_argument(
        "--api-key-env", "--hermes-api-key-env", metavar="NAME", default="", help="the variable that holds the key"
    )
    live.add_argument(
        "--max-calls",
        "--hermes-max-calls",
        type=int,
        default=100,
        metavar="N",
        help="calls at the most, in all processes (100)",
    )
    live.add_argument("--max-tokens", "--hermes-max-tokens", type=int, metavar="N", help="tokens at the most")
    live.add_argument(
        "--max-usd", "--hermes-max-usd", type=float, metavar="X", help="dollars at the most, where the provider tells the cost"
    )
    _add_outputs(parser)
    parser.set_defaults(run=_rescore)


def _add_outputs(parser: Any) -> None:
    parser.add_argument("--json", metavar="FILE", default="", help="write what was found as JSON; - for standard output")
    parser.add_argument("--html", metavar="FILE", default="", help="write it as a page for a browser")


def _rescore(options: argparse.Namespace) -> int:
    import logging  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    from pytest_hermes_env.records.rescored_run import Settings, findings, rescore_files, summary_lines  # noqa: PLC0415

    _check_outputs(options, *options.files, options.target)
    if options.target.endswith(".jsonl"):
        raise UsageError(
            f"{options.target} stands where the environment belongs.\n  expected  path/to/env.py or package.module:Class\n"
            "  fix       put it first: hermes-env rescore my_env.py ROLLOUTS"
        )
    if not 0 <= options.threshold <= 1:
        raise UsageError(f"--threshold {options.threshold:g}: expected a share from 0 to 1")
    settings = Settings(
        target=options.target,
        allowed=tuple(options.allow),
        pass_score=options.pass_score,
        settings=tuple(map(_setting, options.settings)),
        workers=options.workers,
        elsewhere=not options.live,
    )
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what rewards log is not the answer to this command
    try:
        with tempfile.TemporaryDirectory(prefix="hermes-env-rescore-") as directory:
            if options.live:
                settings = dataclasses.replace(settings, live=_live_judge(options, directory))
            output = Path(options.output) if options.output else None
            try:
                summary = rescore_files(options.files, settings, output=output, progress=_progress)
            except EnvironmentSetupError as error:  # nothing was computed: that is no finding
                raise UsageError(str(error)) from error
            except KeyboardInterrupt:
                kept = (
                    f"what is done is in {output}, and the same command goes on"
                    if output
                    else "--output FILE would have kept what is done"
                )
                sys.stderr.write(f"\nhermes-env: {kept}\n")
                raise
            spent = settings.live.spending().total() if settings.live is not None else None
    finally:
        logging.disable(before)
    if not summary.results:
        from pytest_hermes_env.records.reading import none_in, read_lines  # noqa: PLC0415

        raise none_in(options.files, next(read_lines(options.files), None))
    where = os.path.dirname(options.html)
    changed = [one for one in summary.results if one.status in {"flipped", "moved"}]
    rows = [[(one.where, link_of(one.where, where)), one.status, one.before, one.after] for one in changed[:MOST_ROWS]]
    groups = [
        [one.group, one.signs, _became(one)] for one in summary.groups if one.signs or one.became_constant or one.was_constant
    ]
    _report(
        options,
        [*summary_lines(summary), *([f"  judges asked anew: {spent.describe()}"] if spent is not None else [])],
        summary.as_json(),
        title=f"{Path(options.target).name}: rewards computed again",
        verdict=f"{summary.share_of_findings:.1%} of {len(summary.results):,} rewards are not what they were, or cannot be told",
        facts=summary.counts,
        found=findings(summary),
        tables=[
            ("Rewards that changed", ["rollout", "", "then", "now"], rows),
            ("Groups with other advantages", ["group", "rollouts with another sign", ""], groups[:MOST_ROWS]),
        ],
    )
    return int(summary.share_of_findings > options.threshold)


def _live_judge(options: argparse.Namespace, directory: str) -> LiveJudge:
    """Return the judge that was asked for. Raises: it is not named whole, its key is missing → UsageError, LiveModeError."""
    from pytest_hermes_env.live.limits import Limits  # noqa: PLC0415
    from pytest_hermes_env.records.live_judge import LiveJudge  # noqa: PLC0415

    limits = Limits(calls=options.max_calls, tokens=options.max_tokens, usd=options.max_usd)
    about = {"provider": options.live, "model": options.model, "base_url": options.base_url, "key_name": options.api_key_env}
    judge = LiveJudge(**about, limits=limits, directory=directory)
    judge.server()
    return judge


def _became(group: GroupChange) -> str:
    return "became constant" if group.became_constant else "was constant" if group.was_constant else ""


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _progress(done: int, total: int) -> None:
    is_watched, end = sys.stderr.isatty(), "\n" if done == total else ""
    if is_watched or done == total or done * 10 // total > (done - 1) * 10 // total:  # a file gets ten lines
        sys.stderr.write(f"\r{done:,} of {total:,} rollouts{end}" if is_watched else f"{done:,} of {total:,} rollouts\n")
        sys.stderr.flush()


def _check_outputs(options: argparse.Namespace, *inputs: str) -> None:
    """Refuse an output that would replace what is read. Raises: it is → UsageError."""
    read = {os.path.realpath(one) for one in inputs}
    for name in ("json", "html", "output"):
        path = getattr(options, name, "")
        if os.path.isdir(path):
            raise UsageError(f"--{name} {path} is a directory.\n  fix  name a file")
        if path not in {"", "-"} and os.path.realpath(path) in read:
            raise UsageError(f"--{name} {path} is a file that is read: it would be replaced.\n  fix  name another file")


def _report(options: argparse.Namespace, lines: Iterable[str], document: Any, **page: Any) -> None:
    """Write what was found for a terminal, as data and as a page, as was asked for."""
    from pytest_hermes_env.atomic_files import write_text  # noqa: PLC0415

    text = json.dumps(document, indent=1) + "\n"
    sys.stdout.write(text if options.json == "-" else "".join(f"{line}\n" for line in lines))
    if options.json not in {"", "-"}:
        write_text(options.json, text)
    if options.html:
        write_findings(options.html, **page)


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
    _add_outputs(parser)
    parser.set_defaults(run=_health)


def _health(options: argparse.Namespace) -> int:
    from pytest_hermes_env.records.checks import CHECKS  # noqa: PLC0415
    from pytest_hermes_env.records.health import health_of  # noqa: PLC0415
    from pytest_hermes_env.records.verdicts import as_json, counted, findings, verdict_lines  # noqa: PLC0415

    _check_outputs(options, *options.files)
    if options.list:
        sys.stdout.writelines(f"{check.name:<23}{check.limit:>6g}   {check.says}\n" for check in CHECKS)
        return 0
    if not options.files:
        raise UsageError("health requires files of rollouts, or --list")
    verdicts = health_of(options.files, dict(map(_limit, options.limit)))
    _report(
        options,
        verdict_lines(verdicts, is_long=options.verbose),
        as_json(verdicts),
        title=f"Health of {', '.join(Path(name).name for name in options.files)}",
        verdict=counted(verdicts),
        facts={},
        found=findings(verdicts),
        tables=[
            (
                "Checks",
                ["check", "", "seen", "limit", "cases"],
                [[one.name, one.status, str(one), one.limit, one.seen] for one in verdicts],
            )
        ],
    )
    return int(any(one.status == "unhealthy" for one in verdicts))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text}")
    return int(text)


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(f"--limit {text}: expected CHECK=NUMBER, such as constant_groups=0.8") from None


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="tell what differs between two versions or two recordings",
        description="A and B are environments (path/to/env.py), git revisions or Pythons of two virtual environments (with --env), or files of rollouts. The "
        "same cases are played on both. Shows what differs, causes first: items, tools, settings, prompts, tokens, tool results, judges, rewards. "
        "Exit code 1 where something does.",
    )
    parser.add_argument("before", metavar="A", help="an environment, a git revision, a Python, or rollouts")
    parser.add_argument("after", metavar="B", help="the same of the other version")
    parser.add_argument("--env", default="", metavar="TARGET", help="the environment, where A or B is a revision or a Python")
    parser.add_argument(
        "--mode", choices=("token", "chat"), default="token", help="how rollouts are played (default: token, with token ids)"
    )
    _add_outputs(parser)
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from pytest_hermes_env.records.comparing import as_json, compare, compared_lines, findings, side_of  # noqa: PLC0415

    _check_outputs(options, options.before, options.after)
    sides = side_of(options.before, options.env), side_of(options.after, options.env)
    if len({bool(side.files) for side in sides}) > 1:
        raise UsageError(
            "a recording and an environment that is played have no rollout in common.\n"
            "  fix  `hermes-env rescore ENVIRONMENT RECORDING` computes the rewards of the recording again; two recordings can be compared"
        )
    found, unstable, failed = compare(*sides, mode=options.mode)
    lines = list(compared_lines(found, options.before, options.after, unstable, failed))
    _report(
        options,
        lines,
        as_json(found, unstable),
        title=f"{options.before} (A) and {options.after} (B)",
        verdict=lines[0].replace("`", ""),
        facts={shown.title: one.count for one, shown in zip(found, findings(found), strict=True)},
        found=findings(found),
    )
    return int(bool(found))
