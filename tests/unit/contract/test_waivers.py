"""Waivers in `hermes-env check`: what they accept, and when they are themselves an error."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.cli import main

from .rule_cases import GOOD_FILE

ENV = GOOD_FILE.replace("class Good", "class Env").replace(
    'any(item["a"] in (message.get("content") or "") for message in result.messages)', 'item["a"] in result.final_response'
)
LINE = '        return float(item["a"] in result.final_response)'
UNTIL = 'paths = "env.py"\nrules = ["HE301"]\nreason = "old layer"\n'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a directory of its own, outside of GitHub's actions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def checked(capsys, tmp_path, source, *, settings="", select="HE301,HE101"):
    """Check a source; return the exit code, the outcome of HE301, its reason, and the messages of problems."""
    (tmp_path / "env.py").write_text(source, encoding="utf-8")
    if settings:
        (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    code = main(["check", "env.py", "--select", select, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    rule = next(row for row in report["classes"][0]["rules"] if row["id"] == "HE301")
    problems = [f"{item['path']}:{item['line']}: {item['message']}" for item in report["problems"]]
    return code, rule["outcome"], rule["waiver"], problems


@pytest.mark.parametrize(
    "source",
    [
        ENV.replace(LINE, LINE + "  # hermes: HE301 old layer"),
        ENV.replace(LINE, "        # hermes: HE301, HE101: old layer\n" + LINE),
        ENV.replace("    async def compute_reward", "    # hermes: HE301 old layer\n    async def compute_reward"),
        ENV.replace("result, ctx):", "result, ctx):  # hermes: he301 - old layer"),
        ENV.replace("class Env(HermesAgentBaseEnv):", "class Env(HermesAgentBaseEnv):  # hermes: HE301 old layer"),
        ENV.replace(
            LINE,
            LINE.replace("float(", "float(\n            ").replace(
                "response)", "response\n        )  # hermes: HE301 old layer"
            ),
        ),
    ],
    ids=["behind", "above", "above-def", "def", "class", "end-of-statement"],
)
def test_a_comment_accepts_the_violation_in_its_statement(capsys, tmp_path, source):
    """Wherever it stands, the reason comes into the ledger."""
    assert "# hermes:" in source

    assert checked(capsys, tmp_path, source) == (0, "waived", "old layer", [])


@pytest.mark.parametrize(
    "source",
    [
        ENV,
        ENV.replace(LINE, LINE + "  # hermes: HE101 another rule"),
        ENV.replace("        return item[", "        # hermes: HE301 another line\n        return item["),
        ENV.replace(LINE, f'        """# hermes: HE301 in a string"""\n{LINE}'),
    ],
    ids=["none", "other-rule", "other-line", "string"],
)
def test_a_comment_accepts_nothing_else(capsys, tmp_path, source):
    """Another rule, another statement or a string leave the finding as it is."""
    assert checked(capsys, tmp_path, source)[:3] == (1, "failed", "")


def test_the_name_of_the_command_begins_a_waiver_too(capsys, tmp_path):
    """Nobody remembers which of the two it is."""
    source = ENV.replace(LINE, LINE + "  # hermes-env: HE301 old layer")

    assert checked(capsys, tmp_path, source) == (0, "waived", "old layer", [])


def test_several_findings_need_several_waivers(capsys, tmp_path):
    """One accepted finding does not cover its neighbour."""
    source = ENV.replace(LINE, f"        x = result.output  # hermes: HE301 old layer\n{LINE}")

    assert checked(capsys, tmp_path, source)[:3] == (1, "failed", "")


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("HE999 why", "this comment waives HE999, which is not a rule."),
        ("HE301", "this comment waives HE301 without a reason: write why the violation is accepted"),
        ("HE301 (expires 2999-01-01)", "this comment waives HE301 without a reason: write why the violation is accepted"),
        ("HE301 why (expires soon)", "this comment expires on 'soon', which is not a date such as 2026-12-31"),
        ("ignore HE301", "this comment waives nothing: write `# hermes: HE301 reason`, the id first"),
    ],
)
def test_a_comment_that_cannot_hold_is_an_error(capsys, tmp_path, comment, message):
    """It is reported with file and line, and the finding stays."""
    source = ENV.replace(LINE, f"{LINE}  # hermes: {comment}")
    line = ENV[: ENV.index(LINE)].count("\n") + 1

    code, outcome, _, problems = checked(capsys, tmp_path, source)

    assert (code, outcome, [problem[: len(f"env.py:{line}: {message}")] for problem in problems]) == (
        1,
        "failed",
        [f"env.py:{line}: {message}"],
    )


