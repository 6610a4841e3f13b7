"""The formats for machines: each is a function of one account."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest

from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ledger import Accepted, Ledger, LedgerEntry
from pytest_hermes_env.contract.reports.github import github_text
from pytest_hermes_env.contract.reports.json_report import json_text
from pytest_hermes_env.contract.reports.sarif import sarif_text
from pytest_hermes_env.contract.reports.text import finding_lines
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.source import FileProblem
from pytest_hermes_env.source.finding import Finding, Severity

# What SARIF 2.1.0 demands of the parts of a log that we write, as a schema that allows nothing else. Source: OASIS SARIF 2.1.0,
# sections 3.13 (log), 3.14 (run), 3.18, 3.19 (tool), 3.20 (invocation), 3.27 (result), 3.28 to 3.30 (locations), 3.35
# (suppression), 3.49 (rule): names, required members and closed lists of words are the standard's.
TEXT = {"type": "string", "minLength": 1}
URI = {"type": "string", "format": "uri"}
BAG = {"type": "object"}
NUMBER = {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def closed(required: list[str], **members: Any) -> dict[str, Any]:
    """Return the schema of an object that has these members and no others."""
    return {"type": "object", "required": required, "additionalProperties": False, "properties": members}


MESSAGE = closed(["text"], text=TEXT, markdown=TEXT)
RULE = closed(
    ["id"],
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    helpUri=URI,
    defaultConfiguration=closed([], level=LEVEL, enabled={"type": "boolean"}),
)
ARTIFACT = closed([], uri={"type": "string", "format": "uri-reference", "minLength": 1}, uriBaseId={"const": "SRCROOT"})
PLACE = closed(
    ["artifactLocation"], artifactLocation=ARTIFACT, region=closed(["startLine"], startLine=NUMBER, startColumn=NUMBER)
)
SUPPRESSION = closed(
    ["kind"],
    kind={"enum": ["inSource", "external"]},
    status={"enum": ["accepted", "underReview", "rejected"]},
    justification=TEXT,
)
RESULT = closed(
    ["message", "ruleId"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    locations={"type": "array", "items": closed([], physicalLocation=PLACE)},
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions={"type": "array", "uniqueItems": True, "items": SUPPRESSION},
    properties=BAG,
)
DRIVER = closed(
    ["name"],
    name=TEXT,
    version=TEXT,
    informationUri=URI,
    rules={"type": "array", "uniqueItems": True, "items": RULE},
)
RUN = closed(
    ["tool"],
    tool=closed(["driver"], driver=DRIVER),
    invocations={
        "type": "array",
        "items": closed(
            ["executionSuccessful"], executionSuccessful={"type": "boolean"}, exitCode={"type": "integer"}, properties=BAG
        ),
    },
    originalUriBaseIds={
        "type": "object",
        "additionalProperties": closed(["uri"], uri={"type": "string", "pattern": "^file:///.*/$"}),
    },
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
    properties=BAG,
)
LOG = closed(
    ["version", "runs"],
    **{"$schema": URI},
    version={"const": "2.1.0"},
    runs={"type": "array", "items": RUN},
)

RULES = {rule.id: rule for rule in ALL_RULES}
SCHEMA = os.environ.get("HERMES_ENV_SARIF_SCHEMA")
"""A file with the published schema of SARIF 2.1.0, for those who have one."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a directory of its own, outside of GitHub's actions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def account(**changes):
    """Return a run with a finding, an accepted finding in a file with odd letters, and a file that does not parse."""
    found = Finding(message="100 % wrong:\r\nreally", path="env.py", line=3, column=5, seen="a, b", scenario="happy")
    old = Finding(message="old", path="odd, näme:1.py", line=7)
    ledger = Ledger(
        subject="env.py:Env",
        mode="chat",
        sandbox="an in-memory machine",
        path="env.py",
        line=1,
        entries=(
            LedgerEntry(
                rule=RULES["HE301"],
                outcome=Outcome.FAILED,
                findings=(found,),
                accepted=(Accepted(finding=old, reason="old layer", origin="odd, näme:1.py:7"),),
                seconds=0.25,
            ),
            LedgerEntry(rule=RULES["HE401"], outcome=Outcome.NOT_EXERCISED, note="no rollout"),
        ),
    )
    problem = FileProblem(path="broken, file.py", line=2, column=1, message="the file does not parse: no")
    values = {"entry_point": "pytest", "mode": "chat", "ledgers": (ledger,), "exit_code": 1, "seconds": 1.5, "files": 2}
    return Account(**{**values, "problems": (problem,), "versions": {"pytest-hermes-env": "1"}, **changes})


