"""The pages in a real browser: they fit, can be read, work without scripts, and ask for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.rollout.file import write_page
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ladder import LadderRow
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.reports.html_report import html_text
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.pages.findings_page import write_findings
from pytest_hermes_env.pages.token_view import token_view
from pytest_hermes_env.records.found import Found
from pytest_hermes_env.source.finding import Finding, Severity
from tests.browser import CONTRASTS, TOO_WIDE, Browser, chromium

LONG = "AVeryLongNameOfAnEnvironmentThatSomebodyWrote_in_one_word"
REWARDS = {"gold": 1.0, "hack": 1.0, "near_miss": 0.5, "echo": -0.3, "tools": None}
END, CODE = {"end": "finished"}, "```python\n" + "x = 1  # " + "a long line " * 20 + "\n```"


def contract() -> str:
    """A page with every outcome, a warning, and a hack that is paid like gold."""
    finding = Finding(
        message=f"`{LONG}` is wrong", path=f"src/{LONG}.py", line=3, seen="x" * 300, fix="Write `y`.", scenario="happy"
    )
    warning = Finding(message="might be", severity=Severity.WARNING, path="env.py", line=1)
    found = {1: (finding, finding), 2: (warning,)}
    outcomes = [*Outcome] * len(ALL_RULES)
    entries = tuple(
        LedgerEntry(rule=rule, outcome=Outcome.FAILED if at in found else outcomes[at], note=LONG, findings=found.get(at, ()))
        for at, rule in enumerate(ALL_RULES)
        if at in found or outcomes[at] is not Outcome.FAILED
    )
    ladder = tuple(
        LadderRow(name=name, rollouts=1, reward=reward, turns=1, tools=0, tokens=1, is_automatic=False, note=LONG)
        for name, reward in REWARDS.items()
    )
    ledger = Ledger(subject=f"my_env:{LONG}", entries=entries, mode="chat", sandbox="an in-memory machine", ladder=ladder)
    return html_text(Account(entry_point="pytest", mode="chat", ledgers=(ledger,), exit_code=1, versions={"python": "3.11"}))


def rollouts(file: Path, *, groups: int, size: int) -> Path:
    call = {"id": "1", "function": {"name": LONG, "arguments": json.dumps({"command": "ls\n" * 3, "all": [True, None]})}}
    talk = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": f"Fix {LONG}."},
        {"role": "assistant", "content": CODE, "reasoning_content": "I think.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps({"output": "y" * 500, "exit_code": 1})},
    ]
    scores = [number % 3 / 2 for number in range(size)]
    row = {
        "scores": scores,
        "messages": [talk] * size,
        "overrides": [END, {"end": "cut_by_length"}] * (size // 2),
        "tokens": [[1]] * size,
    }
    file.write_text(f"{json.dumps(row)}\n" * groups)
    return write_page(file)


def findings(page: Path, file: Path) -> None:
    found = [
        Found(title="constant_groups", text=f"71% of the groups: {LONG}", places=[f"{file}:1 (g1r2)", "gone.jsonl:3 (g3r1)"]),
        Found(title="prompt", text="2 places", before=f"{LONG} " * 9, after="y" * 300),
    ]
    row = [(f"{file}:2 (g2r3)", "#"), "moved", 0.25, 1.0]
    tables = [("Rewards that changed", ["rollout", "", "then", "now"], [row] * 3), ("Nothing", ["a"], [])]
    write_findings(str(page), title=LONG, verdict="2 unhealthy", facts={"moved": 3}, found=found, tables=tables)


class Tokenizer:
    """Decodes a token to its number."""

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        return " ".join(map(str, ids))


def tokens() -> str:
    ids = list(range(1, 12))
    logprobs = [1.0, -0.01, -0.3, -1.0, -2.5, -6.0, *[1.0] * 5]
    return token_view(
        {"tokens": ids, "masks": [-100, *ids[1:7], -100, 9, 99, -100], "inference_logprobs": logprobs}, Tokenizer()
    ).html


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "contract.html").write_text(contract(), encoding="utf-8")
    (folder / "tokens.html").write_text(tokens(), encoding="utf-8")
    rollouts(folder / "rollouts.jsonl", groups=2, size=6)
    findings(folder / "findings.html", folder / "rollouts.jsonl")
    return {page.stem: page for page in folder.glob("*.html")}


@pytest.mark.parametrize("name", ["contract", "findings", "rollouts", "tokens"])
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("is_dark", [False, True])
def test_a_page_fits_and_can_be_read(browser: Browser, pages: dict[str, Path], name: str, width: int, is_dark: bool) -> None:
    """Unfolded, it is no wider than its window, its text has the contrast of level AA, and it asks for no other address."""
    unfold = "document.querySelectorAll('details').forEach(one => one.open = true)"

    seen = browser.look(pages[name], f"{unfold}; [{TOO_WIDE}, {CONTRASTS}]", width=width, is_dark=is_dark)

    assert seen.value == [0, {}]
    assert seen.requests == ()


def test_too_little_contrast_is_seen(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "grey.html"
    page.write_text("<main style='background:#fff'><p style='color:#999'>grey</p><p style='color:#555'>dark</p></main>")

    assert browser.look(page, CONTRASTS).value == {"P.": 2.85}


VISIBLE = "[...document.querySelectorAll('.rollout')].filter(one => one.checkVisibility()).length"
SHOWN = "getComputedStyle(document.querySelector('.shown'), '::before').content"


def test_boxes_hide_rollouts_without_a_script(browser: Browser, pages: dict[str, Path]) -> None:
    """A box and a button of the page are enough; a click comes from here, since the page allows no script."""
    box = "document.evaluate(`//label[contains(., 'cut_by_length')]/input`, document).iterateNext().click()"

    before = browser.look(pages["rollouts"], VISIBLE).value
    after = browser.look(pages["rollouts"], f"{box}; {VISIBLE}").value
    again = browser.look(pages["rollouts"], f"{box}; document.querySelector('button').click(); {VISIBLE}").value
    assert (before, after, again) == (12, 6, 12)


def test_a_link_unfolds_its_rollout(browser: Browser, pages: dict[str, Path]) -> None:
    opened = "[...document.querySelectorAll('.rollout[open] article')].map(one => one.id)"

    assert browser.look(f"{pages['rollouts'].as_uri()}#g2r3", opened).value == ["g2r3"]


def test_a_finding_leads_to_its_rollout(browser: Browser, pages: dict[str, Path]) -> None:
    """The link unfolds the rollout on the page of its file; a rollout whose page is not there has none."""
    links = "[...document.querySelectorAll('.card a')].map(one => [one.getAttribute('href'), one.textContent])"

    seen = browser.look(pages["findings"], links).value

    assert [(href, place.rpartition("/")[2]) for href, place in seen] == [("rollouts.html#g1r2", "rollouts.jsonl:1 (g1r2)")]


def test_folded_rollouts_are_printed(browser: Browser, pages: dict[str, Path]) -> None:
    text = "document.querySelector('.rollout article').checkVisibility()"

    assert browser.look(pages["rollouts"], text).value is False
    assert browser.look(pages["rollouts"], text, is_printed=True).value is True


def test_a_thousand_rollouts_are_one_short_page(browser: Browser, tmp_path: Path) -> None:
    """Each is a line until it is unfolded, and the overview has a height of its own."""
    page = rollouts(tmp_path / "many.jsonl", groups=100, size=10)

    rows = "document.querySelectorAll('.rollout').length"
    table = "document.querySelector('table').parentElement.clientHeight"
    seen = browser.look(page, f"[{rows}, {table} < 500, {TOO_WIDE}]")
    assert seen.value == [1000, True, 0]
