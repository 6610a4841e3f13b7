"""HERMES_HOME, HOME of the commands that hermes starts, and the variables of the approval prompt during a test run."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("warm_python")

IN_HOME = """
import os
from pathlib import Path

def test_home({fixture}):
    home = Path(os.environ["HERMES_HOME"])
    print("HOME IS", home)
    assert (home / "home").is_dir()
    assert os.environ["TERMINAL_HOME_MODE"] == "profile"
    assert "HERMES_INTERACTIVE" not in os.environ
"""

VERSIONS = r"pytest-hermes-env \S+, atroposlib 0\.4\.0, hermes-agent 0\.19\.\d+"
"""The part of the session header that lists what a result depends on."""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose shell asks for approval and has a HERMES_HOME; its test uses a fixture of the plugin."""
    monkeypatch.setenv("HERMES_INTERACTIVE", "1")
    monkeypatch.setenv("HERMES_HOME", str(pytester.path / "mine"))
    monkeypatch.delenv("TERMINAL_HOME_MODE", raising=False)
    pytester.makepyfile(test_it=IN_HOME.format(fixture="agent_result"))
    return pytester


def home_in(result: pytest.RunResult) -> str:
    """Return the home that the tests of a run printed; it is the same in all of them."""
    (home,) = {text.partition("HOME IS ")[2].strip() for text in result.outlines if "HOME IS" in text}
    return home


def test_a_run_has_a_temporary_home_that_is_removed(suite: pytest.Pytester) -> None:
    """Without an option, hermes uses a temporary directory that is removed at the end of the run; the header has no path of it."""
    result = suite.runpytest_subprocess("-s")

    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([VERSIONS + "; HERMES_HOME temporary"])
    assert "pytest-hermes-home-" in home_in(result)
    assert not suite.path.joinpath(home_in(result)).exists()


def test_the_home_can_be_named(suite: pytest.Pytester) -> None:
    """--hermes-home DIR uses that directory and leaves it there; the header names it."""
    result = suite.runpytest_subprocess("-s", "--hermes-home", "named")

    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([VERSIONS + rf"; HERMES_HOME {suite.path}/named"])
    assert (suite.path / "named" / "home").is_dir()


def test_the_ini_value_names_the_home(suite: pytest.Pytester) -> None:
    """The ini value does what the flag does, and applies to the whole run: also to tests that do not use the plugin."""
    suite.makeini("[pytest]\nhermes_home = from_ini")
    suite.makepyfile(test_it=IN_HOME.format(fixture=""))

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1)
    assert (suite.path / "from_ini" / "home").is_dir()


def test_a_test_that_uses_nothing_of_the_plugin_is_left_alone(suite: pytest.Pytester) -> None:
    """Such a run has no fixture, variable or further hook of the plugin, and creates no directory."""
    suite.makepyfile(
        test_it="""
        import os
        import tempfile
        from pathlib import Path

        BEFORE = {**os.environ, "PYTEST_CURRENT_TEST": "test_it.py::test_nothing (call)"}

        def test_nothing(request):
            assert request.fixturenames == ["request"]
            assert not [name for name, _ in request.config.pluginmanager.list_name_plugin() if name.startswith("hermes-env-")]
            assert os.environ == BEFORE
            assert BEFORE["HERMES_INTERACTIVE"] == "1"
            assert BEFORE["HERMES_HOME"].endswith("mine")
            assert not list(Path(tempfile.gettempdir()).glob("pytest-hermes-home-*"))
        """
    )
    temporary = suite.mkdir("tmp")
    suite.makeconftest(f"import os, tempfile\ntempfile.tempdir = os.environ['TMPDIR'] = {str(temporary)!r}")

    result = suite.runpytest_subprocess("-s", "-W", "error")

    result.assert_outcomes(passed=1)
    assert not (suite.path / "mine").exists()


