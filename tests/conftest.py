"""Set-up that all tests share: an option, and an environment that is the same on everybody's machine."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Generator, Iterator, Mapping

import pytest

pytest_plugins = ["pytester"]

KEPT = frozenset({
    "CI", "COLUMNS", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "LOGNAME", "NO_COLOR", "PATH", "TERM", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "HERMES_ENV_INSTALLED", "HERMES_ENV_SARIF_SCHEMA",
})  # fmt: skip
KEPT_PREFIXES = ("COV", "HYPOTHESIS_", "LC_", "PY", "TOX_")
"""Variables that tests may see. API keys, proxies, HERMES_HOME and the settings of any service are not among them."""

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "WANDB_MODE": "disabled",
    "HERMES_DISABLE_LAZY_INSTALLS": "1",  # hermes installs packages and browsers when a tool needs them
    "TIRITH_ENABLED": "0",  # hermes downloads this guard before its first command
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `tox run -e matrix`, and one for machines that are known to have what some tests need."""
    parser.addoption("--all-rules", action="store_true", help="ask every rule about every mutant, instead of about a sample")
    parser.addoption(
        "--must-run",
        action="append",
        default=[],
        metavar="TEXT",
        help="fail a test that is skipped for a reason with this text, such as namespaces or bubblewrap",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that would be skipped although its machine is said to have what it needs."""
    report = yield
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if any(text in reason for text in item.config.getoption("must_run")):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} must run here (--must-run): {reason}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hide the user's variables and home directory before any test module imports hermes."""
    environment = contextlib.ExitStack()
    environment.enter_context(same_everywhere())
    config.add_cleanup(environment.close)


def pytest_collection_finish() -> None:
    """Take what is loaded by now out of garbage collection: contract runs and inner pytest runs collect once each."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def same_everywhere() -> Iterator[None]:
    """Take every variable away that could change a result, and set an empty home directory."""
    with (
        tempfile.TemporaryDirectory(prefix="tests-home-", ignore_cleanup_errors=True) as home,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name in set(os.environ) - visible(os.environ):
            patch.delenv(name)
        for name, value in (OFFLINE | {"HOME": home}).items():
            patch.setenv(name, value)
        yield


def visible(environ: Mapping[str, str]) -> set[str]:
    """Return the names of the variables that tests may see."""
    is_made_by_the_plugin = "pytest-hermes-home-" in environ.get("HERMES_HOME", "")  # when a conftest imported hermes
    kept = KEPT | ({"HERMES_HOME", "TERMINAL_HOME_MODE"} if is_made_by_the_plugin else frozenset())
    return {name for name in environ if name in kept or name.startswith(KEPT_PREFIXES)}
