"""Every planted secret, in every form, in every place where a run shows or stores what it saw.

The table in docs/reference/secrets.md is what is observed here.
"""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pytest_hermes_env import cli
from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.session import default_redactor
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.reports.github import github_text
from pytest_hermes_env.contract.reports.json_report import json_text
from pytest_hermes_env.contract.reports.sarif import sarif_text
from pytest_hermes_env.contract.reports.text import finding_lines
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import shorten
from pytest_hermes_env.inference.mock_command import _print as print_as_mock
from pytest_hermes_env.live.providers import PRESETS
from pytest_hermes_env.source.finding import Finding
from tests.unit.redaction.planted import FORMS, KNOWN, SHAPED, VARIABLE, forms_of_known, needle

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "secrets.md"

SUITE = """
import json, logging, pathlib, warnings
import pytest

TEXTS = json.loads(pathlib.Path("texts.json").read_text())
pytestmark = pytest.mark.hermes_allow_leftovers

@pytest.mark.parametrize("text", TEXTS)
def test_id(text): ...

@pytest.fixture(params=TEXTS)
def given(request): ...

def test_shown_setup(given): ...

@pytest.mark.xfail(reason="\\n".join(TEXTS))
def test_marked(): raise AssertionError

def test_called(): pytest.xfail("\\n".join(TEXTS))

def test_suite(record_testsuite_property):
    for number, text in enumerate(TEXTS):
        record_testsuite_property(f"n{number}", text)

def test_shows_all(record_property):
    said = "\\n".join(TEXTS)
    warnings.simplefilter("always")
    for number, text in enumerate(TEXTS):
        record_property(f"n{number}", text)
        warnings.warn(text)
        print(text)
        logging.warning("logged %s", text)
    raise AssertionError(said)
"""
CONFTEST = """
import json

def pytest_runtest_logreport(report):
    with open("seen.jsonl", "a") as file:
        file.write(json.dumps([report.nodeid, str(vars(report)), report.longreprtext, report.sections, report.user_properties]) + "\\n")
"""