@pytest.mark.parametrize("place", ["conftest", "test module", "test"])
def test_hermes_imported_by_the_tests_themselves_writes_into_the_temporary_home(suite: pytest.Pytester, place: str) -> None:
    """The temporary home is set even if a test imports hermes first, without any fixture of the plugin."""
    at_import = "import hermes_constants; IMPORTED = str(hermes_constants.get_hermes_home())"
    suite.makeconftest(at_import if place == "conftest" else "")
    suite.makepyfile(
        test_it=f"""
        import os
        {at_import if place == "test module" else ""}

        def test_first():
            {at_import if place == "test" else "import hermes_constants"}
            os.environ["TERMINAL_ENV"] = "leaked"
            print("HOME IS", hermes_constants.get_hermes_home())

        def test_second():
            import hermes_constants
            assert "TERMINAL_ENV" not in os.environ
            assert "HERMES_INTERACTIVE" not in os.environ
            print("HOME IS", hermes_constants.get_hermes_home())
        """
    )

    result = suite.runpytest_subprocess("-s")

    result.assert_outcomes(passed=2)
    assert "pytest-hermes-home-" in home_in(result)
    assert not (suite.path / "mine").exists()


def test_a_home_that_a_test_sets_itself_wins_in_that_test_only(suite: pytest.Pytester) -> None:
    """A test that sets HERMES_HOME before it imports hermes keeps its own; the next test has the temporary one."""
    suite.makepyfile(
        test_it="""
        import os

        def test_first(monkeypatch):
            monkeypatch.setenv("HERMES_HOME", "/chosen/by/the/test")
            import hermes_constants
            assert str(hermes_constants.get_hermes_home()) == "/chosen/by/the/test"

        def test_second():
            assert "pytest-hermes-home-" in os.environ["HERMES_HOME"]
        """
    )

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=2)


def test_what_a_test_changes_is_restored_after_it(suite: pytest.Pytester) -> None:
    """hermes' variables have the same values after a test as before it; other variables are not changed."""
    suite.makepyfile(
        test_it="""
        import os

        def test_first(agent_result):
            os.environ["TERMINAL_ENV"], os.environ["HERMES_HOME"], os.environ["MINE"] = "docker", "/elsewhere", "kept"

        def test_second(agent_result):
            assert "TERMINAL_ENV" not in os.environ
            assert "pytest-hermes-home-" in os.environ["HERMES_HOME"]
            assert os.environ["MINE"] == "kept"
        """
    )

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=2)


def test_a_later_test_does_not_see_the_home(suite: pytest.Pytester) -> None:
    """Before and after a test that uses the plugin, and hermes through it, the variables are the user's own; the home stays one."""
    suite.makepyfile(
        test_it="""
        import os

        BEFORE = dict(os.environ)

        def is_as_before():
            return {**os.environ, "PYTEST_CURRENT_TEST": ""} == {**BEFORE, "PYTEST_CURRENT_TEST": ""}

        def test_first():
            assert is_as_before()

        def test_with_plugin(make_env):
            print("HOME IS", os.environ["HERMES_HOME"])
            __import__("hermes_constants").get_hermes_home()

        def test_between():
            assert is_as_before()

        def test_with_plugin_again(agent_result):
            print("HOME IS", os.environ["HERMES_HOME"])
            assert "HERMES_INTERACTIVE" not in os.environ

        def test_last():
            assert is_as_before()
        """
    )

    result = suite.runpytest_subprocess("-s")

    result.assert_outcomes(passed=5)
    assert "pytest-hermes-home-" in home_in(result)
    assert not suite.path.joinpath(home_in(result)).exists()


def test_a_later_test_that_imports_hermes_has_the_home(suite: pytest.Pytester) -> None:
    """hermes is loaded by then, so that no import hook sees it: it must not write into the user's own home."""
    suite.makepyfile(
        test_it="""
        def test_with_plugin(agent_result):
            __import__("hermes_constants")

        def test_later():
            import hermes_constants
            assert "pytest-hermes-home-" in str(hermes_constants.get_hermes_home())
        """
    )

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=2)


def test_workers_have_a_home_each(suite: pytest.Pytester, two_workers: tuple[str, ...]) -> None:
    """Two xdist workers have different homes."""
    suite.makepyfile(
        test_it="""
        import os
        from pathlib import Path

        import pytest

        @pytest.mark.parametrize("number", [0, 1])
        def test_home(number, agent_result):
            Path(f"home-{os.environ['PYTEST_XDIST_WORKER']}").write_text(os.environ["HERMES_HOME"])
        """
    )

    result = suite.runpytest_subprocess(*two_workers)

    result.assert_outcomes(passed=2)
    homes = [path.read_text() for path in suite.path.glob("home-gw*")]
    assert len(homes) == len(set(homes)) == 2
