"""The hooks of ``--hermes-record``: open the cassettes of marked tests, write recordings of tests that passed, count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from pytest_hermes_env.errors import BadCassette, shorten
from pytest_hermes_env.plugin.plain_failure import fail_plainly

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.open_cassette import PassedRecording

MARKER, FIXTURE = "hermes_cassette", "recorded_server"
OPENS_CASSETTE = "_hermes_cassette"
Mode = Literal["none", "once", "new_episodes", "rewrite"]
MODES = ("none", "once", "new_episodes", "rewrite")
PROPERTY = "hermes_env_cassette"
"""The user property by which an xdist worker reports what happened to a cassette."""

PASSED: pytest.StashKey[bool] = pytest.StashKey()
RECORDED: pytest.StashKey[PassedRecording] = pytest.StashKey()
NOT_WRITTEN = "not written, since the test did not pass"


class CassetteMode:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the mode. Raises: pytest.UsageError."""
        self._counts: Counter[str] = Counter()
        self.mode = mode_of(config)

    def pytest_report_header(self) -> list[str]:
        """Name the mode, unless it never records."""
        return [] if self.mode == "none" else [f"cassettes: --hermes-record={self.mode}"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Open the cassette of a test that has one before its first function-scoped fixture, as an autouse fixture would."""
        if isinstance(item, pytest.Function) and has_cassette(item):
            definitions = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - private: pytest has no other way to the scopes
            wider = [name for name in item.fixturenames if name in definitions and definitions[name][-1].scope != "function"]
            item.fixturenames = [*wider, OPENS_CASSETTE, *(name for name in item.fixturenames if name not in wider)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember whether the test passed: only then its recording is written."""
        report = yield
        if call.when == "call":
            item.stash[PASSED] = report.passed
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write the recording of a test after all its fixtures are torn down: a failing teardown fails the test."""
        __tracebackhide__ = True
        has_torn_down = False
        try:
            result = yield
            has_torn_down = True
        finally:
            recorded = item.stash.get(RECORDED, None)
            if recorded is not None:
                del item.stash[RECORDED]
                with recorded.lock:
                    error = _write(recorded) if has_torn_down else NOT_WRITTEN
                item.user_properties.append((PROPERTY, "recorded" if not error else NOT_WRITTEN))
                if error and has_torn_down:
                    fail_plainly(error)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what happened to cassettes, in xdist's workers too."""
        if report.when == "teardown":
            self._counts.update(str(value) for name, value in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print how many cassettes were replayed and recorded."""
        if self._counts:
            parts = ", ".join(f"{count} {what}" for what, count in sorted(self._counts.items()))
            terminalreporter.write_line(f"cassettes: {parts} (--hermes-record={self.mode})")


def mode_of(config: pytest.Config) -> Mode:
    """Return the record mode: the flag's, else the ini value's, else ``none``. Raises: pytest.UsageError."""
    mode = config.getoption("hermes_record") or str(config.getini("hermes_record")).strip() or "none"
    if mode not in MODES:
        raise pytest.UsageError(f"the ini value hermes_record must be one of {', '.join(MODES)}, not {shorten(mode)!r}")
    return cast("Mode", mode)


def has_cassette(item: pytest.Item) -> bool:
    """Tell whether a test has a cassette: by the marker, or by the fixture alone."""
    return item.get_closest_marker(MARKER) is not None or FIXTURE in getattr(item, "fixturenames", ())


def is_recorded(item: pytest.Item) -> bool:
    """Tell whether this run may record a test's cassette: then the test uses the real server, even if it is not marked hermes_live."""
    return has_cassette(item) and mode_of(item.config) != "none"


def _write(recorded: PassedRecording) -> str:
    """Write a recording. Return the error's text, empty if it was written."""
    from pytest_hermes_env.cassette.format import save_tape  # noqa: PLC0415 - only where it is used

    try:
        save_tape(recorded.path, recorded.tape, recorded.redactor)
    except BadCassette as error:
        return f"{type(error).__name__}: {error}"
    return ""
