"""``--hermes-live``: the hooks that let marked tests run on a real inference server, and keep all other tests from the network.

Place in the flow: `hooks` registers `LiveMode` in every run. It starts the live run before any test, skips marked tests if there is
none, chooses the server for ``make_env``, guards the tests that use this plugin, and prints what was spent.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.live.report import spent_line, spent_table
from pytest_hermes_env.live.settings import allowed_hosts, check_names, claims_of, idle_flags
from pytest_hermes_env.plugin.cassette_hooks import is_recorded
from pytest_hermes_env.plugin.plain_failure import fail_plainly, verifications_of
from pytest_hermes_env.plugin.usage import uses_plugin

if TYPE_CHECKING:
    from pytest_hermes_env.live.live_run import LiveAccess, LiveRun
    from pytest_hermes_env.live.network_guard import NetworkGuard
    from pytest_hermes_env.live.providers import LiveServer

MARKER = "hermes_live"
NAME = "hermes-env-live"
NOT_LIVE = "needs a real inference server: run with --hermes-live --provider ..."

RUN: pytest.StashKey[LiveRun] = pytest.StashKey()
GUARD: pytest.StashKey[NetworkGuard] = pytest.StashKey()
ACCESS: pytest.StashKey[LiveAccess] = pytest.StashKey()
COUNTING: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()
KEPT: pytest.StashKey[tuple[Callable[[], None], ...]] = pytest.StashKey()
"""On an item whose test was called: what is verified at its end."""


def live_server(config: pytest.Config) -> LiveServer | None:
    """Return the real server of this run; None without ``--hermes-live``."""
    run = config.stash.get(RUN, None)
    return None if run is None else run.server


def live_access(item: pytest.Item) -> LiveAccess | None:
    """Return the real server with a meter for this test: only in a live run, for marked tests and for those that are recorded."""
    run = item.config.stash.get(RUN, None)
    if run is None:
        return None
    mark, records = item.get_closest_marker(MARKER), is_recorded(item)
    mode: LiveMode | None = item.config.pluginmanager.get_plugin(NAME)
    if mode is None or (mark is None and not records):
        return None
    if ACCESS not in item.stash:
        item.stash[ACCESS] = run.access(
            item.nodeid,
            report=mode.show_progress,
            has_mock=mark is not None and claims_of(mark, item)["or_mock"],
            is_default=mark is not None,
            requests_cost=not records,
        )
    return item.stash[ACCESS]


def reachable_hosts(item: pytest.Item) -> set[str]:
    """Return the hosts, in addition to this machine, that a test may reach: those it allows, and the real server if it runs live."""
    server = live_server(item.config)
    return allowed_hosts(item) | (server.hosts() if server is not None and _is_live(item) else set())


def _is_live(item: pytest.Item) -> bool:
    is_candidate = item.get_closest_marker(MARKER) is not None or is_recorded(item)
    return live_server(item.config) is not None and is_candidate


class LiveMode:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Start the live run with ``--hermes-live``. Raises: pytest.UsageError."""
        self._config = config
        if config.getoption("hermes_live"):
            from pytest_hermes_env.live.live_run import start_live_run  # noqa: PLC0415 - httpx takes 100 ms

            try:
                config.stash[RUN] = start_live_run(config)
            except HermesEnvError as error:
                raise pytest.UsageError(f"{type(error).__name__}: {error}") from None
            config.add_cleanup(config.stash[RUN].close)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send an xdist worker the server that was found and the directory of the counts."""
        if RUN in self._config.stash:
            node.workerinput["hermes_live"] = self._config.stash[RUN].worker_input()

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Name the server."""
        run = config.stash.get(RUN, None)
        return [] if run is None else [f"live: {run.server.describe()}" + (f"; {run.remark}" if run.remark else "")]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests that need a real server if there is none. Raises: wrong markers, or arguments of one → pytest.UsageError."""
        for item in items:
            check_names(item)
            allowed_hosts(item)
            if (leftovers := item.get_closest_marker("hermes_allow_leftovers")) and (leftovers.args or leftovers.kwargs):
                raise pytest.UsageError(f"@pytest.mark.hermes_allow_leftovers takes no arguments, at {item.nodeid}")
            mark = item.get_closest_marker(MARKER)
            is_played = item.get_closest_marker("hermes_cassette") is not None
            if (
                mark is not None
                and not claims_of(mark, item)["or_mock"]
                and not is_played
                and live_server(self._config) is None
            ):
                item.add_marker(pytest.mark.skip(reason=NOT_LIVE))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard a test that uses this plugin from here on."""
        if uses_plugin(item):
            from pytest_hermes_env.live.network_guard import NetworkGuard  # noqa: PLC0415

            item.stash[GUARD] = NetworkGuard(test=item.nodeid, allowed=reachable_hosts(item), is_live=_is_live(item))
        access = live_access(item)
        if access is not None:
            from pytest_hermes_env.live.counted_calls import counting_calls  # noqa: PLC0415 - aiohttp is heavy

            counting = item.stash[COUNTING] = contextlib.ExitStack()
            counting.enter_context(counting_calls(access.meter, access.server.base_url))
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard the test; a failed one shows what the guard and the meter kept as its cause."""
        kept = item.stash[KEPT] = tuple(_verifications(item))
        verifications_of(item).extend(kept)
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard the teardown; then report what was spent, and fail for what the guard and the meter kept, unless the test has shown it."""
        __tracebackhide__ = True
        try:
            result = yield from self._guarded(item)
        finally:
            if COUNTING in item.stash:
                item.stash[COUNTING].close()
            if ACCESS in item.stash:
                spent = item.stash[ACCESS].meter.spent()
                item.user_properties += [("hermes_live_calls", spent.calls), ("hermes_live_tokens", spent.tokens)]
                item.user_properties.append(("hermes_live_usd", spent.cost()))
                item.user_properties.append(("hermes_live_spent", spent.describe()))
        texts = []
        pending = verifications_of(item)
        told = [verify for verify in item.stash.get(KEPT, ()) if verify not in pending]
        for verify in [verify for verify in _verifications(item) if verify not in told]:
            try:
                verify()
            except HermesEnvError as error:
                texts.append(f"{type(error).__name__}: {error}")
        if texts:
            fail_plainly("\n\n".join(texts))
        return result

    def _guarded(self, item: pytest.Item) -> Generator[None, object, object]:
        __tracebackhide__ = True
        if GUARD not in item.stash:
            return (yield)
        from pytest_hermes_env.atropos.dataset_hub import hub_offline  # noqa: PLC0415

        guard = item.stash[GUARD]
        with guard, hub_offline() if guard.is_closed else contextlib.nullcontext():
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With ``-v``, print after a test what it spent."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.when == "teardown" and reporter is not None and self._config.get_verbosity() > 0:
            for name, value in report.user_properties:
                if name == "hermes_live_spent":
                    reporter.ensure_newline()
                    reporter.write_line(spent_line(str(value)))

    def show_progress(self, line: str) -> None:
        """Print the line of one call, answered or still waiting, while its rollout runs, if the output is a terminal or verbose; an xdist worker uses stderr."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if threading.current_thread() is not threading.main_thread():
            return  # capturing belongs to the test's own thread
        worker: str = getattr(self._config, "workerinput", {}).get("workerid", "")
        if worker and self._config.get_verbosity() > 0:
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"[{worker}]{line}\n")
                sys.stderr.flush()
            return
        if reporter is None or worker:
            return
        if self._config.get_verbosity() > 0 or (reporter.isatty and self._config.get_verbosity() == 0):
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(line)
                reporter.flush()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what was spent, also when the run was aborted."""
        idle = idle_flags(self._config)
        if idle:
            terminalreporter.write_line(f"no model was called: without --hermes-live, {', '.join(idle)} have no effect")
        run = self._config.stash.get(RUN, None)
        if run is None or hasattr(self._config, "workerinput"):
            return
        terminalreporter.write_sep("=", "live inference")
        for line in spent_table(run.server, run.spending):
            terminalreporter.write_line(line)


def _verifications(item: pytest.Item) -> Iterator[Callable[[], None]]:
    """Yield the checks at the end of a test: environments swallow the errors that their servers and the network raise."""
    if GUARD in item.stash:
        yield item.stash[GUARD].verify
    if ACCESS in item.stash:
        yield item.stash[ACCESS].meter.verify
        mark = item.get_closest_marker(MARKER)
        if mark is not None and not claims_of(mark, item)["may_fail"] and not item.stash[ACCESS].meter.refused:
            yield item.stash[ACCESS].meter.verify_answered
