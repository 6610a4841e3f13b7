"""Set-up that all tests share: an option, and an environment that is the same on everybody's machine."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import math
import os
import re
import runpy
import shlex
import ssl
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from hermes_env_shared import abandoned

if TYPE_CHECKING:
    from pytest_hermes_env.play.player_process import PlayerProcess

pytest_plugins = ["pytester"]

hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")
"""A busy machine makes an example slower, never wrong."""

KEPT = frozenset({
    "CI", "COLUMNS", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "LOGNAME", "NO_COLOR", "PATH", "TERM", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "HERMES_ENV_INSTALLED", "HERMES_ENV_SARIF_SCHEMA", "HERMES_OLDEST_PYTEST",
})  # fmt: skip
KEPT_PREFIXES = ("COV", "HYPOTHESIS_", "LC_", "PY", "TOX_")
"""Variables that tests may see. API keys, proxies, HERMES_HOME and the settings of any service are not among them."""

HIDDEN = frozenset({"PYTHONDONTWRITEBYTECODE"})
"""Set in many containers: each of some hundred new processes would compile the plugin again."""

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "WANDB_MODE": "disabled",
    "HERMES_DISABLE_LAZY_INSTALLS": "1",  # hermes installs packages and browsers when a tool needs them
    "TIRITH_ENABLED": "0",  # hermes downloads this guard before its first command
}

LOADED_BY_SUITES = (
    "atroposlib.api.server",
    "environments.terminal_test_env.terminal_test_env",  # loads atroposlib and hermes-agent
    "hypothesis.strategies",
    "jsonschema",
    "openai.resources",
    "pytest_hermes_env.atropos.trainer",
    "pytest_hermes_env.cassette.format",
    "pytest_hermes_env.cassette.open_cassette",
    "pytest_hermes_env.cassette.player",
    "pytest_hermes_env.cassette.recorder",
    "pytest_hermes_env.cassette.rollouts",
    "pytest_hermes_env.contract.run.decorator",
    "pytest_hermes_env.inference.transport",
    "pytest_hermes_env.inference.server_thread",
    "pytest_hermes_env.play.driver",
    "pytest_hermes_env.sandbox.context",
    "pytest_hermes_env.sandbox.fake",
    "pytest_hermes_env.sandbox.local",
    "pytest_hermes_env.strategies",
    "uvicorn.protocols.http.httptools_impl",
    "vcr",
)


WARM = Path(__file__).with_name("warm")
"""Programs and functions that spare new processes, and runs in this one, what was done before."""

inner_runs = itertools.count(1)

LIBRARIES = ("pytest", "atroposlib.envs.base", "openai.resources", "hypothesis.strategies", "requests", "websockets", "xdist")
"""What takes a new process seconds to import, without the layer, hermes-agent and the plugin."""

NOT_CONFINED = re.compile(r"cannot (be confined on this machine|confine the commands of a local sandbox)")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `tox run -e matrix`, and one for machines that are known to have what some tests need."""
    parser.addoption("--all-rules", action="store_true", help="try every mutant, cancellation and so on, instead of a sample")
    parser.addoption(
        "--must-run",
        action="append",
        default=[],
        metavar="TEXT",
        help="fail a test that is skipped for a reason with this text, such as namespaces or bubblewrap",
    )


def _is_confined() -> bool:
    from pytest_hermes_env.sandbox.confinement import available

    return available().is_in_force


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that real commands would need, on a machine that cannot confine them; fail one that is skipped though it must run."""
    report = yield
    if report.failed and NOT_CONFINED.search(report.longreprtext) and not _is_confined():
        path, line, _ = item.location
        report.outcome, report.longrepr = "skipped", (path, line, "Skipped: this machine gives no namespaces")
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


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load once what inner pytest runs load, and take it out of garbage collection: each of them collects once.

    After a run in this process, pytester removes every module from sys.modules that was not there before, and the next run would
    load it again: the openai client alone has 275.
    """
    if any("pytester" in getattr(item, "fixturenames", ()) or "contract" in item.path.parts for item in session.items):
        for name in LOADED_BY_SUITES:
            importlib.import_module(name)
        runpy.run_path(str(WARM / "distributions.py"))["read_once"]()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Take what inner runs have loaded meanwhile out of garbage collection, too, after each twenty of them."""
    ran = yield
    if "pytester" in getattr(item, "fixturenames", ()) and next(inner_runs) % 20 == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # as at the end of each inner run
            gc.collect()
        gc.freeze()
    return ran


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
        # each client of a test would read all certificate authorities, which takes longer than most tests
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        patch.setattr(abandoned, "INLINE_S", math.inf)  # on a busy machine, a thread would still remove what a test looks for
        yield


def visible(environ: Mapping[str, str]) -> set[str]:
    """Return the names of the variables that tests may see."""
    is_made_by_the_plugin = "pytest-hermes-home-" in environ.get("HERMES_HOME", "")  # when a conftest imported hermes
    kept = KEPT | ({"HERMES_HOME", "TERMINAL_HOME_MODE"} if is_made_by_the_plugin else frozenset())
    return {name for name in environ if name not in HIDDEN and (name in kept or name.startswith(KEPT_PREFIXES))}


@pytest.fixture(scope="session")
def start_warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """``start_warm_python(*modules, **variables)``: start a process that has imported modules; return a Python that forks it."""
    with contextlib.ExitStack() as started:

        def start(*modules: str, **variables: str) -> str:
            directory = tmp_path_factory.mktemp("warm")
            short = started.enter_context(tempfile.TemporaryDirectory(prefix="warm-"))
            where = f"{short}/socket"  # which may have 108 characters
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
            words = [sys.executable, str(WARM / "server.py"), where, *modules]
            server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, cwd=directory)
            started.callback(server.communicate)
            started.callback(server.terminate)
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            python = directory / "python"
            client = shlex.join([sys.executable, "-ISB", str(WARM / "client.py"), where])
            python.write_text(f'#!/bin/sh\nexec {client} "$@"\n', encoding="utf-8")
            python.chmod(0o755)
            return str(python)

        yield start


@pytest.fixture(scope="session")
def python_with_libraries(start_warm_python: Callable[..., str]) -> str:
    """A Python that begins with the libraries imported, but nothing of ours or of hermes-agent."""
    return start_warm_python(*LIBRARIES)


@pytest.fixture
def warm_python(python_with_libraries: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use a Python with imported libraries wherever the test starts ``sys.executable``."""
    monkeypatch.setattr(sys, "executable", python_with_libraries)
    return python_with_libraries


@pytest.fixture
def two_workers(warm_python: str) -> tuple[str, ...]:
    """The options ``-n 2`` of a run in another process, with such a Python."""
    return ("--dist", "load", "--tx", f"2*popen//python={warm_python}")


@pytest.fixture(scope="session")
def kept_player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayerProcess]:
    """A process that plays, with a hermes home that lives as long: each contract run would start one and import for seconds."""
    from pytest_hermes_env.play.player_process import PlayerProcess

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERMES_HOME", str(tmp_path_factory.mktemp("hermes-home")))
        player = PlayerProcess()
    with player:
        yield player


@pytest.fixture
def one_player(pytester: pytest.Pytester, kept_player: PlayerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the runs of ``pytester`` in this process play in one process."""
    monkeypatch.setattr(pytester, "inline_run", functools.partial(pytester.inline_run, plugins=[kept_player]))
