"""The commands of ``hermes-env`` but ``check`` and ``view``: each adds its arguments, and hands them to the room that does the work."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import BadTarget, UsageError
from pytest_hermes_env.missing_files import no_file

if TYPE_CHECKING:
    from collections.abc import Callable


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    for add in (_add_watch, _add_attack, _add_judge, _add_rules, _add_docs, _add_cassettes, _add_init, _add_new, _add_doctor):
        add(commands)


def _add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=text or None)
    parser.set_defaults(run=run)
    return parser


def _add_attack(commands: Any) -> None:
    text = (
        "Search for all that an agent which does none of the work can leave in its sandbox so that the verifier pays, and for "
        "work and programs that are wrong in one place and paid like gold. Gold has to be declared. Exit code 1 where something pays. Other flags go to pytest: --hermes-report-json FILE, --hermes-html FILE, -v."
    )
    parser = _add(commands, "attack", _attack, "search for what a verifier pays for without the work", text)
    parser.add_argument(
        "--item", metavar="N", help="the training item, from 0, that is attacked (default: the first with gold)"
    )
    parser.add_argument("--minutes", metavar="M", help="end the search then: it is not judged, and exit code 1")
    parser.add_argument("--resume", metavar="FILE", help="note what was refused in FILE, and do not play it again")
    parser.add_argument("target", metavar="TARGET", help="path/to/env.py:Class or package.module:Class")


def _attack(options: argparse.Namespace) -> int:
    """Play the full search: what the contract plays of it ends with the first attack that is paid."""
    rules = ["--hermes-env", options.target, "--hermes-rules", "HE405,HE410,HE412"]  # without gold it would prove nothing
    given = [("alone", "true"), *((name, getattr(options, name)) for name in ("item", "minutes", "resume"))]
    plan = [word for name, value in given if value is not None for word in ("--hermes-attack", f"{name}={value}")]
    words = [*rules, *plan, "--hermes-effort", "2", "--hermes-strict", "-q", "--no-header", *options.rest]
    return subprocess.call([sys.executable, "-m", "pytest", *words])


def _add_watch(commands: Any) -> None:
    text = (
        "Play and judge an environment now and after each change of a file in its directory, until Ctrl-C. A process that "
        "has loaded atroposlib and hermes is kept. Other flags go to pytest: --hermes-rules HE4, -x, -v."
    )
    parser = _add(commands, "watch", _watch, "play and judge an environment again on each save", text)
    parser.add_argument(
        "targets", nargs="+", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class"
    )


def _watch(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.run.watch import watch  # noqa: PLC0415  # it loads pytest

    return watch(options.targets, options.rest, functools.partial(print, flush=True))


def _add_judge(commands: Any) -> None:
    text = (
        "Judge the evidence that pytest --hermes-env TARGET --hermes-evidence FILE kept. Nothing is played, and nothing of the "
        "environment is imported. Other flags go to pytest: --hermes-rules HE4, --hermes-report-json FILE, --hermes-strict, -v."
    )
    parser = _add(commands, "judge", _judge, "judge what a contract run kept, without playing", text)
    parser.add_argument("file", metavar="FILE", help="the evidence file")


def _judge(options: argparse.Namespace) -> int:
    """Run pytest on the file; return its exit code. Raises: no such file → UsageError."""
    if not os.path.isfile(options.file):
        raise UsageError(f"{no_file(options.file)}; pytest --hermes-env TARGET --hermes-evidence FILE writes one")
    flags = ["-q", "--no-header", "-p", "no:cacheprovider", "--hermes-judge", options.file, *options.rest]
    return subprocess.call([sys.executable, "-m", "pytest", *flags])


def _add_rules(commands: Any) -> None:
    rules = _add(commands, "rules", _rules, "list the rules", "")
    rules.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    summary = "explain a rule: what it means, why it matters and how to fix a violation"
    explain = _add(commands, "explain", _explain, summary, "")
    explain.add_argument("rule", metavar="RULE", help="id or name: HE702, eval-rolls-back-buffers")


def _rules(options: argparse.Namespace) -> int:
    from pytest_hermes_env.contract.reports.text import rule_table, rules_json  # noqa: PLC0415
    from pytest_hermes_env.contract.rules import ALL_RULES  # noqa: PLC0415

    sys.stdout.write(rules_json(ALL_RULES) if options.format == "json" else "\n".join(rule_table(ALL_RULES)) + "\n")
    return 0


def _explain(options: argparse.Namespace) -> int:
    """Explain one rule. Raises: no such rule → UnknownRule."""
    from pytest_hermes_env.contract.reports.text import explain_lines  # noqa: PLC0415
    from pytest_hermes_env.contract.rules import find_rule  # noqa: PLC0415

    print("\n".join(explain_lines(find_rule(options.rule))))
    return 0


def _add_docs(commands: Any) -> None:
    text = "Print a page of the documentation, which comes with the package: in a pipe as Markdown."
    parser = _add(commands, "docs", _docs, "print a page of the documentation", text)
    parser.add_argument(
        "page", nargs="?", default="README", metavar="PAGE", help="live, how-to/faults, HE702 (default: the index)"
    )


def _docs(options: argparse.Namespace) -> int:
    """Print the page. Raises: no such page → UsageError."""
    from pytest_hermes_env.pages.documentation import print_page  # noqa: PLC0415

    print_page(options.page)
    return 0


def _add_cassettes(commands: Any) -> None:
    summary = "list recordings: age, size, later changes, and which are unused"
    text = "List cassettes. Tests and environments are searched below the current directory; nothing is imported."
    parser = _add(commands, "cassettes", _cassettes, summary, text)
    parser.add_argument("directories", nargs="*", metavar="DIR", help="directories to search (default: cassettes)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")


def _cassettes(options: argparse.Namespace) -> int:
    """List the recordings; return 1 where one needs a look."""
    from pytest_hermes_env.cassette import inventory  # noqa: PLC0415

    found = inventory.inventory_of(options.directories or [inventory.DEFAULT_DIRECTORY], Path.cwd())
    if options.format == "json":
        print(json.dumps({"cassettes": list(map(dataclasses.asdict, found))}, indent=2))
    else:
        print("\n".join(inventory.inventory_lines(found)))
    return int(any(entry.has_finding for entry in found))


def _add_init(commands: Any) -> None:
    text = (
        "Write a file of cases next to an environment: transcripts with known rewards that the contract plays. "
        "The environment is imported and set up offline on a mock model. Gold is looked for in the fields of its items, which are played as "
        "answers and into the files that the reward reads; or it is taken from rollouts."
    )
    parser = _add(commands, "init", _init, "write a file of cases for an environment, with its items in it", text)
    parser.add_argument("target", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class")
    parser.add_argument(
        "--output", metavar="FILE", default="", help="the file to write (default: MODULE.contract.yaml next to it)"
    )
    parser.add_argument(
        "--from",
        metavar="ROLLOUTS",
        default="",
        dest="rollouts",
        help="take gold from groups.jsonl, samples.jsonl or a cassette",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _init(options: argparse.Namespace) -> int:
    import logging  # noqa: PLC0415

    from pytest_hermes_env.contract.init_file import start  # noqa: PLC0415

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what rollouts log is not the answer to this command
    options.target = _single(options.target)
    try:
        done = start(options.target, output=options.output, is_forced=options.force, rollouts=options.rollouts)
    except BadTarget as error:
        raise BadTarget("\n  ".join([str(error), *_mistakes_in(options.target)])) from error
    finally:
        logging.disable(before)
    items = f"{done.items} item{'' if done.items == 1 else 's'}" if done.items else "a place for an item"
    print(f"wrote {done.file}: {items} of {done.class_name}")
    more = [
        done.gold,
        *_mistakes_in(options.target),
        f"next: look at gold in {done.file}, then pytest --hermes-env {options.target}",
    ]
    print("\n".join(filter(None, more)))
    return 0


def _single(target: str) -> str:
    """Return the target; for a directory, that of its environment. Raises: it has none → BadTarget; several → UsageError."""
    if not os.path.isdir(target):
        return target
    from pytest_hermes_env.contract.judge.subject import subjects_of  # noqa: PLC0415
    from pytest_hermes_env.redaction.shown_text import shown_path  # noqa: PLC0415

    found = [f"{shown_path(subject.path)}:{subject.name}" for subject in subjects_of(target)]
    if len(found) > 1:
        raise UsageError(f"{target} has several environments; name one: {', '.join(found)}")
    return found[0]


def _mistakes_in(target: str) -> list[str]:
    """Return what the source of a target shows to be wrong, a line each; nothing of one that is not a file."""
    from pytest_hermes_env.contract.check import check_paths, path_of  # noqa: PLC0415
    from pytest_hermes_env.redaction.shown_text import shown_path  # noqa: PLC0415
    from pytest_hermes_env.source.finding import Severity  # noqa: PLC0415

    if not os.path.isfile(path_of(target)):
        return []
    found = check_paths([target], allows_none=True).findings
    errors = [(rule, one) for rule, one in found if rule.severity_of(one) is Severity.ERROR]
    return [f"see       {shown_path(one.path)}:{one.line}: {rule.id} {one.message}" for rule, one in errors]


def _add_new(commands: Any) -> None:
    text = (
        "Write a small project with an environment that keeps every rule. Its tests pass at once; replace its items, "
        "its prompt and its reward by yours."
    )
    summary = "write a small project: an environment, its cases, tests, a recording and CI"
    parser = _add(commands, "new", _new, summary, text)
    parser.add_argument("name", metavar="NAME", help="module of the environment: my_env; the class is then MyEnv")
    parser.add_argument("--output", metavar="DIR", default="", help="a new or empty directory (default: NAME)")


def _new(options: argparse.Namespace) -> int:
    from pytest_hermes_env.new_project import create, record  # noqa: PLC0415

    project = create(options.name, Path(options.output) if options.output else None)
    what = f"{project.class_name} in {project.module}.py, its cases, tests and CI"
    print(f"wrote {len(project.files)} files to {project.directory}/: {what}; recording a group ...", flush=True)
    print(record(project) or f"recorded {project.directory}/cassettes/")
    print(f"next: cd {project.directory} && pytest, then put your items, prompt and reward into {project.module}.py")
    return 0


def _add_doctor(commands: Any) -> None:
    text = "Look at versions, plugins, confinement, hidden modules, leftovers and writable directories. Nothing is changed."
    _add(commands, "doctor", _doctor, "say what this machine has for the tests, and what to do where it lacks", text)


def _doctor(_options: argparse.Namespace) -> int:
    from pytest_hermes_env.cli.doctor import examine  # noqa: PLC0415  # it looks for confinement

    return examine()


def add_serve_rollouts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of serve-rollouts, which loads atroposlib; ``rest`` of its namespace are the flags of the environment."""
    from pytest_hermes_env.layer import service_command  # noqa: PLC0415

    parser.add_argument("target", metavar="TARGET", help="path/to/env.py:Class or package.module:Class")
    service_command().add_arguments(parser)
    parser.set_defaults(run=_serve_rollouts)


def _serve_rollouts(options: argparse.Namespace) -> int:
    """Serve until a signal. Raises: no class, several, or one without run_rollout → UsageError."""
    from pytest_hermes_env.layer import find_class, service_command  # noqa: PLC0415

    options.target = _single(options.target)
    classes = find_class(options.target)
    if len(classes) != 1:
        raise UsageError(f"{options.target} has several environments; name one: {options.target}:{classes[0].__name__}")
    if not hasattr(classes[0], "run_rollout"):
        raise UsageError(f"{classes[0].__name__} is built on a layer without run_rollout; build it on this distribution's")
    return int(service_command().run(classes[0], options, options.rest))