@pytest.fixture
def places(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mapping[str, str]:
    """What each place contains after all secrets went there."""
    monkeypatch.setenv(VARIABLE, KNOWN)
    texts = [text for _, _, text in planted()]
    pytester.makepyfile(test_leaks=SUITE)
    pytester.makeconftest(CONFTEST)
    pytester.path.joinpath("texts.json").write_text(json.dumps(texts))
    result = pytester.runpytest_inprocess(
        *(
            "-v",
            "-rA",
            "--showlocals",
            "--setup-show",
            "-p",
            "no:cacheprovider",
            "--junitxml",
            "j.xml",
            "-o",
            "junit_family=xunit1",
        ),
        *("--log-file", "log.txt", "--log-file-level", "INFO", "-o", "log_cli=true"),
    )
    seen = [json.loads(line) for line in (pytester.path / "seen.jsonl").read_text().splitlines()]
    result.assert_outcomes(passed=2 * len(texts) + 1, failed=1, xfailed=2, warnings=len(texts))
    account = account_of(texts)
    return {
        "terminal": result.stdout.str() + result.stderr.str(),
        "test ids": "\n".join(row[0] for row in seen),
        "JUnit": html.unescape((pytester.path / "j.xml").read_text()),
        "log file": (pytester.path / "log.txt").read_text(),
        "HTML, other plugins": json.dumps(seen, ensure_ascii=False),
        "JSON": json_text(account),
        "SARIF": sarif_text(account),
        "annotations": github_text(account),
        "contract's text": "\n".join(_findings(account)),
        "cassette": text_of(default_redactor().tape(tape_of(texts))),
        "errors": "\n".join(shorten(text) for text in texts),
        "live mode": "\n".join(dataclasses.replace(PRESETS["openai"], model=text).describe() for text in texts),
        "commands": commands(texts, capsys),
    }


def planted() -> Iterator[tuple[str, str, str]]:
    """Yield each secret with its kind and its form."""
    yield from ((VARIABLE, form, text) for form, text in forms_of_known().items())
    yield from ((kind, form, code(secret)) for kind, secret in SHAPED.items() for form, code in FORMS.items())


def account_of(texts: list[str]) -> Account:
    """Return a run in which every text stands in every part of an entry."""
    entries = tuple(
        LedgerEntry(
            rule=ALL_RULES[0],
            outcome=Outcome.FAILED,
            note=text,
            waiver=text,
            findings=(Finding(message=text, seen=text, confirmation=text, reproduction=text),),
        )
        for text in texts
    )
    ledger = Ledger(subject="env:Env", mode="chat", entries=entries)
    unwaived = tuple(dataclasses.replace(entry, waiver="") for entry in entries)
    ledgers = (ledger, dataclasses.replace(ledger, entries=unwaived))
    return Account(entry_point="pytest", mode="chat", ledgers=ledgers, exit_code=1, seconds=1.0)


def _findings(account: Account) -> Iterator[str]:
    for ledger in account.ledgers:
        yield from ledger.summary_lines()
        for entry in ledger.entries:
            yield from (line for finding in entry.findings for line in finding_lines(entry.rule, finding))


def tape_of(texts: list[str]) -> Tape:
    """Return a recording with every text in a request, a reply, and the arguments, result and error of a tool call."""
    calls: list[ModelCall | RecordedToolCall] = []
    for text in texts:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        request = ModelRequest(method="POST", path="/chat/completions", body=body, body_kind="json")
        reply = ModelReply(body={"choices": [{"message": {"content": text}}]}, body_kind="json")
        calls.append(ModelCall(number=len(calls) + 1, request=request, reply=reply))
        calls.append(
            RecordedToolCall(number=len(calls) + 1, name="terminal", arguments={"command": text}, result=text, error=text)
        )
    return Tape(header=Header(recorded_at="2026", recorded_from="here"), calls=tuple(calls))


def commands(texts: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what commands print of the texts: an error about an argument, and the lines of ``hermes-env mock``."""
    for text in texts:
        print_as_mock(text)
        cli.main(["explain", text if not text.startswith("-") else f"x {text}"])
    captured = capsys.readouterr()
    return captured.out + captured.err


def table(places: Mapping[str, str]) -> str:
    """Return the table of the page: what is replaced, by kind and place."""
    bare = {place: text.replace("\\", "") for place, text in places.items()}
    rows = [f"| secret | {' | '.join(places)} |", f"|---{'|---' * len(places)}|"]
    for kind in (VARIABLE, *SHAPED):
        forms = [form for known, form, _ in planted() if known == kind]
        cells = []
        for text in bare.values():
            shown = [form for form in forms if needle(kind, form) in text]
            cells.append(f"not: {', '.join(shown)}" if shown else f"all {len(forms)} forms")
        name = "value of a secret variable" if kind == VARIABLE else kind
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def test_no_secret_in_any_form_is_shown_in_any_place(places: Mapping[str, str]) -> None:
    """The page has the table, and no cell of it has an exception."""
    found = table(places)

    assert "not:" not in found, found
    assert found in PAGE.read_text(encoding="utf-8"), found


def test_the_table_would_show_a_leak() -> None:
    """A place that shows every text as it is fails in every cell."""
    texts = "\n".join(text for _, _, text in planted())

    found = table({"place": texts})

    assert found.count("not: as it is, base64, ") == 1 + len(SHAPED)
    assert "all" not in found


def test_a_warning_of_a_module_is_clean_under_xdist(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to no test, and is printed by a process that has none."""
    monkeypatch.setenv("MY_API_KEY", "sk-planted-0123456789abcdef")
    pytester.makepyfile("""
        import os, warnings
        warnings.warn("leak " + os.environ["MY_API_KEY"])

        def test_uses(fake_sandbox): ...
    """)

    shown = pytester.runpytest_subprocess("-n", "1", "-p", "no:cacheprovider").stdout.str()

    assert ("leak" in shown, "sk-planted" in shown) == (True, False)
