"""The ledger: what was exercised, and why the rest was not."""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.contract.judge.evidence import Evidence
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.ledger.ladder import LadderRow, ladder_in_brief
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.source.finding import Finding, Severity

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


def judge(evidence: Evidence) -> Verdict:
    """See nothing."""
    return Verdict.not_exercised("nothing was seen")


SEEN = Rule(doc="HE004 fourth", severity=Severity.ERROR, dynamic=judge)
UNSEEN = Rule(doc="HE005 fifth", severity=Severity.ERROR, dynamic=judge)


def test_an_error_that_was_neither_seen_to_hold_nor_to_break_is_not_judged():
    """Unless a violation of another rule is why, or nothing was played; what costs quality only does not count."""

    def not_judged(first: Outcome, *, mode: str = "chat", rule: Rule = UNSEEN, **fields: object) -> list[str]:
        entries = (LedgerEntry(rule=SEEN, outcome=first), LedgerEntry(rule=rule, outcome=Outcome.NOT_EXERCISED, **fields))
        return [entry.rule.id for entry in Ledger(subject="env.py:Env", entries=entries, mode=mode).not_judged]

    assert not_judged(Outcome.PASSED) == ["HE005"]
    assert not_judged(Outcome.UNDECIDED) == ["HE004", "HE005"]
    assert not_judged(Outcome.PASSED, mode="source") == []
    assert not_judged(Outcome.PASSED, rule=dataclasses.replace(UNSEEN, severity=Severity.WARNING)) == []
    assert not_judged(Outcome.PASSED, blocked_by=("HE004",)) == ["HE005"]
    assert not_judged(Outcome.FAILED, blocked_by=("HE004",)) == []
    assert not_judged(Outcome.FAILED, blocked_by=("HE001",)) == ["HE005"]


def test_findings_that_do_not_fail_the_run_are_warnings():
    """The ledger counts them as pytest does; with --hermes-strict they fail."""
    finding = Finding(message="no group")
    entries = (LedgerEntry(rule=B, outcome=Outcome.FAILED, findings=(finding,)), LedgerEntry(rule=A, outcome=Outcome.PASSED))
    strict = tuple(dataclasses.replace(entry, is_strict=True) for entry in entries)

    assert Ledger(subject="env.py:Env", entries=entries).headline() == "2 rules: 2 passed; 1 warning"
    assert Ledger(subject="env.py:Env", entries=strict).headline() == "2 rules: 1 passed, 1 failed"


def test_the_account_in_brief_is_short_whatever_there_is_to_tell():
    """At most ten lines; reasons that need a look are whole or counted, all others are ids."""
    open_rules = [
        LedgerEntry(rule=rule, outcome=Outcome.NOT_EXERCISED, note=f"reason {number}") for number, rule in enumerate([A, B, C])
    ]
    elsewhere = [LedgerEntry(rule=rule, outcome=Outcome.NOT_APPLICABLE, note="a long reason " * 20) for rule in [A, B, C]]
    ledger = Ledger(subject="env.py:Env", entries=(*open_rules, *elsewhere), mode="chat", sandbox="an in-memory machine")

    assert ledger.brief_lines() == [
        "6 rules: 3 not applicable, 3 not exercised",
        "  not judged      HE001  reason 0",
        "  not judged      HE003  reason 2",
        "  not applicable  HE001, HE002, HE003",
        "  not exercised   HE002  reason 1",
        "  nothing was exercised: this run proves nothing",
        "  played          chat mode, an in-memory machine",
        "  pytest -v: all rules, reasons and the ladder",
    ]


def test_the_ladder_in_brief_says_what_its_author_should_hear():
    def row(name: str, reward: float | None, note: str = "") -> LadderRow:
        return LadderRow(name=name, rollouts=1, reward=reward, turns=1, tools=0, tokens=1, is_automatic=False, note=note)

    rows = [row("gold", None, "it was refused"), row("near_miss", 0.5), row("hack", 0.5), row("nothing", 0.2)]

    assert ladder_in_brief(rows) == [
        "gold -, near_miss 0.5, hack 0.5, nothing 0.2",
        "gold: it was refused",
        "a transcript that does nothing earns 0.2",
        "hack and near miss earn the same",
    ]
    assert ladder_in_brief([row("nothing", 0.0)])[1:] == [
        "no gold is declared, so nothing shows that good work is rewarded: hermes-env init FILE"
    ]
