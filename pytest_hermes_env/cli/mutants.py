"""``hermes-env mutants``: break an environment on purpose, and see whether its tests fail."""

from __future__ import annotations

import argparse
import os
import sys

from tqdm import tqdm

from pytest_hermes_env.cli.check import rule_words
from pytest_hermes_env.contract.catalogue import select_rules
from pytest_hermes_env.contract.mutation.breakage import Breakage
from pytest_hermes_env.contract.mutation.operators import breakages
from pytest_hermes_env.contract.mutation.trial import Trial, score, try_tests
from pytest_hermes_env.errors import BadTarget, UsageError
from pytest_hermes_env.source import ClassSource, SourceTree, read_class, read_classes, without_abstract_bases

OK, SURVIVORS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command; ``rest`` of its namespace is what stands behind ``--``: which tests pytest shall run."""
    parser.add_argument("target", metavar="PATH[:CLASS]", help="the environment: path/to/my_env.py or path/to/my_env.py:MyEnv")
    parser.add_argument("--select", action="append", default=[], metavar="IDS", help="only breakages of these rules: HE7,HE801")
    parser.add_argument("--ignore", action="append", default=[], metavar="IDS", help="no breakages of these rules")
    parser.add_argument("--list", action="store_true", help="list the breakages that apply, and run nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="test runs at the same time")
    parser.add_argument(
        "--fail-under", type=float, default=100.0, metavar="PERCENT", help="exit code 1 below this score (default: 100)"
    )
    parser.usage = f"{parser.prog} [options] PATH[:CLASS] [-- PYTEST ARGUMENTS]"


def run(options: argparse.Namespace) -> int:
    """Break the environment in every way that applies, run the tests on each, and print the score."""
    source = chosen_class(options.target)
    rules = {rule.id for rule in select_rules(rule_words(options.select), rule_words(options.ignore))}
    found = [breakage for breakage in breakages(source) if breakage.rule in rules]
    if not found:
        raise UsageError(f"no breakage applies to {source.label}. Known ones break {', '.join(sorted(rules))}")
    if options.list:
        print("\n".join(_line("", breakage) for breakage in found))
        return OK
    command = " ".join(["pytest", *options.rest])
    print(f"{source.label}: {len(found)} breakages, each tried with `{command}`", flush=True)
    with tqdm(total=len(found), desc="mutants", unit="mutant", disable=not sys.stderr.isatty()) as bar:

        def report(trial: Trial) -> None:
            tqdm.write(_line("SURVIVED" if trial.how == "survived" else trial.how, trial.breakage), file=sys.stdout)
            sys.stdout.flush()
            bar.update()

        trials = try_tests(found, options.rest, jobs=options.jobs, report=report)
    share = 100 * score(trials)
    survivors = [trial.breakage for trial in trials if not trial.is_caught]
    print(f"\n{len(trials) - len(survivors)} of {len(trials)} breakages caught by your tests: {share:.0f} %")
    if survivors:
        print("Not detected; `hermes-env explain RULE` says why each matters:")
        print("\n".join(_line("", breakage) for breakage in survivors))
    return OK if share >= options.fail_under else SURVIVORS


def _line(word: str, breakage: Breakage) -> str:
    return f"  {word:<10}{breakage.rule}  {breakage.module.path}:{breakage.line}  {breakage.name}"


def chosen_class(target: str) -> ClassSource:
    """Return the environment class that ``path.py`` or ``path.py:Class`` names.

    Raises: no such file, it does not parse, it has no environment, or several and none is named → BadTarget.
    """
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target):
        path, name = target, ""
    if not os.path.isfile(path):
        raise BadTarget(f"{path} is not a file: give path/to/my_env.py or path/to/my_env.py:MyEnv")
    tree = SourceTree()
    reading = read_classes(path, tree)
    if reading.problem is not None:
        raise BadTarget(f"{path}:{reading.problem.line}: {reading.problem.message}")
    if name:
        source = read_class(path, name, tree)
        if source is None:
            known = ", ".join(item.name for item in reading.classes) or "none"
            raise BadTarget(f"{path} has no class {name}; its environments are: {known}")
        return source
    (whole,) = without_abstract_bases([reading])
    if len(whole.classes) != 1:
        known = ", ".join(item.name for item in whole.classes) or "none"
        raise BadTarget(f"{path} has {len(whole.classes)} environments ({known}): name one as {path}:CLASS")
    return whole.classes[0]
