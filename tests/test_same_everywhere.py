"""What tests/conftest.py does for all tests: the same variables everywhere, and no silent skips where they are not expected."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("warm_python")

CONFTEST = Path(__file__).with_name("conftest.py")
HIDDEN = (
    "PYTHONDONTWRITEBYTECODE",
    "OPENROUTER_API_KEY",
    "HF_TOKEN",
    "WANDB_API_KEY",
    "https_proxy",
    "HERMES_ENV_PROVIDER",
    "BROWSER_CDP_URL",
)

SEEN = f"""
import os
from pathlib import Path


def test_variables():
    assert [name for name in {HIDDEN} if name in os.environ] == []
    assert os.environ.get("HERMES_HOME") != "/users/own"
    assert (os.environ["HF_HUB_OFFLINE"], os.environ["LC_ALL"]) == ("1", "C")
    assert list(Path.home().iterdir()) == []
"""


def test_the_users_variables_and_home_are_hidden(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, proxies and settings of services are gone before a test module is imported; the locale stays."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(SEEN)
    (pytester.path / ".netrc").touch()
    monkeypatch.setenv("HOME", str(pytester.path))
    monkeypatch.setenv("HERMES_HOME", "/users/own")
    monkeypatch.setenv("LC_ALL", "C")
    for name in HIDDEN:
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)


def test_a_test_that_must_run_is_not_skipped(pytester: pytest.Pytester) -> None:
    """With --must-run, a skip for such a reason fails the run; other skips stay what they are."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def cell(): pytest.skip("this machine gives no namespaces")

        def test_in_a_cell(cell): ...
        def test_elsewhere(): pytest.skip("there is no git here")
        """
    )

    free = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    strict = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--must-run", "namespaces")

    free.assert_outcomes(skipped=2)
    strict.assert_outcomes(errors=1, skipped=1)
    strict.stdout.fnmatch_lines(["*test_in_a_cell must run here (--must-run): Skipped: this machine gives no namespaces"])
