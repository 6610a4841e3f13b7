"""One verdict from two halves: rollouts that reached a line and saw nothing there turn an error in the source into a warning."""

from __future__ import annotations

import os

import pytest

from pytest_hermes_env.contract.judge.engine import combined
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.statements import lines_of_definition, was_run
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.source.finding import Finding, Severity

SOURCE = """class Env:
    name = "x"
    if name:
        other = 1

    def method(self, flag):
        if flag:
            return call(
                1,
            )
        return 2
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "env.py"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("line", "run", "expected"),
    [
        (2, set(), True),
        (4, set(), False),
        (6, {11}, True),
        (6, {6}, False),
        (7, {7}, True),
        (7, {8}, False),
        (9, {8}, True),
        (9, {7, 11}, False),
        (99, {7}, False),
    ],
)
def test_a_statement_was_run(path, line, run, expected):
    assert was_run(path, line, {(os.path.realpath(path), number) for number in run}) is expected


@pytest.mark.parametrize(("line", "expected"), [(1, range(1, 12)), (6, range(6, 12)), (7, range(0)), (99, range(0))])
def test_a_definition_has_lines(path, line, expected):
    assert lines_of_definition(path, line) == expected


RULE = Rule(doc="HE999 a-law\nIt holds.", severity=Severity.ERROR, static=Verdict.passed, dynamic=Verdict.passed)


def weight(path, dynamic, run):
    static = Verdict.failed([Finding(message="broken", path=path, line=11)])
    result = combined(RULE, static, dynamic, {(os.path.realpath(path), number) for number in run})
    return [(RULE.severity_of(finding).value, finding.confirmation.partition(":")[0]) for finding in result.findings]


def test_an_error_that_the_rollouts_reached_and_did_not_confirm_is_a_warning(path):
    passed = Verdict.passed("6 rollouts were seen")

    assert weight(path, passed, {11}) == [("warning", "not confirmed, therefore a warning")]


def test_an_error_on_a_line_that_no_rollout_ran_stays_one(path):
    assert weight(path, Verdict.passed("6 rollouts were seen"), {7}) == [("error", "not checked in rollouts")]


def test_an_error_of_a_rule_that_was_not_exercised_stays_one(path):
    assert weight(path, Verdict.not_exercised("nothing was played"), {11}) == [("error", "not checked in rollouts")]


def test_a_warning_hides_no_error_at_its_place(path):
    found = [
        Finding(message=name, path=path, line=6, severity=severity)
        for name, severity in (("less", Severity.WARNING), ("more", None))
    ]

    (kept,) = combined(RULE, None, Verdict.failed(found), frozenset()).findings

    assert kept.message == "more"


def test_an_error_that_the_source_proves_stays_one(path):
    static = Verdict.failed([Finding(message="broken", path=path, line=11, is_confirmed=True)])
    result = combined(RULE, static, Verdict.passed("6 rollouts were seen"), {(os.path.realpath(path), 11)})

    assert [RULE.severity_of(finding).value for finding in result.findings] == ["error"]
