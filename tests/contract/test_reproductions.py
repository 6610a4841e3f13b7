"""The test of a finding fails on the broken class, and passes on one that fulfils the rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.reports.text import finding_lines
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from .mutants import MUTANTS
from .mutants.mutant import SOUND

RULES = ("HE401", "HE601")
"""Rules whose findings rollouts show."""


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A finding's rule, its test, and the lines of the report with it."""

    rule: str
    test: str
    lines: list[str]


def broken_source(rule: str) -> str:
    """Return TerminalTasks with one rule violated."""
    return next(mutant.source for mutant in MUTANTS if (mutant.rule, mutant.env) == (rule, "terminal_tasks"))


def good_source() -> str:
    """Return TerminalTasks as it is."""
    return (SOUND / "terminal_tasks.py").read_text(encoding="utf-8")


def reproduced(rule: str, directory: Path) -> Reproduced:
    """Check the broken class and return the test of the finding."""
    path = directory / f"reproduced_{rule.lower()}.py"
    path.write_text(broken_source(rule), encoding="utf-8")
    contract = contract_of(str(path), [find_rule(rule)], timeout_s=30)
    finding = contract.result(find_rule(rule)).findings[0]
    return Reproduced(rule=rule, test=finding.reproduction, lines=finding_lines(find_rule(rule), finding))


def test_a_report_shows_the_test(tmp_path: Path) -> None:
    """The text is below the finding, indented, ready to copy."""
    one = reproduced("HE401", tmp_path)

    assert one.lines[one.lines.index("  try  this test shows it alone:") + 1 :] == [
        f"       {line}" if line else "" for line in one.test.splitlines()
    ]
    assert one.test.splitlines() == [
        "from pytest_hermes_env import check_rule",
        "",
        "from reproduced_he401 import TerminalTasks",
        "",
        "",
        "def test_he401():",
        '    check_rule(TerminalTasks, "HE401")',
    ]


def test_the_test_of_a_finding_fails_on_the_broken_class_and_passes_on_the_good_one(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """Each text, pasted into a file, fails with the broken class and passes with the good one."""
    found = [reproduced(rule, tmp_path) for rule in RULES]
    for one in found:
        module = f"reproduced_{one.rule.lower()}"
        (pytester.path / f"{module}.py").write_text(broken_source(one.rule), encoding="utf-8")
        (pytester.path / f"fine_{one.rule.lower()}.py").write_text(good_source(), encoding="utf-8")
        (pytester.path / f"test_broken_{one.rule}.py").write_text(one.test, encoding="utf-8")
        fine = one.test.replace(module, f"fine_{one.rule.lower()}")
        (pytester.path / f"test_fine_{one.rule}.py").write_text(fine, encoding="utf-8")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rA", "-q")

    words = {
        line.split("::")[0].split()[-1]: line.split()[0] for line in result.outlines if line.startswith(("PASSED", "FAILED"))
    }
    assert words == {f"test_broken_{rule}.py": "FAILED" for rule in RULES} | {
        f"test_fine_{rule}.py": "PASSED" for rule in RULES
    }
