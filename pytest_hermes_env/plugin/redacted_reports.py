"""Keeps secrets and control characters out of what pytest reports about the tests that use this plugin.

Terminal, JUnit and HTML files, and xdist's controller read a test's report, its warnings and its id. All three are cleaned here,
before anybody else sees them. So is what pytest writes on the terminal by other ways, and what its log handlers write: ``-s`` alone
shows what a program prints as it comes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest

from pytest_hermes_env.plugin.usage import uses_plugin

_OF_PYTEST = "_pytest."
_IDENTITY = frozenset({"nodeid", "location", "outcome", "when", "duration", "start", "stop", "keywords"})
"""What a report says of its test: its name was cleaned before."""
_SHORTEST = 8
"""Characters of the shortest secret."""
Clean = Callable[[str], str]


class RedactedReports:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._renamed: Counter[str] = Counter()

    @functools.cached_property
    def _ids(self) -> Clean:
        """Redacts ids with numbers of their own: xdist's workers must collect the same ids."""
        from pytest_hermes_env.redaction.redactor import TextRedactor  # noqa: PLC0415
        from pytest_hermes_env.redaction.shown_text import environment_redactor, printable  # noqa: PLC0415

        redactor = TextRedactor(known=environment_redactor().known)
        return lambda text: printable(redactor.text(text))

    def _clean(self, text: str) -> str:
        from pytest_hermes_env.redaction.shown_text import printable  # noqa: PLC0415

        return printable(self._redacted(text), has_colour=True)

    def _redacted(self, text: str) -> str:
        from pytest_hermes_env.plugin.live_hooks import live_server  # noqa: PLC0415
        from pytest_hermes_env.redaction.shown_text import environment_redactor  # noqa: PLC0415

        server = live_server(self._config)
        also = {server.key_name: server.key} if server is not None and server.key else {}
        return environment_redactor(also).text(text)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_generate_tests(self, metafunc: Any) -> Generator[None, None, None]:
        """Clean the ids of parameters, of which pytest makes the names of tests. There is no hook for them.

        Source: pytest 8.3 to 9.2, ``Metafunc._calls`` and ``CallSpec2._idlist``, which are private; where they differ, a warning says so.
        """
        yield
        if not uses_plugin(metafunc.definition):
            return
        try:
            metafunc._calls = [self._without_secrets(call) for call in metafunc._calls]  # noqa: SLF001
        except (AttributeError, TypeError) as error:
            text = f"secrets in the ids of parameters are shown: pytest {pytest.__version__} keeps ids elsewhere ({error})"
            warnings.warn(pytest.PytestWarning(f"{text}. Update pytest-hermes-env, or give ids without secrets"), stacklevel=1)

    def _without_secrets(self, call: Any) -> Any:
        ids = [self._ids(part) for part in call._idlist]  # noqa: SLF001
        if ids == list(call._idlist):  # noqa: SLF001
            return call
        name = "-".join(ids)
        self._renamed[name] += 1
        if self._renamed[name] > 1:  # several forms of one secret
            ids[-1] += f"-{self._renamed[name]}"
        return dataclasses.replace(call, _idlist=ids)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Clean the report of one phase of a test."""
        report = yield
        if uses_plugin(item):
            clean = functools.cache(self._clean)
            report.keywords = {clean(name): 1 for name in report.keywords}
            _clean_report(report, clean)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Clean the report of a file that cannot be collected."""
        report = yield
        if report.outcome == "failed":
            _clean_report(report, functools.cache(self._clean))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Clean what the terminal, the log files and JUnit's properties of the suite get past all reports of tests.

        Source: pytest 8.3 to 9.2, _pytest/setuponly.py, _pytest/junitxml.py and _pytest/logging.py.
        """
        is_controller = self._config.pluginmanager.has_plugin("dsession")  # pytest-xdist's, which has no items
        if not is_controller and not any(map(uses_plugin, session.items)):
            return
        from _pytest.junitxml import xml_key  # noqa: PLC0415 - only pytest's private module names the properties of the suite

        from pytest_hermes_env.patches import intercept  # noqa: PLC0415

        def write(real: Callable[..., None], message: str, **how: Any) -> None:
            real(message if len(message) < _SHORTEST else self._redacted(message), **how)

        def show(real: Callable[..., str], value: object, *args: Any, **how: Any) -> str:
            return real(self._redacted(value) if isinstance(value, str) else value, *args, **how)

        def add(real: Callable[..., None], name: str, value: object) -> None:
            real(self._clean(str(name)), self._clean(str(value)))

        until_the_end = contextlib.ExitStack()
        self._config.add_cleanup(until_the_end.close)
        until_the_end.enter_context(intercept("TerminalWriter.write", write, owner=self._config.get_terminal_writer()))
        if self._config.pluginmanager.has_plugin("setuponly"):
            until_the_end.enter_context(intercept("_pytest.setuponly.saferepr", show))
        if (xml := self._config.stash.get(xml_key, None)) is not None:
            until_the_end.enter_context(intercept("LogXML.add_global_property", add, owner=xml))
        logs = self._config.pluginmanager.get_plugin("logging-plugin")
        for name in ("log_file_handler", "log_cli_handler"):
            handler = getattr(logs, name, None)
            if isinstance(handler, logging.Handler) and handler.formatter is not None:
                handler.setFormatter(_CleanFormatter(handler.formatter, self._clean))

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Clean a warning of a test, of a module or of the run."""
        text = str(warning_message.message)
        if (shown := self._clean(text)) != text:
            warning_message.message = pytest.PytestWarning(shown)


class _CleanFormatter(logging.Formatter):
    """Cleans what another formatter makes of a record."""

    def __init__(self, inner: logging.Formatter, clean: Clean) -> None:
        super().__init__()
        self._inner = inner
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        return self._clean(self._inner.format(record))


def _clean_report(report: pytest.TestReport | pytest.CollectReport, clean: Clean) -> None:
    """Clean whatever a report has: pytest and plugins add attributes, such as ``wasxfail``."""
    for name, value in vars(report).items():
        if name not in _IDENTITY:
            vars(report)[name] = _cleaned(value, clean)


def _cleaned(value: Any, clean: Clean) -> Any:
    """Return a value of a report with all its texts cleaned; pytest's own objects, such as a traceback's, in place."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list) and value and all(isinstance(item, str) and "\n" not in item for item in value):
        return clean("\n".join(value)).split("\n")  # the lines of one text
    if isinstance(value, list | tuple):
        return type(value)(_cleaned(item, clean) for item in value)
    if isinstance(value, dict):
        return {_cleaned(key, clean): _cleaned(item, clean) for key, item in value.items()}
    if hasattr(value, "__dict__") and (type(value).__module__.startswith(_OF_PYTEST) or hasattr(value, "toterminal")):
        for name, item in vars(value).items():
            vars(value)[name] = _cleaned(item, clean)
    return value
