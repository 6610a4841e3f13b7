"""HERMES_HOME, HOME of what hermes starts, and the variables of the approval prompt during a test run."""

from __future__ import annotations

import pytest


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose shell asks for approval and has a HERMES_HOME."""
    monkeypatch.setenv("HERMES_INTERACTIVE", "1")
    monkeypatch.setenv("HERMES_HOME", str(pytester.path / "mine"))
    pytester.makepyfile(
        """
        import os
        from pathlib import Path

        def test_home():
            home = Path(os.environ["HERMES_HOME"])
            print("HOME IS", home)
            assert (home / "home").is_dir()
            assert os.environ["TERMINAL_HOME_MODE"] == "profile"
            assert "HERMES_INTERACTIVE" not in os.environ
        """
    )
    return pytester


def test_a_run_has_a_temporary_home_that_is_removed(suite: pytest.Pytester) -> None:
    """Without an option hermes gets a directory of the run, which is gone afterwards."""
    result = suite.runpytest_subprocess("-s")

    result.assert_outcomes(passed=1)
    (line,) = [text for text in result.outlines if "HOME IS" in text]
    home = line.partition("HOME IS ")[2].strip()
    assert "pytest-hermes-home-" in home
    assert not suite.path.joinpath(home).exists()


def test_the_home_can_be_named(suite: pytest.Pytester) -> None:
    """--hermes-home DIR uses that directory and leaves it there."""
    result = suite.runpytest_subprocess("-s", "--hermes-home", "named")

    result.assert_outcomes(passed=1)
    assert (suite.path / "named" / "home").is_dir()


def test_the_ini_value_names_the_home(suite: pytest.Pytester) -> None:
    """The ini value does what the flag does."""
    suite.makeini("[pytest]\nhermes_home = from_ini")

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1)
    assert (suite.path / "from_ini" / "home").is_dir()


def test_the_header_names_versions_and_home(suite: pytest.Pytester) -> None:
    """The session header says what a result depends on."""
    result = suite.runpytest_subprocess()

    result.stdout.re_match_lines(
        [r"pytest-hermes-env \S+, atroposlib 0\.4\.0, hermes-agent 0\.19\.\d+; HERMES_HOME \S*pytest-hermes-home-\S+"]
    )
