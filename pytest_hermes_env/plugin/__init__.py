"""The pytest plugin: hooks and fixtures, each a few lines that call a room.

Importing this module loads pytest and the standard library, nothing else: it happens in every pytest run of every project that
has this package installed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.contract.ledger_rows import RowKeeper
from pytest_hermes_env.errors import HermesEnvError, UsageError
from pytest_hermes_env.options import FLAGS, INI_VALUES, MARKERS
from pytest_hermes_env.plugin.cassettes import CassetteMode, cassette_of, has_cassette
from pytest_hermes_env.plugin.live_hooks import LiveMode, live_access, live_server
from pytest_hermes_env.rollout.hermes_home import HermesHome, restore_environment, touched_names

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.matching import Matching
    from pytest_hermes_env.cassette.redact import Redactor
    from pytest_hermes_env.contract.reports import Account
    from pytest_hermes_env.contract.session import ContractSession
    from pytest_hermes_env.inference.server import MockServer
    from pytest_hermes_env.plugin.cassettes import OpenCassette, RecordedServer
    from pytest_hermes_env.results import Result
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.local import LocalSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam

HERMES = "model_tools"
"""The module whose presence says that hermes-agent is loaded."""

HOME = pytest.StashKey[HermesHome]()
CONTRACT = pytest.StashKey["ContractSession"]()
ROWS = pytest.StashKey[RowKeeper]()
ENDED = pytest.StashKey[tuple["Account", list[str]]]()
"""The account of the run, once it has ended, and what else is to be told."""
REPORTS = ("hermes_report_json", "hermes_sarif", "hermes_ledger")
SEAM: pytest.StashKey[ToolSeam] = pytest.StashKey()
CASSETTE: pytest.StashKey[OpenCassette] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and ini values of `options`."""
    group = parser.getgroup("hermes-env", "Hermes Agent RL environments")
    for flag in FLAGS:
        try:
            group.addoption(flag.name, *filter(None, [flag.also]), help=flag.help, **flag.settings)
        except (ValueError, argparse.ArgumentError):  # another plugin has the second name, which is no fault of the user's
            group.addoption(flag.name, help=flag.help, **flag.settings)
    for value in INI_VALUES:
        parser.addini(value.name, help=value.help, default=value.default)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Show a broken environment to the tests, when `hermes-env mutants` runs them to see whether they notice."""
    if "HERMES_ENV_MUTANT" in os.environ:
        from pytest_hermes_env.contract.mutation import overlay  # noqa: PLC0415 - only in its trials

        overlay.install()


def pytest_configure(config: pytest.Config) -> None:
    """Give hermes a home of its own, register markers, and prepare the contract when it is asked for."""
    config.stash[HOME] = HermesHome(config.getoption("hermes_home") or config.getini("hermes_home") or None)
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(LiveMode(config), "hermes-env-live")
    config.stash[ROWS] = RowKeeper()
    config.pluginmanager.register(config.stash[ROWS], "hermes-env-rows")
    if config.getoption("hermes_write_ledger") and not config.getoption("hermes_ledger"):
        raise pytest.UsageError("--hermes-write-ledger needs --hermes-ledger FILE, the file to write")
    config.pluginmanager.register(CassetteMode(config), "hermes-env-cassettes")
    if config.getoption("hermes_env"):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a data set out of reach costs half a minute of retries per class
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = []
            if config.option.verbose == 0:
                config.option.verbose = 1  # nothing but rules is run: a line for each, as it is judged


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give hermes' home back."""
    if HOME in config.stash:
        config.stash[HOME].leave()


