"""``--hermes-live``: the hooks that let marked tests run on a real inference server, and keep all others from the network.

Place in the flow: `plugin` registers `LiveMode` in every run. It chooses the server and asks whether it is there before any test,
skips marked tests where there is none, tells ``make_env`` what to build on, guards the tests that use this plugin, and reports
what was spent.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.live.report import comparison, spent_line, spent_table, turn_line
from pytest_hermes_env.live.settings import (
    allowed_hosts,
    idle_flags,
    is_fine_on_mock,
    is_recorded,
    may_fail,
    read_limits,
    setting,
)

if TYPE_CHECKING:
    from pytest_hermes_env.live.access import LiveAccess
    from pytest_hermes_env.live.limits import Spending
    from pytest_hermes_env.live.metering import Progress
    from pytest_hermes_env.live.network_guard import NetworkGuard
    from pytest_hermes_env.live.prices import Price
    from pytest_hermes_env.live.providers import LiveServer

__all__ = ["MARKER", "LiveMode", "live_access", "live_server"]

MARKER = "hermes_live"
NAME = "hermes-env-live"
PROBES = "--hermes-compare"
NOT_LIVE = "needs a real inference server: run with --hermes-live --provider ..."
FIXTURES = frozenset(
    {
        "agent_result",
        "fake_sandbox",
        "hermes_rule",
        "hermes_tokenizer",
        "local_sandbox",
        "make_env",
        "mock_server",
        "recorded_server",
        "tool_context",
        "tool_journal",
    }
)
"""Whose tests are kept from the network."""

SERVER: pytest.StashKey[LiveServer] = pytest.StashKey()
GUARD: pytest.StashKey[NetworkGuard] = pytest.StashKey()
ACCESS: pytest.StashKey[LiveAccess] = pytest.StashKey()
COUNTING: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()


def live_server(config: pytest.Config) -> LiveServer | None:
    """Return the real server that this run asks; None without ``--hermes-live``."""
    return config.stash.get(SERVER, None)


def live_access(item: pytest.Item) -> LiveAccess | None:
    """Return the real server with a meter for this test: only when run live, in marked tests and in those that are recorded."""
    mark = item.get_closest_marker(MARKER)
    mode: Any = item.config.pluginmanager.get_plugin(NAME)
    if (mark is None and not is_recorded(item)) or not isinstance(mode, LiveMode) or mode.spending is None:
        return None
    if ACCESS not in item.stash:
        has_mock = mark is not None and is_fine_on_mock(mark)
        item.stash[ACCESS] = mode.access(
            item.nodeid, has_mock=has_mock, is_default=mark is not None, asks_cost=not is_recorded(item)
        )
    return item.stash[ACCESS]


class LiveMode:
    """The hooks of one run. ``spending`` is None without ``--hermes-live``."""

    def __init__(self, config: pytest.Config) -> None:
        """Choose the server, and ask whether it is there. Raises: pytest.UsageError."""
        self.spending: Spending | None = None
        self._config = config
        self._directory = ""
        self._remark = ""
        self._prices: dict[str, Price] = {}
        if config.getoption("hermes_live"):
            try:
                self._begin()
            except HermesEnvError as error:
                raise pytest.UsageError(f"{type(error).__name__}: {error}") from None
        elif config.getoption("hermes_compare"):
            raise pytest.UsageError("--hermes-compare compares with a real server: add --hermes-live --provider ...")

    def _begin(self) -> None:
        from pytest_hermes_env.live.limits import Spending  # noqa: PLC0415 - only where it is used

        told: dict[str, str] | None = getattr(self._config, "workerinput", {}).get("hermes_live")
        server = self._chosen(told or {})
        limits, self._prices = read_limits(self._config, server)
        if told is not None:
            directory = told["directory"]
        elif self._config.option.collectonly:
            directory = self._directory = tempfile.mkdtemp(prefix="pytest-hermes-live-")
        else:
            from pytest_hermes_env.live.preflight import preflight  # noqa: PLC0415 - httpx takes 100 ms

            is_unlisted_fine = self._config.getoption("hermes_unlisted_model")
            server, self._remark = preflight(server, accepts_unlisted=is_unlisted_fine)
            directory = self._directory = tempfile.mkdtemp(prefix="pytest-hermes-live-")
        self.spending = Spending(Path(directory, "calls.sqlite"), limits)
        self._config.stash[SERVER] = server

    def _chosen(self, told: dict[str, str]) -> LiveServer:
        from pytest_hermes_env.live.providers import choose_server  # noqa: PLC0415

        return choose_server(
            provider=setting(self._config, "provider"),
            model=told.get("model") or setting(self._config, "model"),
            base_url=setting(self._config, "base_url"),
            key_name=setting(self._config, "api_key_env"),
            tokenizer=told.get("tokenizer") or setting(self._config, "tokenizer"),
            environ=os.environ,
        )

    def access(self, test: str, *, has_mock: bool = False, is_default: bool = True, asks_cost: bool = True) -> LiveAccess:
        """Return the real server with a meter that counts for ``test``.

        ``asks_cost`` lets requests to OpenRouter ask for the cost, which its older API wants and a cassette should not hold.

        Raises: not live → AssertionError.
        """
        from pytest_hermes_env.live.access import LiveAccess  # noqa: PLC0415
        from pytest_hermes_env.live.metering import Meter  # noqa: PLC0415

        server = live_server(self._config)
        if server is None or self.spending is None:
            raise AssertionError("asked for only when live")
        meter = Meter(
            spending=self.spending,
            test=test,
            price=self._prices.get(server.model),
            prices=self._prices,
            extra={"usage": {"include": True}} if asks_cost and server.provider == "openrouter" else {},
            tell=self._show,
            is_compared=self._config.getoption("hermes_compare") and test != PROBES,
        )
        return LiveAccess(server=server, meter=meter, has_mock=has_mock, is_default=is_default)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Ask the probes of a comparison, unless the run was aborted."""
        is_asked = self._config.getoption("hermes_compare") and not self._config.option.collectonly
        is_whole = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}
        if is_asked and is_whole and not hasattr(self._config, "workerinput"):
            import asyncio  # noqa: PLC0415 - only where it is used

            from pytest_hermes_env.live.access import probe  # noqa: PLC0415

            asyncio.run(probe(self.access(PROBES)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker what was found, and where calls are counted; the key it has from its environment."""
        server = live_server(self._config)
        if server is not None and self.spending is not None:
            directory = str(self.spending.path.parent)
            node.workerinput["hermes_live"] = {"model": server.model, "tokenizer": server.tokenizer, "directory": directory}

    def pytest_unconfigure(self) -> None:
        """Remove the counts."""
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Name the server."""
        server = live_server(config)
        remark = f"; {self._remark}" if self._remark else ""
        return [] if server is None else [f"live: {server.describe()}{remark}"]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests that need a real server, where there is none. Raises: wrong marker arguments → pytest.UsageError."""
        for item in items:
            mark = item.get_closest_marker(MARKER)
            is_played = item.get_closest_marker("hermes_cassette") is not None
            if mark is not None and not is_fine_on_mock(mark) and not is_played and live_server(self._config) is None:
                item.add_marker(pytest.mark.skip(reason=NOT_LIVE))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard a test that uses this plugin from here on."""
        if _uses_this_plugin(item):
            item.stash[GUARD] = self._guard_of(item)
        access = live_access(item)
        if access is not None:
            from pytest_hermes_env.live.own_clients import counting_own_clients  # noqa: PLC0415 - aiohttp is heavy

            counting = item.stash[COUNTING] = contextlib.ExitStack()
            counting.enter_context(counting_own_clients(access.meter, access.server.base_url))
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard the test."""
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Guard the teardown; then say what was spent, and fail a test that reached for the network, once more."""
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
        for verify in _verifications(item):
            try:
                verify()
            except HermesEnvError as error:
                texts.append(f"{type(error).__name__}: {error}")
        if texts:
            pytest.fail("\n\n".join(texts), pytrace=False)
        return result

    def _guarded(self, item: pytest.Item) -> Generator[None, object, object]:
        __tracebackhide__ = True
        if GUARD not in item.stash:
            return (yield)
        from pytest_hermes_env.atropos.dataset_hub import hub_offline  # noqa: PLC0415

        guard = item.stash[GUARD]
        with guard, hub_offline() if guard.is_closed else contextlib.nullcontext():
            return (yield)

    def _guard_of(self, item: pytest.Item) -> NetworkGuard:
        from pytest_hermes_env.live.network_guard import NetworkGuard  # noqa: PLC0415

        allowed, server = allowed_hosts(item), live_server(self._config)
        is_live = server is not None and (item.get_closest_marker(MARKER) is not None or is_recorded(item))
        if is_live and server is not None:
            allowed |= server.hosts()
        return NetworkGuard(test=item.nodeid, allowed=allowed, is_live=is_live)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take the key out of what a failed test shows."""
        report = yield
        server = live_server(self._config)
        if server is not None and server.key:
            report.sections = [(name, server.without_key(text)) for name, text in report.sections]
            text = report.longreprtext
            if server.without_key(text) != text:
                report.longrepr = server.without_key(text)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With ``-v``, say after a test what it spent."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.when == "teardown" and reporter is not None and self._config.get_verbosity() > 0:
            for name, value in report.user_properties:
                if name == "hermes_live_spent":
                    reporter.ensure_newline()
                    reporter.write_line(spent_line(str(value)))

    def _show(self, progress: Progress) -> None:
        """Show one answered call while its rollout runs, where somebody looks on; a worker of xdist does so on its stderr."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if threading.current_thread() is not threading.main_thread():
            return  # capturing belongs to the test's own thread
        worker: str = getattr(self._config, "workerinput", {}).get("workerid", "")
        if worker and self._config.get_verbosity() > 0:
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"[{worker}]{turn_line(progress)}\n")
                sys.stderr.flush()
            return
        if reporter is None or worker:
            return
        if self._config.get_verbosity() > 0 or (reporter.isatty and self._config.get_verbosity() == 0):
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(turn_line(progress))
                reporter.flush()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what was spent, also when the run was aborted."""
        server = live_server(self._config)
        idle = idle_flags(self._config)
        if idle:
            terminalreporter.write_line(f"no model was asked: without --hermes-live, {', '.join(idle)} mean nothing")
        if server is None or self.spending is None or hasattr(self._config, "workerinput"):
            return
        terminalreporter.write_sep("=", "live inference")
        for line in spent_table(server, self.spending):
            terminalreporter.write_line(line)
        if self._config.getoption("hermes_compare"):
            terminalreporter.write_sep("=", "the mock model beside the real one")
            for line in comparison(self.spending):
                terminalreporter.write_line(line)


def _verifications(item: pytest.Item) -> Iterator[Callable[[], None]]:
    """Give what fails a test once more at its end, since environments swallow what their servers and the network raise."""
    if GUARD in item.stash:
        yield item.stash[GUARD].verify
    if ACCESS in item.stash:
        yield item.stash[ACCESS].meter.verify
        mark = item.get_closest_marker(MARKER)
        if mark is not None and not may_fail(mark) and not item.stash[ACCESS].meter.refused:
            yield item.stash[ACCESS].meter.verify_answered


def _uses_this_plugin(item: pytest.Item) -> bool:
    """Tell whether a test has a fixture or a marker of this plugin, or judges a rule."""
    return (
        hasattr(item, "check")
        or not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
        or any(mark.name.startswith("hermes_") for mark in item.iter_markers())
    )
