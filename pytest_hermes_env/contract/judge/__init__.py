"""How a class is judged: rules are asked about its source and its evidence, and their verdicts are combined.

What every rule is written with is imported from here.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge.evidence import Evidence, finding_in
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict, one_per_place
from pytest_hermes_env.source.finding import Finding, Severity

__all__ = ["Evidence", "Finding", "Outcome", "Rule", "Severity", "Verdict", "finding_in", "one_per_place"]
