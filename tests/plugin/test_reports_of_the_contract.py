"""Machine-readable reports of a pytest run, and what waives a rule in it."""

from __future__ import annotations

import html
import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

pytestmark = pytest.mark.usefixtures("one_player")

ENV = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

class OwnEnv(TerminalTestEnv):
    async def wandb_log(self, wandb_metrics=None):
        metrics = {**(wandb_metrics or {}), "train/tries": 3}
        super().wandb_log(metrics)
"""
CHEAP = "HE101 or HE801"
FILES = ("--hermes-report-json", "out/r.json", "--hermes-sarif", "r.sarif", "--junitxml", "j.xml", "--hermes-html", "r.html")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """Run as if outside of GitHub Actions."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest in this process, with warnings as errors."""
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


def report(pytester: pytest.Pytester, file: str = "out/r.json"):
    """Read a JSON report."""
    return json.loads((pytester.path / file).read_text(encoding="utf-8"))


def rules_of(data, name: str) -> list[dict[str, Any]]:
    """Return the rules of the class of that name."""
    return next(row["rules"] for row in data["classes"] if row["class"].endswith(name))


def outcomes(data):
    """Return the outcomes of the cheap rules on OwnEnv, and the set of outcomes of all others."""
    rules = {rule["id"]: rule["outcome"] for rule in rules_of(data, "OwnEnv")}
    assert list(rules) == [rule.id for rule in ALL_RULES]
    return rules.pop("HE101"), rules.pop("HE801"), set(rules.values())


def test_one_run_writes_all_reports(pytester: pytest.Pytester, monkeypatch) -> None:
    """JSON, SARIF, JUnit properties and annotations contain the same finding; a line per rule is shown with -v."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    pytester.makepyfile(own=ENV)

    result = run(pytester, "--hermes-env", "own.py", "-v", "-k", CHEAP, *FILES)

    data = report(pytester)
    finding = next(rule for rule in data["classes"][0]["rules"] if rule["id"] == "HE801")["findings"][0]
    log = json.loads((pytester.path / "r.sarif").read_text(encoding="utf-8"))
    assert finding["message"] in html.unescape((pytester.path / "r.html").read_text(encoding="utf-8"))
    cases = ET.parse(pytester.path / "j.xml").iter("testcase")
    properties = [{item.get("name"): item.get("value") for item in case.iter("property")} for case in cases]
    assert (data["entry_point"], data["mode"], data["complete"], data["exit_code"]) == ("pytest", "chat", True, 1)
    assert outcomes(data) == ("passed", "failed", {"not run"})
    assert (finding["path"], finding["line"], finding["scenario"]) == ("own.py", 6, "wandb_log")
    assert finding["confirmation"].startswith("confirmed: wandb_log returned and nothing was logged")
    assert [item["ruleId"] for item in log["runs"][0]["results"]] == ["HE801"]
    assert properties == [
        {"hermes_rule": "HE101", "hermes_class": "own:OwnEnv", "hermes_outcome": "passed"},
        {"hermes_rule": "HE801", "hermes_class": "own:OwnEnv", "hermes_outcome": "failed"},
    ]
    result.stdout.fnmatch_lines(
        [
            "own.py::OwnEnv?HE101-required-methods? PASSED*",
            "own.py::OwnEnv?HE801-awaits-super-wandb-log? FAILED*",
            f"{len(ALL_RULES)} rules: 1 passed, 1 failed, {len(ALL_RULES) - 2} not run",
            "  mode            chat",
            "hermes-env: wrote out/r.json",
            "hermes-env: wrote r.sarif",
            "::error file=own.py,line=6,col=9,title=HE801 awaits-super-wandb-log::*",
        ]
    )


LENIENT = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

class LenientEnv(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        text = getattr(result, "final_response", "")
        return float(text == item["content"])
"""
"""Its finding of HE301 is less severe than the rule."""


def severities(data) -> list[str]:
    """Return the severity of HE301 and of its finding in LenientEnv."""
    rule = next(rule for rule in rules_of(data, "LenientEnv") if rule["id"] == "HE301")
    return [rule["severity"], rule["findings"][0]["severity"]]


