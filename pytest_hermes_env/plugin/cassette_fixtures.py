"""Fixtures of the cassette room: settings, to be overridden, recorded_server, and the cassette of a marked test while it runs."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_hermes_env.errors import BadCassette, UsageError, shorten
from pytest_hermes_env.missing_files import no_file
from pytest_hermes_env.plugin.cassette_hooks import MARKER, NOT_WRITTEN, PASSED, PROPERTY, RECORDED, has_cassette, mode_of
from pytest_hermes_env.plugin.live_hooks import live_server
from pytest_hermes_env.plugin.plain_failure import errors_as_text, verifications_of
from pytest_hermes_env.plugin.tool_answers import CASSETTE, allows_leftovers, tools_through_cassette

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.matching import Matching
    from pytest_hermes_env.cassette.open_cassette import OpenCassette, RecordedServer
    from pytest_hermes_env.cassette.redact import Redactor
    from pytest_hermes_env.cassette.session import CassetteSession, ToolSource
    from pytest_hermes_env.live.providers import LiveServer


@pytest.fixture
def hermes_cassette_dir(request: pytest.FixtureRequest) -> Path:
    """The directory of cassettes: ``cassettes`` next to the ini file. Override it to store them elsewhere."""
    return request.config.rootpath / "cassettes"


@pytest.fixture
def hermes_matching() -> Matching:
    """How a request may differ from its recording. Override it: ``return Matching(ignored=("user",))``."""
    from pytest_hermes_env.cassette.matching import Matching  # noqa: PLC0415

    return Matching()


@pytest.fixture
def hermes_redaction() -> Redactor:
    """Keeps secrets out of cassettes. Override it: ``return Redactor(known=..., patterns=...)``."""
    from pytest_hermes_env.cassette.session import default_redactor  # noqa: PLC0415

    return default_redactor()


@pytest.fixture
def hermes_upstream(request: pytest.FixtureRequest) -> Any:
    """The server that is recorded: that of --hermes-live. Override it: a MockServer, a URL, an APIServerConfig."""
    live = live_server(request.config)
    return None if live is None else live.config()


@pytest.fixture
def _hermes_cassette(request: pytest.FixtureRequest) -> Iterator[OpenCassette | None]:
    """The cassette of a test that is marked, or has recorded_server; the plugin adds this fixture to such tests."""
    if not has_cassette(request.node):
        yield None
        return
    with errors_as_text(), _open_cassette(request) as cassette:
        request.node.stash[CASSETTE] = cassette
        try:
            with tools_through_cassette(request):
                yield cassette
        finally:
            del request.node.stash[CASSETTE]


@pytest.fixture
def recorded_server(_hermes_cassette: OpenCassette | None) -> RecordedServer:
    """The server of the test's cassette: ``make_env(Env, server=recorded_server)``, or ``recorded_server.base_url``."""
    if _hermes_cassette is None:
        raise UsageError(
            "recorded_server was requested while the test was already running.\n"
            "  fix       make it an argument of the test, or mark the test @pytest.mark.hermes_cassette"
        )
    with errors_as_text():
        return _hermes_cassette.server()


# ---------------------------------------------------------------------- the cassette of a test


def _read_mark(mark: pytest.Mark | None) -> tuple[str, bool]:
    """Return a marker's name, empty if it is derived from the test, and allow_leftovers. Raises: wrong arguments → UsageError."""
    if mark is None:
        return "", False
    given = dict(mark.kwargs)
    names = [*mark.args, *([given.pop("name")] if "name" in given else [])]
    allow = given.pop("allow_leftovers", False)
    name = names[0] if names else ""
    problem = ""
    if given:
        problem = f"unknown argument {next(iter(given))!r}"
    elif len(names) > 1:
        problem = "more than one name"
    elif not isinstance(allow, bool):
        problem = f"allow_leftovers must be True or False, not {shorten(repr(allow))}"
    elif not isinstance(name, str) or (names and not name.strip()):
        problem = f"a name must be text such as 'terminal/solves', not {shorten(repr(name))}"
    elif name.startswith(("/", "~")) or ".." in PurePosixPath(name).parts or "\\" in name:
        problem = f"a name must lead to a file below the directory of cassettes; {shorten(repr(name))} leaves it"
    if problem:
        raise UsageError(
            f"@pytest.mark.{MARKER} has wrong arguments: {problem}.\n"
            f"  expected  @pytest.mark.{MARKER}, or ({MARKER}('name'), {MARKER}(allow_leftovers=True))\n"
            f"  seen      args {shorten(repr(mark.args))}, kwargs {shorten(repr(dict(mark.kwargs)))}"
        )
    return name, allow


