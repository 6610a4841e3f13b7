"""Failures as plain text, the cause first: errors of this package hide the plugin's own frames, and are shown once.

Doubles keep what went wrong until the end of the test, since agent loops swallow exceptions. When the test fails by itself, what they
kept is shown above its own error, as the cause; only otherwise it fails the test at teardown.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import unittest
from collections.abc import Callable, Collection, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest._code import filter_traceback
from _pytest._code.code import ReprFileLocation, TerminalRepr

from pytest_hermes_env.errors import ENDED, RAN, HermesEnvError, Leftovers
from pytest_hermes_env.plugin.usage import fixture_names, uses_plugin

PACKAGE = Path(__file__).parents[1]
ASYNCIO = Path(inspect.__file__).with_name("asyncio")
INSIDE = frozenset({PACKAGE, PACKAGE.parent / "environments", ASYNCIO})
"""Directories whose frames are left out between those of a project: of this distribution, and of the event loop."""
VERIFICATIONS = pytest.StashKey[list[Callable[[], None]]]()
"""On an item: the verifications of its doubles, in the order of their fixtures."""
FAILED = pytest.StashKey[bool]()
TOLD = pytest.StashKey[list[str]]()
"""On an item: what its doubles said at teardown. Another one that saw the same says nothing more."""
_OWN_ERRORS = re.compile(r"^(?:E +)?(?:\d+\. )?(CassetteMiss|ScriptError|Unexpected\w+): ", re.MULTILINE)
"""Errors that loops and hermes log, too, with tracebacks."""
_RECORD = re.compile(r"^(?=[A-Z]+ +\S+:\S+:\d+ )", re.MULTILINE)
LOG, GROUP_DROPPED = "Captured log", "A group is not trained"
_MISSING = re.compile(r"missing \d+ required positional arguments?: (.+)")
TEARDOWNS = "errors while tearing down"
"""How pytest begins the message of a group of errors."""
CAUSE = pytest.StashKey[HermesEnvError]()
"""On an item whose test failed: what its doubles kept, which is shown above the error of the test."""


@contextlib.contextmanager
def errors_as_text() -> Iterator[None]:
    """Fail the test with an error's text instead of its traceback."""
    __tracebackhide__ = True
    try:
        yield
    except HermesEnvError as error:
        failure = pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False)
        failure.is_ours = True  # type: ignore[attr-defined]
        raise failure from None


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
            except HermesEnvError as error:
                told = node.stash.setdefault(TOLD, [])
                is_told = any(
                    text.partition("\n")[0] in other for one in told for text, other in ((str(error), one), (one, str(error)))
                )
                if not is_told and not (isinstance(error, Leftovers) and node.stash.get(FAILED, False)):
                    told.append(str(error))
                    raise