def pytest_report_header(config: pytest.Config) -> str:
    """Name the versions that a result depends on."""
    names = ("pytest-hermes-env", "atroposlib", "hermes-agent")
    return f"{', '.join(f'{name} {_version(name)}' for name in names)}; HERMES_HOME {config.stash[HOME].path or 'not set'}"


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say what confines the real terminal, when some test of the run works with it."""
    is_used = any("local_sandbox" in getattr(item, "fixturenames", ()) for item in items)
    if not is_used and not (config.getoption("hermes_sandbox") == "local" and any(_is_rule(item) for item in items)):
        return []
    from pytest_hermes_env.sandbox.confinement import available  # noqa: PLC0415

    return [available().describe()]


def _is_rule(item: pytest.Item) -> bool:
    """Tell whether an item judges a rule: of ``--hermes-env``, or of ``@env_contract``."""
    return hasattr(item, "check") or "hermes_rule" in getattr(item, "fixturenames", ())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _contract(config: pytest.Config) -> ContractSession:
    if CONTRACT not in config.stash:
        from pytest_hermes_env.contract.session import ContractSession  # noqa: PLC0415 - only where it is used

        config.stash[CONTRACT] = ContractSession(config)
    return config.stash[CONTRACT]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add one item per rule for every class that ``--hermes-env`` names."""
    if config.getoption("hermes_env"):
        items.extend(_contract(config).items_of_targets(session))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Put back the variables that an environment built in this test may have set."""
    before = dict(os.environ)
    _accept_unclosed_pipes(item)
    result = yield
    if HERMES in sys.modules:
        restore_environment(before, only=touched_names(before))
    return result


def _accept_unclosed_pipes(item: pytest.Item) -> None:
    """Let hermes' commands end without a warning that would fail a test under ``-W error``.

    hermes 0.19 leaves the output pipes of its subprocesses to the garbage collector. May go when it closes them.
    """
    if _uses_hermes(item):
        warnings.filterwarnings("ignore", r"unclosed file <_io\.\w+ name=\d+ ", ResourceWarning)


def _uses_hermes(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return HERMES in sys.modules or "make_env" in fixtures or _is_rule(item)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make the reports of a contract run, and fail it where it proves nothing."""
    config = session.config
    if ROWS in config.stash and not hasattr(config, "workerinput"):
        rows = config.stash[ROWS]
        if rows.rows or any(map(config.getoption, REPORTS)):
            from pytest_hermes_env.contract.run_end import finish  # noqa: PLC0415

            config.stash[ENDED] = finish(session, rows.rows.values(), rows.seconds)
    if HERMES in sys.modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # hermes' pipes, see _accept_unclosed_pipes


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the ledger of every contract run."""
    if ENDED in config.stash:
        from pytest_hermes_env.contract.run_end import summary  # noqa: PLC0415

        summary(terminalreporter, *config.stash[ENDED])


@pytest.fixture(scope="session")
def hermes_tokenizer() -> str:
    """Path of a tiny local tokenizer with a ChatML template that knows tools; needs no hub and no torch."""
    from pytest_hermes_env.rollout.builder import shared_tokenizer  # noqa: PLC0415

    return shared_tokenizer()


@pytest.fixture
def agent_result() -> Result:
    """The beginning of AgentResults: ``agent_result.call("terminal", command="ls").returns({...}).say("42")``."""
    from pytest_hermes_env import results  # noqa: PLC0415

    return results.agent_result


@pytest.fixture
def hermes_rule(request: pytest.FixtureRequest) -> Callable[[], None]:
    """One rule on one class, as ``@env_contract`` parametrizes it; call it to judge."""
    check, session = request.param, _contract(request.config)
    return lambda: check.run(request.node, session)


@pytest.fixture
def mock_server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    """A mock model on a free loopback port. Add scripts with ``mock_server.add(...)``; verified when the test ends."""
    from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415

    allowed = request.node.get_closest_marker("hermes_allow_leftovers") is not None
    with MockServer(allow_leftovers=allowed) as server:
        yield server
    _without_our_frames(server.verify)


@pytest.fixture
def fake_sandbox(request: pytest.FixtureRequest) -> Iterator[FakeSandbox]:
    """An in-memory machine: ``fake_sandbox.files``, ``fake_sandbox.on(command, output=...)``. No process, no disk.

    While a test has it, it answers every tool call of every rollout, each rollout on a copy of its own; what it could not
    answer, and answers that nobody asked for, fail the test at its end.
    """
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    allowed = request.node.get_closest_marker("hermes_allow_leftovers") is not None
    sandbox = FakeSandbox(allow_leftovers=allowed or _is_played(request))
    with _answering(request, sandbox):
        yield sandbox
    _without_our_frames(sandbox.verify)


@pytest.fixture
def local_sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """hermes' real terminal and files in a private directory with a HOME of its own, confined where this machine can do that.

    While a test has it, every rollout works in it, each in a directory of its own.
    """
    from pytest_hermes_env.sandbox.local import LocalSandbox  # noqa: PLC0415

    with LocalSandbox(allow_leftovers=_is_played(request)) as sandbox, _answering(request, sandbox):
        yield sandbox
    _without_our_frames(sandbox.verify)


@pytest.fixture
def tool_context(request: pytest.FixtureRequest) -> Iterator[FakeToolContext]:
    """What ``compute_reward`` takes as ``ctx``, over the sandbox that the test has: fake_sandbox, unless it has local_sandbox."""
    from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415

    if "local_sandbox" in request.fixturenames:
        context = FakeToolContext(request.getfixturevalue("local_sandbox").machine("test-rollout"))
    else:
        context = FakeToolContext(request.getfixturevalue("fake_sandbox"))
    yield context
    context.cleanup()
    _without_our_frames(context.verify)


@pytest.fixture
def tool_journal(request: pytest.FixtureRequest) -> Iterator[ToolSeam]:
    """``tool_journal.calls``: every tool call of the test's rollouts with task_id, turn, arguments, result and seconds.

    Calls of a verifier have turn 0. The tools are those of fake_sandbox or local_sandbox where the test has one, else hermes' own.
    """
    from pytest_hermes_env.sandbox.seam import RealTools  # noqa: PLC0415

    for name in ("fake_sandbox", "local_sandbox"):
        if name in request.fixturenames:
            request.getfixturevalue(name)
    if SEAM in request.node.stash:
        yield request.node.stash[SEAM]
        return
    with _answering(request, RealTools()):
        yield request.node.stash[SEAM]


@contextlib.contextmanager
def _answering(request: pytest.FixtureRequest, world: Any) -> Iterator[None]:
    """Let one sandbox answer all tools while the test runs."""
    from pytest_hermes_env.sandbox.seam import ToolSeam  # noqa: PLC0415

    if SEAM in request.node.stash:
        raise UsageError(
            f"a second sandbox is asked for in this test: {world.description}.\n"
            "  expected  one of fake_sandbox and local_sandbox, since each would answer every tool call\n"
            f"  seen      {request.node.stash[SEAM].world.description} answers already\n"
            "  fix       take one of them, as an argument of the test; tool_journal then follows it"
        )
    before = dict(os.environ)
    cassette = request.node.stash.get(CASSETTE, None)
    if cassette is None:
        seam = ToolSeam(world)
    else:
        seam = ToolSeam(cassette.session.world(world), record=cassette.session.note_tool_call)
    request.node.stash[SEAM] = seam
    try:
        with seam:
            yield
    finally:
        del request.node.stash[SEAM]
        restore_environment(before)


@pytest.fixture
def hermes_cassette_dir(request: pytest.FixtureRequest) -> Any:
    """The directory of cassettes: ``cassettes`` beside the ini file. Override it to have them elsewhere."""
    return request.config.rootpath / "cassettes"


@pytest.fixture
def hermes_matching() -> Matching:
    """What may differ between a request and its recording. Override it: ``return Matching(ignored=("user",))``."""
    from pytest_hermes_env.cassette.matching import Matching  # noqa: PLC0415

    return Matching()


@pytest.fixture
def hermes_redaction() -> Redactor:
    """What keeps secrets out of cassettes. Override it: ``return Redactor(known=..., patterns=...)``."""
    from pytest_hermes_env.cassette.session import default_redactor  # noqa: PLC0415

    return default_redactor()


@pytest.fixture
def hermes_upstream(request: pytest.FixtureRequest) -> Any:
    """What recorded_server is recorded from: the server of --hermes-live. Override it: a MockServer, a URL, an APIServerConfig."""
    live = live_server(request.config)
    return None if live is None else live.config()


@pytest.fixture(autouse=True)
def _hermes_cassette(request: pytest.FixtureRequest) -> Iterator[OpenCassette | None]:
    """The cassette of a test that is marked so, or has recorded_server."""
    if not has_cassette(request):
        yield None
        return
    with _errors_as_text(), cassette_of(request) as cassette:
        request.node.stash[CASSETTE] = cassette
        try:
            with _tools_of_cassette(request):
                yield cassette
        finally:
            del request.node.stash[CASSETTE]


@contextlib.contextmanager
def _tools_of_cassette(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let tool calls pass the cassette: over the sandbox that the test has, else over hermes' own tools."""
    fake = request.config.getoption("hermes_replay_tools") == "fake" and request.node.stash[CASSETTE].session.recorder is None
    for name in ("fake_sandbox", "local_sandbox"):
        if name in request.fixturenames or (fake and name == "fake_sandbox" and "local_sandbox" not in request.fixturenames):
            request.getfixturevalue(name)
    if SEAM in request.node.stash or not _uses_hermes(request.node):
        yield
        return
    from pytest_hermes_env.sandbox.seam import RealTools  # noqa: PLC0415

    with _answering(request, RealTools()):
        yield


