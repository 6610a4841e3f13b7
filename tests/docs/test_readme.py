"""The examples and outputs of the README are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    """Return the README's code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_test_with_a_mock_model_passes(pytester: pytest.Pytester) -> None:
    """The example of make_env is a passing test."""
    (example,) = [block for block in blocks("python") if "script=[" in block]
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(("words", "count"), [("agent_result", 2), ("check_reward", 1)])
def test_the_tests_of_rewards_pass(pytester: pytest.Pytester, words: str, count: int) -> None:
    """The examples of "Test your reward in two minutes" are passing tests."""
    (example,) = [block for block in blocks("python") if words in block]
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=count)


def test_the_recorded_test_passes(pytester: pytest.Pytester) -> None:
    """The example of "Record once, replay forever" passes on the project's recording that its scores come from."""
    (example,) = [block for block in blocks("python") if "hermes_cassette" in block]
    pytester.makepyfile(test_readme=example)
    place = pytester.mkdir("cassettes") / "test_readme"
    place.mkdir()
    recorded = README.parent / "cassettes" / "terminal_test_env" / "chat.json"
    (place / "test_a_recorded_group_has_its_scores.json").write_bytes(recorded.read_bytes())

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cassettes: 1 replayed (--hermes-record=none)"])


def test_the_decorator_example_is_accepted(pytester: pytest.Pytester) -> None:
    """The example of @env_contract collects one test per rule."""
    (example,) = [block for block in blocks("python") if "@env_contract" in block]
    pytester.makepyfile(
        example.replace(
            "from my_project.my_env import MyEnv",
            "from environments.terminal_test_env.terminal_test_env import TerminalTestEnv as MyEnv",
        )
    )

    result = pytester.runpytest_inprocess("--collect-only", "-q", "-p", "no:cacheprovider")

    assert sum("test_contract[HE" in line for line in result.outlines) == len(ALL_RULES)


def test_the_findings_that_it_shows_are_printed(pytester: pytest.Pytester) -> None:
    """The lines of the first console block are output of the tool."""
    bad = README.parent / "docs" / "tutorial" / "word_count_env.py"

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", str(bad))

    shown = blocks("console")[0].splitlines()
    (ledger,) = [line for line in result.outlines if re.match(r"\d+ rules: ", line)]
    assert ledger in shown
    for text in (
        "HE301 messages-not-final-response:",
        "  more hermes-env explain HE301, or pytest -v",
        "  not exercised   HE302, ",
    ):
        assert any(text in line for line in shown)
        assert any(text in line for line in result.outlines)


def test_the_commands_are_those_of_tox(pytester: pytest.Pytester) -> None:
    """The two commands in the README exist: tox's default environments, and demo."""
    del pytester
    tox = (README.parent / "tox.ini").read_text(encoding="utf-8")
    text = README.read_text(encoding="utf-8")

    assert "pip install tox-uv && tox run -e demo" in text
    assert "pip install tox-uv && tox run  " in text
    assert "env_list = lint, types, tests" in tox
    assert "[testenv:demo]" in tox