@contextlib.contextmanager
def _open_cassette(request: pytest.FixtureRequest) -> Iterator[OpenCassette]:
    """Play or record a test's cassette while the context lasts; then verify it, and keep the recording of a test that passed.

    Raises: the marker, or its use, is wrong → UsageError; there is no cassette, or none that can be read → BadCassette; what
    differs from the recording → CassetteMiss, RewardChanged, LeftoverRecordings.
    """
    from pytest_hermes_env.atomic_files import exclusive  # noqa: PLC0415 - only where it is used
    from pytest_hermes_env.cassette.open_cassette import OpenCassette, PassedRecording, claim_path, model_name  # noqa: PLC0415
    from pytest_hermes_env.cassette.recorder import header_of  # noqa: PLC0415
    from pytest_hermes_env.cassette.redact import Redactor  # noqa: PLC0415

    node = request.node
    marked_name, allows = _read_mark(node.get_closest_marker(MARKER))
    mode = mode_of(request.config)
    redactor = _overridable(request, "hermes_redaction", Redactor, "a Redactor")
    path = _path(request, marked_name, redactor)
    node.stash[PASSED] = False
    name = str(path.relative_to(request.config.rootpath)) if path.is_relative_to(request.config.rootpath) else str(path)
    has_file = path.exists()
    if mode == "none" and not has_file:
        near = no_file(str(path)).partition(". ")[2].replace(f"{request.config.rootpath}{os.sep}", "")
        raise BadCassette(
            f"there is no cassette {name}, and without --hermes-record no request reaches the network.\n"
            f"  expected  a recording of {node.nodeid}\n"
            f"  fix       {f'{near} Or ' if near else ''}record it: pytest --hermes-record=once {shlex.quote(node.nodeid)}"
        )
    records = mode in {"new_episodes", "rewrite"} or not has_file
    with contextlib.ExitStack() as stack:
        if records:
            claim_path(_claims(request), path, test=node.nodeid, name=name)
            stack.enter_context(exclusive(path))
        upstream = request.getfixturevalue("hermes_upstream") if records else None
        plays = not records or (mode == "new_episodes" and has_file)
        session = _session(request, path, redactor, name=name, plays=plays, records=records)
        model = model_name(upstream, session)
        with session:
            is_live = _live_source(upstream, request.config) is not None
            pending = verifications_of(node)
            pending.append(session.verify_calls)
            yield OpenCassette(session=session, path=path, upstream=upstream, model=model, is_live=is_live)
        if _is_kept(request, session, allow_leftovers=allows, has_shown=session.verify_calls not in pending):
            live = _live_source(upstream, request.config)
            source = (
                {"recorded_from": _describe(upstream)}
                if live is None
                else {"recorded_from": live.describe(), "provider": live.provider}
            )
            tape = session.tape(header_of(**source, model=model, test=node.nodeid))
            redactor = redactor.knowing(session.sent)
            node.stash[RECORDED] = PassedRecording(path=path, tape=tape, redactor=redactor, lock=stack.pop_all())


def _session(
    request: pytest.FixtureRequest, path: Path, redactor: Redactor, *, name: str, plays: bool, records: bool
) -> CassetteSession:
    from pytest_hermes_env.cassette.format import read_tape  # noqa: PLC0415
    from pytest_hermes_env.cassette.matching import Matching  # noqa: PLC0415
    from pytest_hermes_env.cassette.player import Player  # noqa: PLC0415
    from pytest_hermes_env.cassette.recorder import Recorder  # noqa: PLC0415
    from pytest_hermes_env.cassette.session import CassetteSession  # noqa: PLC0415
    from pytest_hermes_env.inference.transport import InProcessTransport  # noqa: PLC0415

    matching = _overridable(request, "hermes_matching", Matching, "a Matching")
    again = f"pytest --hermes-record=rewrite {shlex.quote(request.node.nodeid)}"
    return CassetteSession(
        name=name,
        record_command=again,
        player=Player(read_tape(path, again), matching, redactor) if plays else None,
        recorder=Recorder() if records else None,
        tools=cast("ToolSource", request.config.getoption("hermes_replay_tools")),
        transports=(InProcessTransport,),
    )


def _is_kept(request: pytest.FixtureRequest, session: CassetteSession, *, allow_leftovers: bool, has_shown: bool) -> bool:
    """Verify what was played, unless the failed test has shown it. Return whether there is a recording to write, of a test that passed."""
    node = request.node
    has_passed = node.stash.get(PASSED, False)
    adds = session.recorder is not None and not (session.player is not None and session.recorder.is_empty)
    if not adds:
        node.user_properties.append((PROPERTY, "replayed"))
    elif not has_passed:
        node.user_properties.append((PROPERTY, NOT_WRITTEN))
    if not has_shown:
        session.verify(allow_leftovers=allow_leftovers or not has_passed or allows_leftovers(request))
    return adds and has_passed


def _describe(upstream: Any) -> str:
    """Return the source of a recording, for its header."""
    if type(upstream).__name__ == "MockServer":
        return "a mock server of pytest-hermes-env that stood in for a provider"
    if upstream is None:
        return "the servers that the test named"
    return f"the server at {upstream if isinstance(upstream, str) else upstream.base_url}"


def _live_source(upstream: Any, config: pytest.Config) -> LiveServer | None:
    """Return the server of ``--hermes-live`` if it is what is recorded."""
    live = live_server(config)
    return live if live is not None and getattr(upstream, "base_url", None) == live.config().base_url else None


def _overridable(request: pytest.FixtureRequest, name: str, kind: Any, expected: str) -> Any:
    """Return the value of a fixture that users may override. Raises: it has another type → UsageError."""
    value = request.getfixturevalue(name)
    if not isinstance(value, kind):
        raise UsageError(f"the fixture {name} must return {expected}, not {shorten(repr(value))}")
    return value


def _path(request: pytest.FixtureRequest, name: str, redactor: Redactor) -> Path:
    from pytest_hermes_env.cassette.format import SUFFIX, cassette_path  # noqa: PLC0415
    from pytest_hermes_env.redaction.secret_search import PLACEHOLDER  # noqa: PLC0415

    directory = Path(_overridable(request, "hermes_cassette_dir", str | os.PathLike, "a path"))
    if name:
        return directory / (name.removesuffix(SUFFIX) + SUFFIX)
    module, _, test = request.node.nodeid.partition("::")
    return cassette_path(directory, module, test, readable=PLACEHOLDER.sub("redacted", redactor.text(test)))


def _claims(request: pytest.FixtureRequest) -> Path:
    """Return the directory in which all workers of the run note which test records which cassette."""
    base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    return (base.parent if hasattr(request.config, "workerinput") else base) / "hermes-cassettes"
