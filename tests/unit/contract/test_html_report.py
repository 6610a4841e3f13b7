"""The contract as a page: everything is on it, in the order that a reader wants, and foreign text is data."""

from __future__ import annotations

import re
from html import unescape

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ladder import LadderRow
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.reports.html_report import html_text
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.source.finding import Finding, Severity

MARKUP = "</style><script>alert(1)</script><img src=x onerror=alert(2)>"
RULES = {rule.id: rule for rule in ALL_RULES}


def finding(message: str, **further) -> Finding:
    return Finding(message=message, path="my_env.py", line=3, column=1, **further)


def page_of(*entries: LedgerEntry, ladder: tuple[LadderRow, ...] = ()) -> str:
    ledger = Ledger(subject=f"my_env:Env{MARKUP}", entries=entries, mode="chat", sandbox=MARKUP, ladder=ladder)
    return html_text(
        Account(entry_point="pytest", mode="chat", ledgers=(ledger,), exit_code=1, seconds=1.0, versions={"python": "3"})
    )


def failed(rule_id: str, *findings: Finding) -> LedgerEntry:
    return LedgerEntry(rule=RULES[rule_id], outcome=Outcome.FAILED, findings=findings)


def test_foreign_text_is_shown_as_text():
    row = LadderRow(name=MARKUP, rollouts=1, reward=0.5, turns=1, tools=0, tokens=1, is_automatic=False, note=MARKUP)
    page = page_of(
        failed("HE801", finding(MARKUP, seen=MARKUP, confirmation=MARKUP)),
        LedgerEntry(rule=RULES["HE101"], outcome=Outcome.NOT_EXERCISED, note=MARKUP),
        ladder=(row,),
    )

    assert set(re.findall(r"<(script|img)", page)) == set()
    assert unescape(page).count(MARKUP) >= 7


def test_findings_that_fail_the_run_and_were_confirmed_come_first():
    page = page_of(
        failed("HE109", finding("a warning", severity=Severity.WARNING)),
        failed("HE301", finding("only read")),
        failed("HE801", finding("was played", confirmation="confirmed: nothing was logged", is_confirmed=True)),
    )

    shown = re.findall(r'<article id="(HE\d+)-', page)
    assert shown == ["HE801", "HE301", "HE109"]


def test_each_rule_and_finding_has_a_place_to_link_to():
    page = page_of(failed("HE801", finding("a"), finding("b")), LedgerEntry(rule=RULES["HE101"], outcome=Outcome.PASSED))

    ids = re.findall(r'id="(HE[\w-]+)"', page)
    assert sorted(ids) == ["HE101", "HE801", "HE801-1", "HE801-2"]


def test_a_run_without_an_environment_says_so():
    page = html_text(Account(entry_point="pytest", mode="chat", ledgers=(), exit_code=5, seconds=0.0))

    assert "No environment was checked" in page


def test_a_reward_outside_of_the_unit_interval_stays_in_its_bar():
    rows = tuple(
        LadderRow(name=str(reward), rollouts=1, reward=reward, turns=1, tools=0, tokens=1, is_automatic=False)
        for reward in (-3.0, 0.25, 7.0)
    )

    widths = [float(width) for width in re.findall(r"width: ([\d.]+)%\"", page_of(ladder=rows))]

    assert widths == [0.0, 25.0, 100.0]
