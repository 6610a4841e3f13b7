"""The ledger: what was exercised, and why the rest was not."""

from __future__ import annotations

from pytest_hermes_env.contract.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.source.finding import Severity

A = Rule(doc="HE001 first", severity=Severity.ERROR)
B = Rule(doc="HE002 second", severity=Severity.WARNING)
C = Rule(doc="HE003 third", severity=Severity.ERROR)


def test_the_account_names_counts_and_reasons():
    ledger = Ledger(
        subject="env.py:Env",
        entries=(
            LedgerEntry(rule=A, outcome=Outcome.PASSED, note="all is well"),
            LedgerEntry(rule=B, outcome=Outcome.FAILED, waiver="the judge is a stub"),
            LedgerEntry(rule=C, outcome=Outcome.NOT_EXERCISED, note="no rollout"),
            LedgerEntry(rule=A, outcome=Outcome.NOT_EXERCISED, note="no rollout"),
            LedgerEntry(rule=B, outcome=Outcome.UNDECIDED, note="a base cannot be read"),
        ),
    )

    assert ledger.summary_lines() == [
        "5 rules: 1 passed, 1 waived, 1 undecided, 2 not exercised",
        "  waived          HE002  the judge is a stub",
        "  undecided       HE002  a base cannot be read",
        "  not exercised   HE001, HE003  no rollout",
    ]
    assert (ledger.ran, ledger.is_vacuous, ledger.failures(is_strict=True)) == (2, False, ())


def test_a_run_in_which_nothing_was_exercised_says_so():
    ledger = Ledger(subject="env.py:Env", entries=(LedgerEntry(rule=A, outcome=Outcome.NOT_EXERCISED, note="no rollout"),))

    assert ledger.is_vacuous
    assert ledger.summary_lines()[-1] == "  nothing was exercised: this run proves nothing"


def test_warnings_fail_only_when_strict():
    entry = LedgerEntry(rule=B, outcome=Outcome.FAILED)
    ledger = Ledger(subject="env.py:Env", entries=(entry,))

    assert (ledger.failures(), ledger.failures(is_strict=True)) == ((), (entry,))
