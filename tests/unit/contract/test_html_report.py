"""The contract as a page: everything is on it, in the order that a reader wants, and foreign text is data."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ladder import LadderRow
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.reports.html_report import html_text
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.source import FileProblem
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
    assert unescape(page.replace("<wbr>", "")).count(MARKUP) >= 7


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


def rows_of(**rewards: float | None) -> tuple[LadderRow, ...]:
    return tuple(
        LadderRow(name=name, rollouts=1, reward=reward, turns=1, tools=0, tokens=1, is_automatic=False)
        for name, reward in rewards.items()
    )


def test_the_ladder_is_drawn_on_the_axis_of_its_rewards():
    page = page_of(ladder=rows_of(gold=7.0, near_miss=2.0, echo=-3.0, tools=None))

    places = re.findall(r'class="rung" x1="([\d.]+)%" x2="([\d.]+)%"', page)
    assert places == [("30.0", "100.0"), ("30.0", "50.0"), ("30.0", "0.0")]


@pytest.mark.parametrize(("hack", "kind"), [(0.2, "quiet"), (1.0, "bad"), (1.5, "bad")])
def test_a_hack_that_is_paid_like_gold_does_not_look_like_gold(hack: float, kind: str):
    page = page_of(ladder=rows_of(gold=1.0, hack=hack))

    kinds = re.findall(r'<tr><td class="(\w+)">', page)
    assert kinds == ["gold", kind]
    assert ("paid like gold" in page) == (kind == "bad")


PASSED = LedgerEntry(rule=RULES["HE101"], outcome=Outcome.PASSED)
WARNED = failed("HE109", finding("a warning", severity=Severity.WARNING))


@pytest.mark.parametrize(
    ("entries", "verdict", "colour"),
    [
        ((PASSED,), "✓ Passed", "good"),
        ((PASSED, WARNED), "✓ Passed, with warnings", "good"),
        ((PASSED, failed("HE801", finding("a"))), "✗ Failed: 1 rule is violated", "bad"),
        ((PASSED, LedgerEntry(rule=RULES["HE401"], outcome=Outcome.NOT_EXERCISED)), "✗ Failed: not judged were HE401", "bad"),
        ((), "✗ Failed: nothing was exercised, so this run proves nothing", "bad"),
    ],
)
def test_the_verdict_comes_first_in_words_and_colour(entries: tuple[LedgerEntry, ...], verdict: str, colour: str):
    page = page_of(*entries)

    assert f'<div class="verdict {colour}" role="status"><b>{verdict}</b>' in page


def test_the_ledger_counts_as_the_headline_does():
    """A rule whose findings are warnings has passed, in both."""
    page = page_of(PASSED, WARNED)

    assert "2 rules: 2 passed; 1 warning" in page
    assert "passed: 2, 1 with a warning" in page
    assert "failed:" not in page


def test_findings_of_one_rule_and_one_fix_are_one_cause():
    page = page_of(failed("HE801", finding("a"), finding("b", fix="Do this."), finding("c")))

    causes = [re.findall(r'id="(HE801-\d)"', card) for card in page.split('<section class="card')[1:]]
    assert causes == [["HE801-1", "HE801-3"], ["HE801-2"]]


def test_a_green_page_shows_what_was_played():
    page = page_of(LedgerEntry(rule=RULES["HE401"], outcome=Outcome.PASSED, note="86 rewards were finite numbers"))

    assert 'title="HE401"><span class="good">✓</span> happy' in page
    assert "86 rewards were finite numbers" in page
    assert "<details" not in page


@pytest.mark.parametrize(
    ("further", "verdict"),
    [
        (
            {"problems": (FileProblem(path="env.py", message="this waiver has no reason"),)},
            "✗ Failed: waivers or files below are wrong",
        ),
        ({"is_complete": False}, "⚠ Interrupted: this is not all"),
    ],
)
def test_a_run_that_is_not_clean_or_not_complete_does_not_look_green(further: dict[str, object], verdict: str):
    ledger = Ledger(subject="my_env:Env", entries=(PASSED,), mode="chat")

    page = html_text(Account(entry_point="pytest", mode="chat", ledgers=(ledger,), exit_code=1, **further))

    assert f"<b>{verdict}</b>" in page
    assert ("this waiver has no reason" in page) == ("problems" in further)


def test_the_commit_of_the_class_is_named(tmp_path: Path):
    """A class outside of git has none."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path)]
    file = tmp_path / "my_env.py"
    file.touch()
    ledger = Ledger(subject="my_env:Env", entries=(PASSED,), mode="chat", path=str(file))
    account = Account(entry_point="pytest", mode="chat", ledgers=(ledger,))

    before = html_text(account)
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    assert "<dt>commit</dt>" not in before
    assert f"<dt>commit</dt><dd>{commit}</dd>" in html_text(account)
