"""``@pytest.mark.hermes_cassette``: which cassette a test has, whether it is played or recorded, and what becomes of it.

Place in the flow: `plugin` registers `CassetteMode` in every run; its fixture opens `cassette_of` a test that is marked. The
work is done by `cassette.session`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from pytest_hermes_env.errors import BadCassette, UsageError, shorten
from pytest_hermes_env.plugin.live_hooks import live_server

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.redact import Redactor
    from pytest_hermes_env.cassette.session import CassetteSession, ToolSource
    from pytest_hermes_env.cassette.tape import Header, Tape

__all__ = [
    "MARKER",
    "MODES",
    "CassetteMark",
    "CassetteMode",
    "OpenCassette",
    "RecordedServer",
    "cassette_of",
    "has_cassette",
    "mode_of",
    "read_mark",
]

MARKER, FIXTURE = "hermes_cassette", "recorded_server"
Mode = Literal["none", "once", "new", "rewrite"]
MODES = ("none", "once", "new", "rewrite")
PROPERTY = "hermes_env_cassette"
"""The user property by which a worker tells the run what became of a cassette."""

NO_SERVER = "http://cassette.invalid/v1"
"""The address of a server that is only on tape: ``.invalid`` is a name that never exists."""

PASSED: pytest.StashKey[bool] = pytest.StashKey()
RECORDED: pytest.StashKey[Recorded] = pytest.StashKey()
NOT_WRITTEN = "not written, since the test did not pass"


@dataclass(frozen=True, kw_only=True)
class CassetteMark:
    """What a test's marker says. ``name`` is empty where it is derived from the test."""

    name: str = ""
    allow_leftovers: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordedServer:
    """The server that a test asks: the one that is recorded, or, in a replay, one that is only on tape.

    ``endpoint`` is what ``make_env`` builds on while recording: a MockServer, an APIServerConfig; None in a replay. ``is_live``
    says that it is the server of ``--hermes-live``.
    """

    base_url: str
    model: str
    endpoint: Any = None
    is_live: bool = False


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recording of a test that passed, until its last fixture has. ``lock`` keeps others from recording to ``path``."""

    path: Path
    tape: Tape
    redactor: Redactor
    lock: contextlib.ExitStack

    def keep(self) -> None:
        """Write it. Raises: it would hold a secret, or cannot be written → BadCassette."""
        from pytest_hermes_env.cassette.save import keep_tape  # noqa: PLC0415 - only where it is used

        keep_tape(self.path, self.tape, self.redactor)


@dataclass(frozen=True, kw_only=True)
class OpenCassette:
    """A test's cassette while the test runs. ``upstream`` is what is recorded from, None in a replay, and where nothing is named."""

    session: CassetteSession
    path: Path
    upstream: Any
    model: str
    is_live: bool = False

    @property
    def is_only_played(self) -> bool:
        """Whether no server can be asked."""
        return self.session.recorder is None

    def default_server(self) -> RecordedServer | None:
        """Return what ``make_env`` builds on where the test names nothing; None where that is for it to say."""
        return self.server() if self.is_only_played or self.upstream is not None else None

    def server(self) -> RecordedServer:
        """Return what the fixture gives. Raises: it is to be recorded, and from where is not said → UsageError."""
        if self.session.recorder is None:
            return RecordedServer(base_url=NO_SERVER, model=self.model)
        if self.upstream is None:
            raise UsageError(
                "recorded_server is to be recorded, and nothing says from which server.\n"
                "  expected  --hermes-live with a provider, or a fixture hermes_upstream that gives a MockServer, a base URL or an\n"
                "            APIServerConfig\n"
                "  fix       pytest --hermes-live --provider ... --hermes-model ... --hermes-record=once"
            )
        base_url = self.upstream if isinstance(self.upstream, str) else self.upstream.base_url
        return RecordedServer(base_url=str(base_url), model=self.model, endpoint=self.upstream, is_live=self.is_live)


