"""A contract run is green only when it was played, as users see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

pytestmark = pytest.mark.usefixtures("one_player")

SOUND = (Path(__file__).parents[1] / "contract" / "sound" / "terminal_tasks.py").read_text(encoding="utf-8")
SET_UP = "        held_out = self.config.eval_size\n"
BROKEN = SOUND.replace(SET_UP, f'        raise SystemExit("no key is set")\n{SET_UP}')


def run(pytester: pytest.Pytester, source: str, *args: str) -> pytest.RunResult:
    """Run the contract of an environment, which gets a module of its own."""
    name = f"env_{abs(hash((source, args))):x}"
    pytester.makepyfile(**{name: source})
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", f"{name}.py:TerminalTasks", *args)


def test_a_set_up_that_leaves_is_one_violation(pytester: pytest.Pytester) -> None:
    """HE206 shows the line; every other rule that needs a rollout was not played because of it."""
    result = run(pytester, BROKEN, "-k", "HE206 or HE401 or HE701")

    result.assert_outcomes(failed=1, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*HE206 setup-ends-with-items: setup failed:",
            "  SystemExit: no key is set",
            "  not exercised   HE401, HE701  setup failed: SystemExit: no key is set",
        ]
    )


def test_a_rule_that_nothing_exercised_fails_the_run(pytester: pytest.Pytester) -> None:
    """Also when the rule that would show why is not selected: nothing has failed, and nothing was shown."""
    result = run(pytester, BROKEN, "-k", "HE103 or HE401")

    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "  not judged      HE401  setup failed: SystemExit: no key is set",
            "hermes-env: error: *TerminalTasks: HE401 was not judged, *",
        ]
    )


@pytest.mark.parametrize(
    ("least", "code"), [("0", pytest.ExitCode.OK), ("1", pytest.ExitCode.OK), ("all", pytest.ExitCode.TESTS_FAILED)]
)
def test_a_project_may_accept_fewer_rules(pytester: pytest.Pytester, least: str, code: pytest.ExitCode) -> None:
    """By the flag or the ini value."""
    pytester.makeini(f"[pytest]\nhermes_min_exercised = {least}")
    assert run(pytester, BROKEN, "-k", "HE103 or HE401").ret == code
    assert run(pytester, BROKEN, "-k", "HE103 or HE401", "--hermes-min-exercised", "all").ret == pytest.ExitCode.TESTS_FAILED


def test_a_minimum_that_is_no_number_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """It is told before anything runs."""
    result = pytester.runpytest_inprocess("--hermes-min-exercised", "most")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: hermes_min_exercised must be all or a number of rules, not 'most'"])


def test_the_most_severe_confirmed_violation_is_shown_first(pytester: pytest.Pytester) -> None:
    """A violation in the source that rollouts had nothing to say about comes after one that they showed."""
    key = 'api_key=os.environ.get("OPENROUTER_API_KEY", "")'
    source = SOUND.replace(key, f'api_key="sk-or-v1-{"0a1b2c3d" * 8}"').replace(
        "        if found.rstrip", '        raise ValueError("no verifier")\n        if found.rstrip'
    )

    result = run(pytester, source, "-k", "HE107 or HE403")

    result.assert_outcomes(failed=2)
    text = " ".join(result.stdout.str().split())
    assert text.index("compute_reward raised ValueError") < text.index("HE107 no-secrets-in-source")


def test_a_warning_is_counted_alike(pytester: pytest.Pytester) -> None:
    """The ledger and pytest count a rule whose findings do not fail the run as passed, with a warning."""
    source = SOUND.replace('if __name__ == "__main__":\n    TerminalTasks.cli()\n', "")

    result = run(pytester, source, "-k", "HE101 or HE109")

    result.stdout.fnmatch_lines(
        [
            f"{len(ALL_RULES)} rules: 2 passed, {len(ALL_RULES) - 2} not run; 1 warning",
            f"=* 2 passed, {len(ALL_RULES) - 2} deselected, 1 warning *",
        ]
    )