def test_json_holds_every_rule_with_its_outcome():
    """The shape that docs/reference/reports.md describes."""
    finding = {"message": "100 % wrong:\nreally", "path": "env.py", "line": 3, "column": 5, "seen": "a, b"}
    old = {
        "severity": "error",
        "message": "old",
        "path": "odd, näme:1.py",
        "line": 7,
        "column": 1,
        "seen": "",
        "scenario": "",
        "confirmation": "",
        "raised_by": "",
        "also": [],
    }

    assert json.loads(json_text(account())) == {
        "version": 1,
        "entry_point": "pytest",
        "mode": "chat",
        "versions": {"pytest-hermes-env": "1"},
        "strict": False,
        "complete": True,
        "exit_code": 1,
        "seconds": 1.5,
        "files": 2,
        "classes": [
            {
                "class": "env.py:Env",
                "path": "env.py",
                "line": 1,
                "mode": "chat",
                "sandbox": "an in-memory machine",
                "counts": {"failed": 1, "not exercised": 1},
                "ladder": [],
                "rules": [
                    {
                        "id": "HE301",
                        "name": "messages-not-final-response",
                        "severity": "error",
                        "outcome": "failed",
                        "note": "",
                        "waiver": "",
                        "seconds": 0.25,
                        "findings": [
                            {
                                **finding,
                                "severity": "error",
                                "scenario": "happy",
                                "confirmation": "",
                                "raised_by": "",
                                "also": [],
                            }
                        ],
                        "accepted": [{"reason": "old layer", "origin": "odd, näme:1.py:7", "finding": old}],
                    },
                    {
                        "id": "HE401",
                        "name": "reward-is-a-finite-number",
                        "severity": "error",
                        "outcome": "not exercised",
                        "note": "no rollout",
                        "waiver": "",
                        "seconds": 0.0,
                        "findings": [],
                        "accepted": [],
                    },
                ],
            }
        ],
        "problems": [
            {
                "id": "HE111",
                "name": "file-parses",
                "path": "broken, file.py",
                "line": 2,
                "column": 1,
                "message": "the file does not parse: no",
            }
        ],
        "skipped": [],
    }


def test_github_annotations_escape_what_would_end_them():
    """Percent signs and line ends in messages; commas and colons in properties, too."""
    fix = RULES["HE301"].section("Fix").replace("%", "%25")

    assert github_text(account()) == (
        "::error file=broken%2C file.py,line=2,col=1,title=HE111 file-parses::the file does not parse: no\n"
        "::error file=env.py,line=3,col=5,title=HE301 messages-not-final-response::100 %25 wrong:%0Areally"
        f"%0Ain scenario happy%0Aseen: a, b%0Afix: {fix}\n"
    )


def test_github_names_files_from_the_checkout(tmp_path, monkeypatch):
    """A job may work in a directory below the checkout."""
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))

    assert "::error file=sub/env.py,line=3," in github_text(account())


def test_sarif_keeps_to_the_standard():
    """Against what the standard demands of the parts that we use, and against its published schema where one is given."""
    log = json.loads(sarif_text(account()))
    schemas = [LOG]
    if SCHEMA:
        with open(SCHEMA, encoding="utf-8") as file:
            schemas.append(json.load(file))
    for schema in schemas:
        kind = jsonschema.validators.validator_for(schema)
        assert [error.message for error in kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(log)] == []
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules[: len(ALL_RULES)]] == [rule.id for rule in ALL_RULES]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_sarif_results_have_places_fingerprints_and_suppressions(tmp_path):
    """Paths are relative to the root and escaped; an accepted finding is suppressed, in its source or outside of it."""
    (run,) = json.loads(sarif_text(account()))["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]

    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": f"file://{tmp_path}/"}}
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("broken%2C%20file.py", 2),
        ("env.py", 3),
        ("odd%2C%20n%C3%A4me%3A1.py", 7),
    ]
    assert len({result["partialFingerprints"]["hermesEnv/v1"] for result in run["results"]}) == 3
    assert [result.get("suppressions") for result in run["results"]] == [
        None,
        None,
        [{"kind": "inSource", "status": "accepted", "justification": "old layer (odd, näme:1.py:7)"}],
    ]