class CassetteMode:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the mode. Raises: pytest.UsageError."""
        self._counts: Counter[str] = Counter()
        self.mode = mode_of(config)

    def pytest_report_header(self) -> list[str]:
        """Name the mode, where it is not the one that never records."""
        return [] if self.mode == "none" else [f"cassettes: --hermes-record={self.mode}"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember whether the test passed: only then a recording of it is kept."""
        report = yield
        if call.when == "call":
            item.stash[PASSED] = report.passed
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write the recording of a test when all its fixtures are torn down: one that fails then fails the test."""
        __tracebackhide__ = True
        is_fine = False
        try:
            result = yield
            is_fine = True
        finally:
            recorded = item.stash.get(RECORDED, None)
            if recorded is not None:
                del item.stash[RECORDED]
                with recorded.lock:
                    error = _kept(recorded) if is_fine else NOT_WRITTEN
                item.user_properties.append((PROPERTY, "recorded" if not error else NOT_WRITTEN))
                if error and is_fine:
                    pytest.fail(error, pytrace=False)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what became of cassettes, also of those of xdist's workers."""
        if report.when == "teardown":
            self._counts.update(str(value) for name, value in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many cassettes were played and recorded."""
        if self._counts:
            parts = ", ".join(f"{count} {what}" for what, count in sorted(self._counts.items()))
            terminalreporter.write_line(f"cassettes: {parts} (--hermes-record={self.mode})")


def mode_of(config: pytest.Config) -> Mode:
    """Return the record mode: the flag's, else the ini value's, else ``none``. Raises: pytest.UsageError."""
    mode = config.getoption("hermes_record") or str(config.getini("hermes_record")).strip() or "none"
    if mode not in MODES:
        raise pytest.UsageError(f"the ini value hermes_record is one of {', '.join(MODES)}, not {shorten(mode)!r}")
    return cast("Mode", mode)


def has_cassette(request: pytest.FixtureRequest) -> bool:
    """Tell whether a test has a cassette: by the marker, or by the fixture alone."""
    return FIXTURE in request.fixturenames or request.node.get_closest_marker(MARKER) is not None


def read_mark(mark: pytest.Mark | None) -> CassetteMark:
    """Return what a marker says. Raises: wrong arguments → UsageError."""
    if mark is None:
        return CassetteMark()
    given = dict(mark.kwargs)
    names = [*mark.args, *([given.pop("name")] if "name" in given else [])]
    allow = given.pop("allow_leftovers", False)
    name = names[0] if names else ""
    problem = ""
    if given:
        problem = f"no argument {next(iter(given))!r}"
    elif len(names) > 1:
        problem = "one name, not several"
    elif not isinstance(allow, bool):
        problem = f"allow_leftovers is True or False, not {shorten(repr(allow))}"
    elif not isinstance(name, str) or (names and not name.strip()):
        problem = f"a name is text such as 'terminal/solves', not {shorten(repr(name))}"
    elif name.startswith(("/", "~")) or ".." in PurePosixPath(name).parts or "\\" in name:
        problem = f"a name leads to a file below the directory of cassettes; {shorten(repr(name))} leaves it"
    if problem:
        raise UsageError(
            f"@pytest.mark.{MARKER} was given what it does not take: {problem}.\n"
            f"  expected  @pytest.mark.{MARKER}, or ({MARKER}('name'), {MARKER}(allow_leftovers=True))\n"
            f"  seen      args {shorten(repr(mark.args))}, kwargs {shorten(repr(dict(mark.kwargs)))}"
        )
    return CassetteMark(name=name, allow_leftovers=allow)


@contextlib.contextmanager
def cassette_of(request: pytest.FixtureRequest) -> Iterator[OpenCassette]:
    """Play or record a test's cassette while the context lasts; afterwards verify it, or write it if the test passed.

    Raises: the marker, or its use, is wrong → UsageError; there is no cassette, or none that can be read → BadCassette; what
    differs from the recording → CassetteMiss, RewardChanged, LeftoverRecordings.
    """
    from pytest_hermes_env.atomic_files import exclusive  # noqa: PLC0415 - only where it is used
    from pytest_hermes_env.cassette.matching import Matching  # noqa: PLC0415

    node = request.node
    mark = read_mark(node.get_closest_marker(MARKER))
    mode = mode_of(request.config)
    redactor = _redactor(request)
    path = _path(request, mark, redactor)
    node.stash[PASSED] = False
    name = _shown(path, request.config.rootpath)
    again = f"pytest --hermes-record=rewrite {shlex.quote(node.nodeid)}"
    if mode == "none" and not path.exists():
        raise BadCassette(
            f"there is no cassette {name}, and without --hermes-record nothing is asked of the network.\n"
            f"  expected  a recording of {node.nodeid}\n"
            f"  fix       record it: pytest --hermes-record=once {shlex.quote(node.nodeid)}"
        )
    matching = request.getfixturevalue("hermes_matching")
    if not isinstance(matching, Matching):
        raise UsageError(f"the fixture hermes_matching gives a Matching, not {shorten(repr(matching))}")
    records = mode in {"new", "rewrite"} or (mode == "once" and not path.exists())
    with contextlib.ExitStack() as stack:
        if records:
            _claim(request, path, name)
            stack.enter_context(exclusive(path))
        upstream = request.getfixturevalue("hermes_upstream") if records else None
        session = _session(request, path, redactor, plays=not records or (mode == "new" and path.exists()), records=records)
        session.name, session.again, session.matching = name, again, matching
        model = _model(upstream, session)
        with session:
            is_live = _is_live(upstream, request.config)
            yield OpenCassette(session=session, path=path, upstream=upstream, model=model, is_live=is_live)
        if _finish(request, session, mark):
            tape = session.tape(_header(request, upstream, model))
            redactor = redactor.knowing(session.sent)
            node.stash[RECORDED] = Recorded(path=path, tape=tape, redactor=redactor, lock=stack.pop_all())


def _kept(recorded: Recorded) -> str:
    """Write a recording. Return why it was not."""
    try:
        recorded.keep()
    except BadCassette as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _session(request: pytest.FixtureRequest, path: Path, redactor: Redactor, *, plays: bool, records: bool) -> CassetteSession:
    from pytest_hermes_env.cassette.format import read_tape  # noqa: PLC0415
    from pytest_hermes_env.cassette.player import Player  # noqa: PLC0415
    from pytest_hermes_env.cassette.recorder import Recorder  # noqa: PLC0415
    from pytest_hermes_env.cassette.session import CassetteSession  # noqa: PLC0415
    from pytest_hermes_env.inference.transport import InProcessTransport  # noqa: PLC0415

    return CassetteSession(
        name=str(path),
        again="",
        player=Player(read_tape(path), request.getfixturevalue("hermes_matching"), redactor) if plays else None,
        recorder=Recorder() if records else None,
        tools=cast("ToolSource", request.config.getoption("hermes_replay_tools")),
        transports=(InProcessTransport,),
        guards_hosts=False,
    )


def _finish(request: pytest.FixtureRequest, session: CassetteSession, mark: CassetteMark) -> bool:
    """Verify what was played, and tell whether what was recorded is to be kept: of a test that passed."""
    node = request.node
    has_passed = node.stash.get(PASSED, False)
    adds = session.recorder is not None and not (session.player is not None and session.recorder.is_empty)
    if not adds:
        node.user_properties.append((PROPERTY, "replayed"))
    elif not has_passed:
        node.user_properties.append((PROPERTY, NOT_WRITTEN))
    is_free = mark.allow_leftovers or not has_passed or node.get_closest_marker("hermes_allow_leftovers") is not None
    session.verify(allow_leftovers=is_free)
    return adds and has_passed


def _header(request: pytest.FixtureRequest, upstream: Any, model: str) -> Header:
    from pytest_hermes_env.cassette.session import header_of  # noqa: PLC0415

    return header_of(
        recorded_from=_describe(upstream, request.config),
        provider=_provider(upstream, request.config),
        model=model,
        test=request.node.nodeid,
    )


def _redactor(request: pytest.FixtureRequest) -> Redactor:
    from pytest_hermes_env.cassette.redact import Redactor  # noqa: PLC0415

    redactor = request.getfixturevalue("hermes_redaction")
    if not isinstance(redactor, Redactor):
        raise UsageError(f"the fixture hermes_redaction gives a Redactor, not {shorten(repr(redactor))}")
    return redactor


def _path(request: pytest.FixtureRequest, mark: CassetteMark, redactor: Redactor) -> Path:
    from pytest_hermes_env.cassette.paths import SUFFIX, cassette_path  # noqa: PLC0415
    from pytest_hermes_env.cassette.secret_search import PLACEHOLDER  # noqa: PLC0415

    directory = request.getfixturevalue("hermes_cassette_dir")
    if not isinstance(directory, (str, os.PathLike)):
        raise UsageError(f"the fixture hermes_cassette_dir gives a path, not {shorten(repr(directory))}")
    if mark.name:
        return Path(directory) / (mark.name.removesuffix(SUFFIX) + SUFFIX)
    module, _, test = request.node.nodeid.partition("::")
    return cassette_path(Path(directory), module, test, readable=PLACEHOLDER.sub("redacted", redactor.text(test)))


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _claim(request: pytest.FixtureRequest, path: Path, name: str) -> None:
    """Note that this test records ``path``, for all workers of the run. Raises: another test did → UsageError."""
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    run = base.parent if hasattr(request.config, "workerinput") else base
    place = run / "hermes-cassettes"
    place.mkdir(exist_ok=True)
    claim = place / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    try:
        with claim.open("x", encoding="utf-8") as file:
            file.write(request.node.nodeid)
    except FileExistsError:
        other = claim.read_text(encoding="utf-8")
        if other != request.node.nodeid:
            raise UsageError(
                f"two tests of this run record the cassette {name}.\n"
                f"  expected  a cassette of its own for each test that records; a replay may share one\n"
                f"  seen      {other}\n            {request.node.nodeid}\n"
                f"  fix       give one of them another name, or record with one of them only"
            ) from None


def _model(upstream: Any, session: CassetteSession) -> str:
    """Return the name of the model that is recorded, or that was."""
    named = getattr(upstream, "model", None) or getattr(upstream, "model_name", None)
    if named is None and session.player is not None:
        from pytest_hermes_env.cassette.tape import ModelCall  # noqa: PLC0415

        tape = session.player.tape
        bodies = [call.request.body for call in tape.calls if isinstance(call, ModelCall)]
        asked = (body.get("model") for body in bodies if isinstance(body, dict))
        named = tape.header.model or next((model for model in asked if isinstance(model, str)), None)
    return str(named or "mock-model")


def _is_live(upstream: Any, config: pytest.Config) -> bool:
    """Tell whether what is recorded is the server of ``--hermes-live``."""
    live = live_server(config)
    return live is not None and getattr(upstream, "base_url", None) == live.config().base_url


def _describe(upstream: Any, config: pytest.Config) -> str:
    """Return in words what is recorded."""
    live = live_server(config)
    if live is not None and _is_live(upstream, config):
        return live.describe()
    if type(upstream).__name__ == "MockServer":
        return "a mock server of pytest-hermes-env that stood in for a provider"
    if upstream is None:
        return "the servers that the test named"
    return f"the server at {upstream if isinstance(upstream, str) else upstream.base_url}"


def _provider(upstream: Any, config: pytest.Config) -> str:
    live = live_server(config)
    return live.provider if live is not None and _is_live(upstream, config) else ""
