"""SARIF, JSON and JUnit files against schemas: of SARIF 2.1.0 and JUnit the parts that the reports use, written after their standards.

Every object takes only the properties that its standard names, so that a misspelt one fails.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from pytest_hermes_env.cli import main

BAD = """
from environments.hermes_base_env import HermesAgentBaseEnv

class Bad(HermesAgentBaseEnv):
    name = "bad"

    async def compute_reward(self, item, result, ctx):  # hermes: HE301 the results of the fork have this field
        return float(result.final_response == item["answer"])

    async def wandb_log(self, wandb_metrics=None):
        pass
"""
TEXT, BAG = {"type": "string", "minLength": 1}, {"type": "object"}


def an_object(required: str, optional: str = "", **properties: Any) -> dict[str, Any]:
    """Return the schema of an object; properties that are not described are texts."""
    names = [*required.split(), *optional.split()]
    return {
        "type": "object",
        "properties": {name: properties.get(name, TEXT) for name in names},
        "required": required.split(),
        "additionalProperties": False,
    }


def a_list(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = an_object("text", "markdown id arguments")
RULE = an_object(
    "id",
    "name shortDescription fullDescription help helpUri defaultConfiguration properties",
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=an_object("", "level enabled rank", level=LEVEL, enabled={"type": "boolean"}),
    properties=BAG,
)
NUMBER = {"type": "integer", "minimum": 1}
PLACE = an_object(
    "artifactLocation",
    "region",
    artifactLocation=an_object("uri", "uriBaseId"),
    region=an_object("startLine", "startColumn endLine endColumn", startLine=NUMBER, startColumn=NUMBER),
)
SUPPRESSION = an_object(
    "kind",
    "status justification",
    kind={"enum": ["inSource", "external"]},
    status={"enum": ["accepted", "underReview", "rejected"]},
)
RESULT = an_object(
    "message",
    "ruleId ruleIndex level locations partialFingerprints suppressions properties",
    message=MESSAGE,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    locations=a_list(an_object("physicalLocation", physicalLocation=PLACE)),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=a_list(SUPPRESSION),
    properties=BAG,
)
RUN = an_object(
    "tool",
    "invocations originalUriBaseIds columnKind results properties",
    tool=an_object("driver", driver=an_object("name", "version informationUri rules", rules=a_list(RULE))),
    invocations=a_list(
        an_object(
            "executionSuccessful",
            "exitCode properties",
            executionSuccessful={"type": "boolean"},
            exitCode={"type": "integer"},
            properties=BAG,
        )
    ),
    originalUriBaseIds={
        "type": "object",
        "additionalProperties": an_object("uri", uri={"type": "string", "pattern": "^file:///.*/$"}),
    },
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=a_list(RESULT),
    properties=BAG,
)
SARIF = an_object("version runs", "$schema", version={"const": "2.1.0"}, runs=a_list(RUN))


ANY_TEXT, COUNT, YES = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
FINDING = an_object(
    "severity message path line column seen scenario confirmation raised_by also",
    path=ANY_TEXT,
    line=COUNT,
    column=COUNT,
    also=a_list(TEXT),
    **dict.fromkeys(("seen", "scenario", "confirmation", "raised_by"), ANY_TEXT),
)
OUTCOMES = ["passed", "failed", "waived", "undecided", "not applicable", "not exercised", "not run"]
JUDGED = an_object(
    "id name severity outcome note waiver seconds findings accepted",
    severity={"enum": ["error", "warning"]},
    outcome={"enum": OUTCOMES},
    note=ANY_TEXT,
    waiver=ANY_TEXT,
    seconds={"type": "number"},
    findings=a_list(FINDING),
    accepted=a_list(an_object("reason origin finding", finding=FINDING)),
)
CLASS = an_object(
    "class path line mode sandbox counts rules ladder",
    line=COUNT,
    sandbox=ANY_TEXT,
    counts={"type": "object", "additionalProperties": COUNT, "propertyNames": {"enum": OUTCOMES}},
    rules=a_list(JUDGED),
    ladder=a_list(BAG),
)
JSON = an_object(
    "version entry_point mode versions strict complete exit_code seconds files classes problems skipped",
    version={"const": 1},
    versions={"type": "object", "additionalProperties": TEXT},
    strict=YES,
    complete=YES,
    exit_code=COUNT,
    seconds={"type": "number"},
    files=COUNT,
    classes=a_list(CLASS),
    problems=a_list(an_object("id name path line column message", line=COUNT, column=COUNT)),
    skipped=a_list(
        an_object("path line class reason is_environment is_unreadable", line=COUNT, is_environment=YES, is_unreadable=YES)
    ),
)
"""As docs/reference/reports.md describes version 1."""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what reads the report of a form on a file with findings, one of them waived."""
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(BAD, encoding="utf-8")

    def read(form: str) -> Any:
        main(["check", "bad.py", "--format", form, "--output", f"report.{form}"])
        return json.loads(Path(f"report.{form}").read_text(encoding="utf-8"))

    return read


def test_sarif_keeps_its_schema(written: Any) -> None:
    """With findings, a suppressed one and all rules; each result refers to its rule."""
    log = written("sarif")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]

    jsonschema.validate(log, SARIF)
    assert {result["ruleId"] for result in run["results"]} >= {"HE301", "HE801"}
    assert [result["ruleId"] for result in run["results"] if "suppressions" in result] == ["HE301"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_the_schema_of_sarif_sees_a_misspelt_property(written: Any) -> None:
    """And a value of another type."""
    log = written("sarif")
    log["runs"][0]["results"][0]["ruleid"] = "HE301"

    with pytest.raises(jsonschema.ValidationError, match="ruleid"):
        jsonschema.validate(log, SARIF)


def test_json_keeps_its_schema(written: Any) -> None:
    """With findings and a waived one; the counts are those of the rules."""
    document = written("json")
    (one,) = document["classes"]

    jsonschema.validate(document, JSON)
    assert one["counts"] == dict(Counter(rule["outcome"] for rule in one["rules"]))


def test_junit_keeps_its_schema(pytester: pytest.Pytester) -> None:
    """Suites and cases have the attributes that readers of JUnit files need, and counts that are those of the cases."""
    pytester.makepyfile(
        "def test_good(fake_sandbox):\n    pass\n\ndef test_bad(fake_sandbox):\n    fake_sandbox.on(5)\n\n"
        "def test_error(hermes_rule):\n    pass\n"
    )

    pytester.runpytest_inprocess("-p", "no:cacheprovider", "--junitxml", "junit.xml")

    root = ET.parse(pytester.path / "junit.xml").getroot()
    (suite,) = root
    cases = suite.findall("testcase")
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert counts == {"tests": 3, "failures": 1, "errors": 1, "skipped": 0}
    assert {"name", "time", "timestamp", "hostname"} <= suite.attrib.keys()
    assert all(case.attrib.keys() == {"classname", "name", "time"} for case in cases)
    assert {child.tag for case in cases for child in case} <= {
        "failure",
        "error",
        "skipped",
        "properties",
        "system-out",
        "system-err",
    }
    assert all(child.attrib["message"] for case in cases for child in case if child.tag in {"failure", "error"})
