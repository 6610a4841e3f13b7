"""Failures as plain text, the cause first: errors of this package hide the plugin's own frames, and are shown once.

Doubles keep what went wrong until the end of the test, since agent loops swallow exceptions. When the test fails by itself, what they
kept is shown above its own error, as the cause; only otherwise it fails the test at teardown.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from _pytest._code import filter_traceback

from pytest_hermes_env.errors import HermesEnvError, Leftovers
from pytest_hermes_env.failures import without_leftovers

PACKAGE = Path(__file__).parents[1]
VERIFICATIONS = pytest.StashKey[list[Callable[[], None]]]()
"""On an item: the verifications of its doubles, in the order of their fixtures."""
FAILED = pytest.StashKey[bool]()
CAUSE = pytest.StashKey[HermesEnvError]()
"""On an item whose test failed: what its doubles kept, which is shown above the error of the test."""


@contextlib.contextmanager
def errors_as_text() -> Iterator[None]:
    """Fail the test with an error's text instead of its traceback."""
    __tracebackhide__ = True
    try:
        yield
    except HermesEnvError as error:
        raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None


def fail_plainly(text: str) -> None:
    """Fail with a text alone. Not hidden: pytest adds a line about hidden frames where every frame is."""
    raise pytest.fail.Exception(text, pytrace=False)


def verifications_of(node: pytest.Item) -> list[Callable[[], None]]:
    """Return the verifications of a test that are pending. One that a failed test has shown is removed from the list."""
    return node.stash.setdefault(VERIFICATIONS, [])


@contextlib.contextmanager
def verifying(node: pytest.Item, verify: Callable[[], None]) -> Iterator[None]:
    """Verify a double at the end of the context, unless the test failed and has shown the problem, or it is one of leftovers."""
    __tracebackhide__ = True
    pending = verifications_of(node)
    pending.append(verify)
    yield
    has_told = verify not in pending  # the failed test has it as its cause
    if not has_told:
        pending.remove(verify)
        with errors_as_text():
            try:
                verify()
            except Leftovers:
                if not node.stash.get(FAILED, False):
                    raise


class CauseFirst:
    """The hooks that show what doubles kept above the error of a test that failed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin anew, also when a plugin runs a failed test again; let the layer log each cause anew, for the log of this test."""
        item.stash[VERIFICATIONS], item.stash[FAILED] = [], False
        if CAUSE in item.stash:
            del item.stash[CAUSE]
        if (log_once := sys.modules.get("environments.loop.log_once")) is not None:
            log_once.forget()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Make the first problem of a double the cause of the test's own error; an interrupted test has no problems."""
        __tracebackhide__ = True
        try:
            return (yield)
        except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
            item.stash.get(VERIFICATIONS, []).clear()
            raise
        except (Exception, pytest.fail.Exception) as error:
            item.stash[FAILED] = True
            cause = _first_problem(item.stash.get(VERIFICATIONS, []))
            if cause is not None and str(cause) not in str(error):
                item.stash[CAUSE] = cause
                _innermost(error).__cause__ = _shown(cause)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show an error of this package without the package's own source; a test with a cause in short, with the cause in the summary."""
        text = "" if item.config.option.fulltrace else _without_own_frames(call, item.config.rootpath)
        if call.when != "call" or CAUSE not in item.stash:
            report = yield
            report.longrepr = text or report.longrepr
            return report
        option, chosen = item.config.option, item.config.option.tbstyle
        option.tbstyle = "short" if chosen == "auto" else chosen
        try:
            report = yield
        finally:
            option.tbstyle = chosen
        cause = item.stash[CAUSE]
        if (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
            _, text = cause.parts[0] if cause.parts else (type(cause), str(cause))
            crash.message = f"{type(cause).__name__}: {text.partition(chr(10))[0].rstrip('.')}; then {crash.message}"
        return report


def _without_own_frames(call: pytest.CallInfo[None], root: Path) -> str:
    """Take this package's frames out of the traceback of its errors. Return the error's text if no frame is below ``root``."""
    if call.excinfo is None or not isinstance(call.excinfo.value, HermesEnvError):
        return ""
    entries = [entry for entry in call.excinfo.traceback if filter_traceback(entry) and PACKAGE not in Path(entry.path).parents]
    if not any(root in Path(entry.path).parents for entry in entries):
        return f"{type(call.excinfo.value).__name__}: {call.excinfo.value}"
    kept = {id(entry.frame.raw) for entry in entries}
    last, following = call.excinfo.tb, call.excinfo.tb.tb_next
    while following is not None:
        if id(following.tb_frame) in kept:
            last.tb_next = last = following
        following = following.tb_next
    last.tb_next = None
    return ""


def _shown(cause: HermesEnvError) -> HermesEnvError:
    """Return an error as pytest should show it: without a module and a traceback."""
    kind = type(type(cause).__name__, (HermesEnvError,), {"__module__": "builtins"})
    shown: HermesEnvError = kind(str(cause))
    return shown


def _first_problem(pending: list[Callable[[], None]]) -> HermesEnvError | None:
    """Return the problem of the first double that has one other than leftovers; its verification is no longer pending."""
    for verify in pending:
        try:
            verify()
        except HermesEnvError as error:
            if (problem := without_leftovers(error)) is not None:
                pending.remove(verify)
                return problem
    return None


def _innermost(error: BaseException) -> BaseException:
    """Return the error at the end of the chain of causes that pytest shows."""
    seen = {id(error)}
    while True:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is None or id(before) in seen:
            return error
        seen.add(id(before))
        error = before