def test_each_report_shows_what_the_finding_weighs():
    """A finding may weigh less than its rule: text, JSON, GitHub and SARIF say warning where the rule says error."""
    finding = Finding(message="guarded", path="env.py", line=3, severity=Severity.WARNING)
    entry = LedgerEntry(rule=RULES["HE301"], outcome=Outcome.FAILED, findings=(finding,))
    run = account(ledgers=(Ledger(subject="env.py:Env", entries=(entry,), path="env.py"),), problems=())

    (text,) = finding_lines(RULES["HE301"], finding, is_brief=True)
    (rule,) = json.loads(json_text(run))["classes"][0]["rules"]
    (log,) = json.loads(sarif_text(run))["runs"]

    assert text == "env.py:3:1: HE301 messages-not-final-response (warning): guarded"
    assert [rule["severity"], rule["findings"][0]["severity"]] == ["error", "warning"]
    assert github_text(run).startswith("::warning file=env.py,line=3,col=1,")
    assert [result["level"] for result in log["results"]] == ["warning"]


def test_a_fingerprint_does_not_know_lines(tmp_path):
    """Code that moves keeps the identity of its findings."""

    def fingerprint(lines, line):
        (tmp_path / "env.py").write_text(lines, encoding="utf-8")
        entry = LedgerEntry(
            rule=RULES["HE301"], outcome=Outcome.FAILED, findings=(Finding(message="m", path="env.py", line=line),)
        )
        ledger = Ledger(subject="env.py:Env", entries=(entry,), path="env.py")
        (run,) = json.loads(sarif_text(account(ledgers=(ledger,), problems=())))["runs"]
        return run["results"][0]["partialFingerprints"]

    assert fingerprint("bad = 1\n", 1) == fingerprint("# more\n\n    bad  = 1\n", 3)
    assert fingerprint("bad = 1\n", 1) != fingerprint("bad = 2\n\n\n", 1)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    """The old content stays when the new cannot be put in its place, and no draft is left."""
    (tmp_path / "taken").mkdir()
    write_text("deep/report.json", "one")
    write_text("deep/report.json", "two")

    with pytest.raises(UsageError) as error:
        write_text("taken", "text")

    assert str(error.value) == "taken cannot be written: Is a directory"
    assert (tmp_path / "deep/report.json").read_text(encoding="utf-8") == "two"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "report.json", "taken"]


def test_what_stands_where_a_directory_is_needed_is_named(tmp_path):
    """A file is; a link to nowhere is followed."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "deeper")

    with pytest.raises(UsageError) as error:
        write_text("file/a/report.json", "text")
    write_text("link/a/report.json", "text")

    assert str(error.value) == "file/a/report.json cannot be written: file is a file.\n  fix       move it, or write elsewhere"
    assert (tmp_path / "gone/deeper/a/report.json").read_text(encoding="utf-8") == "text"


def test_the_root_is_a_directory_like_others():
    """It has no name, beside which a file could be written."""
    with pytest.raises(UsageError, match=r"^/ cannot be written: Is a directory$"):
        write_text("/", "a report")


@pytest.mark.parametrize(
    ("text", "is_shown"), [("near_miss:\n- say: x\n", True), ("hack:\n- say: x\n", True), ("check_rule(E, 'HE1')\n", False)]
)
def test_a_case_to_paste_is_shown_with_each_finding(text: str, is_shown: bool) -> None:
    """A test of the whole rule stands by the first one."""
    finding = Finding(message="m", path="", line=0, reproduction=text)

    assert (text.splitlines()[0] in "\n".join(finding_lines(ALL_RULES[0], finding, is_brief=True))) == is_shown