class CauseFirst:
    """The hooks that show what doubles kept above the error of a test that failed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin anew, also when a plugin runs a failed test again; let the layer log each cause anew, for the log of this test."""
        item.stash[VERIFICATIONS], item.stash[FAILED], item.stash[TOLD] = [], False, []
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
            elif told := _asked_otherwise(item.stash.get(VERIFICATIONS, [])) or _survived(item.config.rootpath):
                error.add_note(told)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show an error of this package without the package's own source; a test with a cause in short, with the cause in the summary."""
        report = yield from self._reported(item, call)
        if report.failed and not item.config.option.fulltrace:
            told = frozenset(_OWN_ERRORS.findall(str(report.longrepr)))
            report.sections = [
                (name, _without_told(text, told) if name.startswith(LOG) else text) for name, text in report.sections
            ]
            report.sections = [(name, text) for name, text in report.sections if text or not name.startswith(LOG)]
        return report

    def _reported(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        excinfo = call.excinfo or next(
            iter(getattr(item, "_excinfo", None) or ()), None
        )  # a test of unittest keeps it to itself
        text, is_cut = ("", False) if item.config.option.fulltrace else _without_own_frames(excinfo, item)
        if not is_cut and (call.when != "call" or CAUSE not in item.stash):
            report = yield
            report.longrepr = _Text(text, item) if text else report.longrepr
            return report
        option, chosen = item.config.option, item.config.option.tbstyle
        option.tbstyle = "short" if chosen == "auto" else chosen
        try:
            report = yield
        finally:
            option.tbstyle = chosen
        cause = item.stash.get(CAUSE, None) if call.when == "call" else None
        if cause is not None and (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
            if option.verbose < 1:
                _shorten(report.longrepr)
            _, text = cause.parts[0] if cause.parts else (type(cause), str(cause))
            crash.message = f"{type(cause).__name__}: {text.partition(chr(10))[0].rstrip('.')}; then {crash.message}"
        return report

    def pytest_assertrepr_compare(self, left: object, right: object) -> list[str] | None:
        """Say that a test compares a coroutine where it means its result."""
        call = next((value for value in (left, right) if inspect.iscoroutine(value)), None)
        if call is None:
            return None
        way = "await the call, or in a test that is not async: asyncio.run(...) around it"
        return [f"{call.__qualname__} was not awaited: its coroutine was compared, not its result", f"fix  {way}"]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Show an error of this package that a module raises at its import as the module's line and the error's text."""
        report = yield
        excinfo = getattr(report, "call", None) and report.call.excinfo
        if excinfo and isinstance(excinfo.value, HermesEnvError) and not collector.config.option.fulltrace:
            root = collector.config.rootpath
            places = [
                f"{entry.path.relative_to(root)}:{entry.lineno + 1}: " for entry in excinfo.traceback if _is_users(entry, root)
            ]
            report.longrepr = f"{''.join(places[-1:])}{type(excinfo.value).__name__}: {excinfo.value}"
        return report


def _shorten(shown: Any) -> None:
    """Leave of a test's own error, below its cause, the line that raised and the first line of the text."""
    chain = getattr(shown, "chain", [])
    shown.chain = [*((trace, crash, None) for trace, crash, _ in chain[:-1]), *chain[-1:]]
    for entry in [*chain[-1][0].reprentries[-1:]] if chain else []:
        told = [number for number, line in enumerate(entry.lines) if line.startswith("E ")]
        del entry.lines[told[0] + 1 if told else len(entry.lines) :]


def _without_told(log: str, told: frozenset[str]) -> str:
    """Return captured log records without those that repeat an error which the report shows, or follow from it."""
    kept = [one for one in _RECORD.split(log) if not any(f"{name}: " in one for name in told)]
    return "".join(one for one in kept if not told or GROUP_DROPPED not in one).rstrip("\n")


def _is_below(entry: Any, places: Collection[Path]) -> bool:
    return not set(Path(entry.path).parents).isdisjoint(places)


def _is_users(entry: Any, root: Path) -> bool:
    is_ours = _is_below(entry, INSIDE if root not in PACKAGE.parents else {PACKAGE})
    return _is_below(entry, {root}) and not is_ours and "site-packages" not in Path(entry.path).parts


def _without_own_frames(excinfo: pytest.ExceptionInfo[BaseException] | None, item: pytest.Item) -> tuple[str, bool]:
    """Take out of a traceback this package's frames, and all that they called, and what stands between frames of the project.

    Return whether there were any to take; of an error of this package without a frame of the project return the text instead.
    """
    if excinfo is None:
        return "", False
    group = excinfo.value if isinstance(excinfo.value, BaseExceptionGroup) else None
    if group is not None and group.message.startswith(TEARDOWNS) and any(map(_is_plain, group.exceptions)):
        return "\n\n".join(map(_told, group.exceptions)), False
    error, is_ours, root = excinfo.value, isinstance(excinfo.value, HermesEnvError), item.config.rootpath
    entries = list(excinfo.traceback)
    last = max((number for number, entry in enumerate(entries) if _is_users(entry, root)), default=-1)
    if last < 0:
        is_told = is_ours or getattr(error, "is_ours", False)
        fix = "" if is_told else _fix_of_fixtures(error, item)
        text = str(error) if _is_plain(error) and not is_ours else f"{type(error).__name__}: {error}"
        return (f"{text}{fix}", False) if is_told or fix else ("", False)
    ends_in_loop = False
    calls_ours = any(_is_below(entry, {PACKAGE}) or "respx" in Path(entry.path).parts for entry in entries[last + 1 :])
    if not is_ours and uses_plugin(item) and (advice := _advice(error, entries[last])):
        error.add_note(f"fix  {advice}")
        ends_in_loop = last + 1 < len(entries) and all(_is_below(entry, {ASYNCIO}) for entry in entries[last + 1 :])
    first = next(number for number, entry in enumerate(entries) if _is_users(entry, root))
    between = {
        number
        for number, entry in enumerate(entries)
        if _is_below(entry, INSIDE if first < number < last and not _is_users(entry, root) else {PACKAGE})
    }
    if not (is_ours or calls_ours or ends_in_loop or any(number > first for number in between)):
        return "", False
    shown = [
        entry
        for number, entry in enumerate(entries[: last + 1] if calls_ours or ends_in_loop else entries)
        if number not in between
    ]
    kept = {id(entry.frame.raw) for entry in shown if filter_traceback(entry)}
    before, following = excinfo.tb, excinfo.tb.tb_next
    while following is not None:
        if id(following.tb_frame) in kept:
            before.tb_next = before = following
        following = following.tb_next
    before.tb_next = None
    if not is_ours and calls_ours:
        error.__suppress_context__, error.__cause__ = True, None
        error.add_note("pytest --full-trace shows where in pytest-hermes-env")
    return "", True


def _fix_of_fixtures(error: BaseException, item: pytest.Item) -> str:
    """Return what to do where no line of a test ran, because its fixtures did not reach it; empty where that was not the reason."""
    missing, cls = _MISSING.search(str(error)), getattr(item, "cls", None)
    if missing is not None and isinstance(error, TypeError) and cls is not None:
        is_known = fixture_names(item.config).intersection(re.findall(r"'(\w+)'", missing[1]))
        is_unittest = issubclass(cls, unittest.TestCase)
        return (
            f"\n  fix       take TestCase out of the bases of {cls.__name__}: unittest gives a test no fixtures"
            if is_known and is_unittest
            else ""
        )
    if (fixture := re.search(r"requested an async fixture '(\w+)'", str(error))) and uses_plugin(item):
        return f'\n  fix       write `@pytest_asyncio.fixture` above `{fixture[1]}`, or set asyncio_mode = "auto" in pytest\'s settings'
    return ""


def _is_plain(error: BaseException) -> bool:
    return isinstance(error, HermesEnvError) or (isinstance(error, pytest.fail.Exception) and not error.pytrace)


def _told(error: BaseException) -> str:
    """Return an error of a group as it would be shown alone."""
    if isinstance(error, HermesEnvError):
        return f"{type(error).__name__}: {error}"
    if _is_plain(error):
        return str(error)
    shown = pytest.ExceptionInfo.from_exception(error)
    return str(shown.getrepr(style="short", tbfilter=lambda info: info.traceback.filter(filter_traceback)))


class _Text(TerminalRepr):
    """A text in place of a traceback, whose first line the summary shows."""

    def __init__(self, text: str, item: pytest.Item) -> None:
        path, line, _ = item.reportinfo()
        self.text = text if str(path) in text else f"{text}\n{os.path.relpath(path)}:{(line or 0) + 1}: {item.name}"
        self.reprcrash = ReprFileLocation(str(path), (line or 0) + 1, text.partition("\n")[0])

    def toterminal(self, tw: Any) -> None:
        """Write it."""
        tw.line(self.text)


def _advice(error: BaseException, entry: Any) -> str:
    """Return what to write at the line of the project that an error came from, where the error shows it."""
    from pytest_hermes_env.play.advice import advice_for  # noqa: PLC0415 - only where a test failed
    from pytest_hermes_env.play.journal import Place  # noqa: PLC0415

    place = Place(path=str(entry.path), line=entry.lineno + 1, function=entry.name)
    return "" if isinstance(error, AssertionError) else advice_for(error, place)


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
        except Leftovers:
            continue
        except HermesEnvError as problem:
            pending.remove(verify)
            return problem
    return None


def _asked_otherwise(pending: list[Callable[[], None]]) -> str:
    """Return the text of an answer of a double that nobody asked for, where something much like it was, or where nobody could."""
    for verify in pending:
        try:
            verify()
        except HermesEnvError as problem:
            if RAN in str(problem) or ENDED in str(problem):
                return f"{type(problem).__name__}: {problem}"
    return ""


def _survived(root: Path) -> str:
    """Return the first error of the environment's own code that its rollouts survived, with its line; empty without one."""
    log_once = sys.modules.get("environments.loop.log_once")
    error = log_once.first_error() if log_once is not None else None
    entries = list(pytest.ExceptionInfo.from_exception(error).traceback) if error is not None and error.__traceback__ else []
    own = [entry for entry in entries if _is_users(entry, root)]
    if error is None or not own or isinstance(error, HermesEnvError):
        return ""
    advice = _advice(error, own[-1])
    fix = f"\n  fix       {advice}" if advice else ""
    place = f"{Path(own[-1].path).relative_to(root)}:{own[-1].lineno + 1}"
    return f"A rollout failed before, and was counted: {type(error).__name__}: {error}\n  at        {place}{fix}"


def _innermost(error: BaseException) -> BaseException:
    """Return the error at the end of the chain of causes that pytest shows."""
    seen = {id(error)}
    while True:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is None or id(before) in seen:
            return error
        seen.add(id(before))
        error = before