def _is_played(request: pytest.FixtureRequest) -> bool:
    """Tell whether tool calls are answered by a cassette, so that a sandbox stands idle."""
    cassette = request.node.stash.get(CASSETTE, None)
    return cassette is not None and cassette.session.serves_tools


@pytest.fixture
def recorded_server(_hermes_cassette: OpenCassette | None) -> RecordedServer:
    """The server of the test's cassette: ``make_env(Env, server=recorded_server)``, or ``recorded_server.base_url``."""
    if _hermes_cassette is None:
        raise UsageError(
            "recorded_server was asked for while the test ran already.\n"
            "  fix       make it an argument of the test, or mark the test @pytest.mark.hermes_cassette"
        )
    with _errors_as_text():
        return _hermes_cassette.server()


@pytest.fixture
def make_env(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """``make_env(EnvClass, *, script=None, server=None, config=None, in_process=False, **fields)``: on a mock model.

    Its tools are hermes' own, or those of ``fake_sandbox`` or ``local_sandbox`` where the test has one of them.
    See `pytest_hermes_env.rollout.builder.EnvironmentBuilder.build`. Clients are closed, scripts verified and ``os.environ``
    restored when the test ends.
    """
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder  # noqa: PLC0415

    before = dict(os.environ)
    cassette = request.node.stash.get(CASSETTE, None)
    allowed = request.node.get_closest_marker("hermes_allow_leftovers") is not None
    builder = EnvironmentBuilder(
        allow_leftovers=allowed,
        seam=lambda: request.node.stash.get(SEAM, None),
        allow_unconfined=request.config.getoption("hermes_allow_unconfined"),
        live=None if cassette is not None and cassette.is_only_played else live_access(request.node),
        watch=None if cassette is None else cassette.session.watch.watch,
        default_server=None if cassette is None else cassette.default_server(),
    )
    try:
        yield builder.build
    finally:
        try:
            _without_our_frames(builder.close)
        finally:
            restore_environment(before)


@contextlib.contextmanager
def _errors_as_text() -> Iterator[None]:
    """Let what is wrong fail the test as plain text."""
    __tracebackhide__ = True
    try:
        yield
    except HermesEnvError as error:
        raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None


def _without_our_frames(verify: Callable[[], None]) -> None:
    """Run a verification; what it says fails the test as plain text."""
    __tracebackhide__ = True
    with _errors_as_text():
        verify()
