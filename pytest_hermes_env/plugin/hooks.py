"""The hooks: options, hermes' home, the contract run and its reports. Live mode and cassettes have hooks of their own."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import sys
import warnings
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.contract.run.rows import RowKeeper
from pytest_hermes_env.live.settings import idle_flags
from pytest_hermes_env.options import FLAGS, INI_VALUES, MARKERS, requires_confinement
from pytest_hermes_env.play.hermes_home import touched_variables
from pytest_hermes_env.plugin.cassette_hooks import CassetteMode
from pytest_hermes_env.plugin.early_refusal import refuse_wrong_options
from pytest_hermes_env.plugin.live_hooks import LiveMode
from pytest_hermes_env.plugin.plain_failure import CauseFirst
from pytest_hermes_env.plugin.redacted_reports import RedactedReports
from pytest_hermes_env.plugin.run_state import RUN_ID, contract_of, explain_leftovers, home_of
from pytest_hermes_env.plugin.tool_answers import SANDBOXES
from pytest_hermes_env.plugin.usage import has_hermes, imports_hermes, judges_a_rule, uses_hermes, uses_plugin
from pytest_hermes_env.versions import installed_versions

if TYPE_CHECKING:
    from pytest_hermes_env.contract.ledger.account import Account

ROWS = pytest.StashKey[RowKeeper]()
ENDED = pytest.StashKey[tuple["Account", list[str]]]()
"""The account of the run, once it has ended, and further lines for the summary."""
CRASHES = pytest.StashKey[list[str]]()
"""Mistakes of this package at the end of the run."""
LIVE, LEDGER_ROWS, CASSETTES, REDACTION = "hermes-env-live", "hermes-env-rows", "hermes-env-cassettes", "hermes-env-redaction"
CAUSES = "hermes-env-causes"
"""The names of the plugins with further hooks."""
REPORTS = ("hermes_report_json", "hermes_sarif", "hermes_html")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and ini values of `options`."""
    group = parser.getgroup("hermes-env", "Hermes Agent RL environments")
    for flag in FLAGS:
        try:
            group.addoption(flag.name, *filter(None, [flag.also]), help=flag.help, **flag.settings)
        except (ValueError, argparse.ArgumentError):  # another plugin already has the second name
            group.addoption(flag.name, help=flag.help, **flag.settings)
    for name, text in INI_VALUES.items():
        parser.addini(name, help=text, default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse wrong options, and prepare hermes' home, before a conftest imports hermes."""
    if base := early_config.known_args_namespace.hermes_base or early_config.getini("hermes_base"):
        os.environ["HERMES_ENV_BASE"] = base  # the source is read, and a second process is started, where there is no config
        early_config.add_cleanup(functools.partial(os.environ.__delitem__, "HERMES_ENV_BASE"))
    refuse_wrong_options(early_config)
    if early_config.known_args_namespace.hermes_env:  # before a conftest imports datasets, which reads it once
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # an unreachable dataset costs half a minute of retries per class
    home_of(early_config)
    explain_leftovers(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers and the hooks of live mode, cassettes and ledger rows, and prepare a contract run."""
    home = home_of(config)
    if config.getoption("hermes_home") or config.getini("hermes_home") or has_hermes():
        home.enter()
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(LiveMode(config), LIVE)
    config.stash[ROWS] = RowKeeper()
    config.pluginmanager.register(config.stash[ROWS], LEDGER_ROWS)
    config.pluginmanager.register(CassetteMode(config), CASSETTES)
    config.pluginmanager.register(CauseFirst(), CAUSES)
    config.pluginmanager.register(RedactedReports(config), REDACTION)
    if config.getoption("hermes_env") or config.getoption("hermes_judge"):
        home.enter()
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Note the id of a run of pytest-xdist, under which its workers keep what they have played."""
    node.config.stash[RUN_ID] = node.workerinput["testrunuid"]


def pytest_report_header(config: pytest.Config) -> str:
    """Name the versions that a result depends on."""
    versions = (f"{name} {version}" for name, version in installed_versions().items())
    return f"{', '.join(versions)}; HERMES_HOME {home_of(config).describe()}"


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Print what confines commands if a test of the run uses the real terminal, or if nothing needs to."""
    used = {name for item in items for name in getattr(item, "fixturenames", ())}
    is_contract = any(map(judges_a_rule, items))
    is_local = "local_sandbox" in used or (is_contract and config.getoption("hermes_sandbox") == "local")
    is_required = requires_confinement(config)
    is_open = not is_required and (is_contract or not used.isdisjoint(SANDBOXES))
    if not is_local and not is_open:
        return []
    from pytest_hermes_env.sandbox.confinement import available  # noqa: PLC0415

    found = available()
    if is_required and not found.is_in_force:
        return [f"local sandbox: not started, since this machine cannot confine it ({found.reason})"]
    return [found.describe()] if is_local or not found.is_in_force else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add one item per rule for every class that ``--hermes-env`` names."""
    before = len(items)
    if config.getoption("hermes_keep_gold"):
        if not (config.getoption("hermes_live") and config.getoption("hermes_env")):
            raise pytest.UsageError(
                "--hermes-keep-gold needs --hermes-live, --provider and --hermes-env: a model tries that environment"
            )
        from pytest_hermes_env.plugin import keep_gold  # noqa: PLC0415 - only in such a run

        items[:0] = keep_gold.items_of(session)
    if config.getoption("hermes_env"):
        _ignore_what_hermes_leaves_open()
        items.extend(contract_of(config).items_of_targets(session))
    if config.getoption("hermes_judge"):
        items.extend(contract_of(config).items_of_evidence(session))
    if len(items) > before:  # "collected N items" counts those of reports
        report = pytest.CollectReport(nodeid="", outcome="passed", longrepr=None, result=[*items[before:]])
        config.hook.pytest_collectreport(report=report)
    if words := config.getoption("hermes_rules"):
        dropped = contract_of(config).items_of_other_rules(items, words)
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Drop the further hooks of each test if no test of the run uses this plugin; take hermes out of garbage collection."""
    if has_hermes() and not gc.get_freeze_count():
        gc.freeze()  # each full collection, several in a run, would look at a million objects of modules that stay loaded
    config = session.config
    is_used = any(map(uses_plugin, session.items))
    if is_used and "hypothesis.configuration" in sys.modules:
        _keep_hypothesis_in_the_cache(session)
    if session.items and not config.getoption("hermes_live") and not is_used:
        for name in (LEDGER_ROWS, CASSETTES, REDACTION, CAUSES, *([] if idle_flags(config) else [LIVE])):
            config.pluginmanager.unregister(name=name)


def _keep_hypothesis_in_the_cache(session: pytest.Session) -> None:
    """Let check_reward leave no directory of hypothesis, unless the project has tests of hypothesis, whose examples it keeps there."""
    cache = getattr(session.config, "cache", None)
    if cache is None or any(hasattr(getattr(item, "obj", None), "hypothesis") for item in session.items):
        return
    from hypothesis.configuration import set_hypothesis_home_dir  # noqa: PLC0415 - it is loaded

    set_hypothesis_home_dir(cache.mkdir("hypothesis"))
    session.config.add_cleanup(functools.partial(set_hypothesis_home_dir, None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Enter hermes' home for a test that uses this plugin, and restore the variables that the test's environment may set.

    A test that uses neither this plugin nor hermes costs a look at its fixtures and markers, and does not see the variables.
    """
    home = home_of(item.config)
    is_for_this_test = not home.is_entered and uses_plugin(item)
    if is_for_this_test or (home.was_entered and imports_hermes(item)):
        home.enter()
    before = touched_variables() if home.is_entered else None
    if uses_hermes(item):
        _ignore_what_hermes_leaves_open()
    result = yield
    if home.is_entered:
        home.restore(before)
    if is_for_this_test:
        home.step_out()
    return result


def _ignore_what_hermes_leaves_open() -> None:
    """Let hermes run without a warning that would fail a test under ``-W error``.

    hermes 0.19 leaves the output pipes of its subprocesses and, which Python 3.13 reports, connections of sqlite to the garbage
    collector. May go when it closes them.
    """
    pattern = r"unclosed (file <_io\.\w+ name=\d+ |database in <sqlite3\.Connection )"
    warnings.filterwarnings("ignore", pattern, ResourceWarning)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports of a contract run, and fail it if it proves nothing."""
    config = session.config
    if (file := config.getoption("hermes_evidence")) and not hasattr(config, "workerinput"):
        contract_of(config).keep_evidence(os.path.join(config.invocation_params.dir, file))
    if ROWS in config.stash and not hasattr(config, "workerinput"):
        with _crashes_in_lines(session):
            _end_contract(session, config.stash[ROWS])
    if has_hermes():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # hermes' pipes, see _ignore_what_hermes_leaves_open


def _end_contract(session: pytest.Session, rows: RowKeeper) -> None:
    config = session.config
    if not rows.rows and not any(map(config.getoption, REPORTS)):
        return
    from pytest_hermes_env.contract.run.run_end import finish  # noqa: PLC0415

    account, notes = finish(session, rows.rows.values(), rows.seconds)
    notes += contract_of(config).notes
    config.stash[ENDED] = account, notes
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        here, root = config.invocation_params.dir, config.rootpath
        below_root = here.relative_to(root).as_posix() if here.is_relative_to(root) else None
        rows.most_severe_first(reporter.stats.get("failed", []), below_root)


@contextlib.contextmanager
def _crashes_in_lines(session: Any) -> Iterator[None]:
    """Let a mistake of this package at the end of a run be three lines, which leave all other results on the screen."""
    try:
        yield
    except Exception as error:
        if session.config.option.fulltrace:
            raise
        from pytest_hermes_env.contract.run.session import own_mistake  # noqa: PLC0415

        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        session.config.stash.setdefault(CRASHES, []).append(own_mistake("the contract run could not be summed up", error))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the ledger of every contract run."""
    if ENDED in config.stash:
        from pytest_hermes_env.contract.run.run_end import summary  # noqa: PLC0415

        with _crashes_in_lines(config.pluginmanager.getplugin("session")):
            summary(terminalreporter, *config.stash[ENDED])
    for text in config.stash.get(CRASHES, []):
        terminalreporter.write_line(f"hermes-env: error: {text}")