def test_workers_report_what_one_process_would(pytester: pytest.Pytester, two_workers: tuple[str, ...]) -> None:
    """Under -n 2 the outcomes, a finding's own severity and one complete ledger and report arrive at the controller."""
    pytester.makepyfile(own=ENV, lenient=LENIENT)
    chosen = f"OwnEnv and ({CHEAP} or HE503) or LenientEnv and HE301"
    words = ("--hermes-env", "own.py", "--hermes-env", "lenient.py", "--hermes-report-json", "r.json", "-k", chosen)

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *words, *two_workers)

    data = report(pytester, "r.json")
    result.assert_outcomes(passed=2, failed=1, skipped=1, warnings=1)
    assert sum("contract of " in line for line in result.outlines) == len(data["classes"])
    assert (outcomes(data), data["complete"]) == (("passed", "failed", {"not applicable", "not run"}), True)
    assert severities(data) == ["error", "warning"]


def test_the_report_of_an_aborted_run_is_incomplete(pytester: pytest.Pytester) -> None:
    """It has the outcomes up to the failure that ended the run."""
    pytester.makepyfile(own=ENV)
    run(pytester, "--hermes-env", "own.py", "--hermes-report-json", "r.json", "-k", "HE801 or HE802", "-x")

    data = report(pytester, "r.json")
    assert (outcomes(data), data["complete"]) == (("not run", "failed", {"not run"}), False)


def test_a_finding_less_severe_than_its_rule_fails_only_a_strict_run(pytester: pytest.Pytester) -> None:
    """The finding's own severity applies."""
    pytester.makepyfile(lenient=LENIENT)
    chosen = ("-p", "no:cacheprovider", "--hermes-env", "lenient.py", "-k", "HE301")

    lenient = pytester.runpytest_inprocess(*chosen, "--hermes-report-json", "out/r.json")
    strict = pytester.runpytest_inprocess(*chosen, "--hermes-strict")

    lenient.assert_outcomes(passed=1, warnings=1)
    strict.assert_outcomes(failed=1)
    assert severities(report(pytester)) == ["error", "warning"]


WAIVED = ENV.replace("log(metrics)", "log(metrics)  # hermes: HE801 written for the old layer")
TABLE = '[tool.hermes-env]\nselect = ["HE101", "HE801"]\n'
TESTED = (
    "from own import OwnEnv\nfrom pytest_hermes_env import env_contract\n\n@env_contract(OwnEnv)\ndef test_contract(): ...\n"
)


def test_comments_and_settings_apply_to_targets_and_to_decorated_tests(pytester: pytest.Pytester) -> None:
    """The waived rule is an expected failure with its reason, and only the selected rules have items."""
    pytester.makepyfile(own=WAIVED, test_own=TESTED)
    pytester.makepyprojecttoml(TABLE)
    pytester.syspathinsert()

    for words in (("--hermes-env", "own.py"), ("test_own.py",)):
        result = run(pytester, *words)

        result.assert_outcomes(passed=1, xfailed=1)
        result.stdout.fnmatch_lines(["  waived *HE801  written for the old layer"])


def test_a_comment_that_rollouts_have_proven_stale_fails_the_run(pytester: pytest.Pytester) -> None:
    """It is reported as stale, with file and line; an invalid table is a usage error."""
    pytester.makepyfile(own=WAIVED.replace("super().wandb", "await super().wandb"))
    pytester.makepyprojecttoml(TABLE)
    stale = run(pytester, "--hermes-env", "own.py")
    pytester.makepyprojecttoml(TABLE.replace("select", "selct"))
    wrong = run(pytester, "--hermes-env", "own.py")

    assert (stale.ret, wrong.ret) == (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR)
    stale.assert_outcomes(passed=2)
    stale.stdout.fnmatch_lines(
        [
            "own.py:6:1: HE000 waivers-hold: HE801 is waived (written for the old layer), but no violation of it was found here: "
            "remove the waiver"
        ]
    )
    assert any("pyproject.toml:2: [tool.hermes-env] has no key 'selct'. Nearest: select." in line for line in wrong.errlines)


def test_a_secret_that_is_an_ordinary_word_keeps_no_report_from_being_written(pytester: pytest.Pytester, monkeypatch) -> None:
    """The word stands in the texts of rules, too; what looks like a key is refused there."""
    pytester.makepyfile(own=ENV)
    monkeypatch.setenv("MY_API_KEY", "evaluate")

    run(pytester, "--hermes-env", "own.py", "-k", CHEAP, *FILES, "--hermes-evidence", "kept.gz")

    assert all((pytester.path / name).stat().st_size for name in ("out/r.json", "r.sarif", "r.html", "kept.gz"))