def test_reading_alone_does_not_call_a_waiver_stale_that_rollouts_may_need(capsys, tmp_path):
    """HE301 has a half that runs rollouts: a check that finds nothing settles nothing."""
    source = GOOD_FILE.replace("class Good", "class Env").replace("ctx):", "ctx):  # hermes: HE301 old layer", 1)

    assert checked(capsys, tmp_path, source) == (0, "passed", "", [])


def test_a_path_waiver_holds_until_it_expires(capsys, tmp_path):
    """Before the date it accepts; after it the finding is back, and the waiver is an error, too."""
    table = "[[tool.hermes-env.waivers]]\n" + UNTIL
    message = "pyproject.toml:1: the waiver of HE301 (old layer) expired on 2020-01-01"

    assert checked(capsys, tmp_path, ENV, settings=table + "expires = 2999-01-01\n") == (0, "waived", "old layer", [])
    assert checked(capsys, tmp_path, ENV, settings=table + "expires = 2020-01-01\n") == (1, "failed", "", [message])


def test_a_comment_holds_until_it_expires(capsys, tmp_path):
    """After its date the finding is back, and the comment is an error, too."""
    line = ENV[: ENV.index(LINE)].count("\n") + 1

    def dated(day):
        return checked(capsys, tmp_path, ENV.replace(LINE, f"{LINE}  # hermes: HE301 old layer (expires {day})"))

    assert dated("2999-01-01") == (0, "waived", "old layer", [])
    assert dated("2020-01-01") == (
        1,
        "failed",
        "",
        [f"env.py:{line}: the waiver of HE301 (old layer) expired on 2020-01-01"],
    )


def test_a_path_waiver_that_fits_no_file_is_an_error(capsys, tmp_path):
    """A moved file does not leave its waiver behind."""
    table = "[[tool.hermes-env.waivers]]\n" + UNTIL.replace("env.py", "gone/**")

    assert checked(capsys, tmp_path, ENV, settings=table) == (
        1,
        "failed",
        "",
        ["pyproject.toml:1: the waiver of HE301 names gone/**, which matches no file"],
    )


def test_a_waiver_of_a_rule_that_only_reads_source_is_stale_when_nothing_is_found(capsys, tmp_path):
    """HE107 (no secrets in source) has no other half: a check has seen all there is."""
    source = GOOD_FILE.replace(
        "class Good(HermesAgentBaseEnv):", "class Env(HermesAgentBaseEnv):  # hermes: HE107 a key of the mock"
    )
    line = source[: source.index("class Env")].count("\n") + 1

    code, _, _, problems = checked(capsys, tmp_path, source, select="HE107,HE301")

    assert (code, problems) == (
        1,
        [f"env.py:{line}: HE107 is waived (a key of the mock), but no violation of it was found here: remove the waiver"],
    )
    assert checked(capsys, tmp_path, source, select="HE301")[0] == 0


def test_a_report_that_cannot_be_written_is_a_usage_error(capsys, tmp_path):
    """Its directory is a file."""
    (tmp_path / "env.py").write_text(ENV, encoding="utf-8")

    code = main(["check", "env.py", "--output", "env.py/report"])

    assert (code, capsys.readouterr().err) == (
        2,
        "hermes-env: error: env.py/report cannot be written: env.py is a file.\n  fix       move it, or write elsewhere\n",
    )
