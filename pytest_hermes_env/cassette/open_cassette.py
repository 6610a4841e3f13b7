"""A test's cassette while the test runs, and its recording until the last fixture is torn down.

Place in the flow: the plugin makes an `OpenCassette` for a marked test; its `server` is the fixture recorded_server, and a
`PassedRecording` is written once all teardowns have succeeded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.session import CassetteSession
from pytest_hermes_env.cassette.tape import ModelCall, Tape
from pytest_hermes_env.errors import UsageError

NO_SERVER = "http://cassette.invalid/v1"
"""The address of a recorded server in a replay: a name that never exists."""


@dataclass(frozen=True, kw_only=True)
class RecordedServer:
    """The server that a test uses: the one being recorded, or, in a replay, an address that only the cassette answers.

    ``endpoint`` is what ``make_env`` builds on while recording: a MockServer, an APIServerConfig; None in a replay. ``is_live``
    tells whether it is the server of ``--hermes-live``.
    """

    base_url: str
    model: str
    endpoint: Any = None
    is_live: bool = False


@dataclass(frozen=True, kw_only=True)
class PassedRecording:
    """The recording of a test that passed. ``lock`` keeps others from recording to ``path``."""

    path: Path
    tape: Tape
    redactor: Redactor
    lock: contextlib.ExitStack


@dataclass(frozen=True, kw_only=True)
class OpenCassette:
    """A cassette that is played, recorded, or both. ``upstream`` is the server to record; None in a replay or where none is named."""

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
        """Return the server that ``make_env`` uses if the test names none; None if ``make_env`` has to choose."""
        return self.server() if self.is_only_played or self.upstream is not None else None

    def server(self) -> RecordedServer:
        """Return the value of the fixture. Raises: nothing names the server to record → UsageError."""
        if self.is_only_played:
            return RecordedServer(base_url=NO_SERVER, model=self.model)
        if self.upstream is None:
            raise UsageError(
                "recorded_server cannot be recorded: nothing names the real server.\n"
                "  expected  --hermes-live with a provider, or a fixture hermes_upstream that returns a MockServer, a base URL or an\n"
                "            APIServerConfig\n"
                "  fix       pytest --hermes-live --provider ... --hermes-model ... --hermes-record=once"
            )
        base_url = self.upstream if isinstance(self.upstream, str) else self.upstream.base_url
        return RecordedServer(base_url=str(base_url), model=self.model, endpoint=self.upstream, is_live=self.is_live)


def claim_path(directory: Path, path: Path, *, test: str, name: str) -> None:
    """Note in ``directory`` that a test records ``path``; all workers of a run share it. Raises: another test does → UsageError."""
    directory.mkdir(exist_ok=True)
    claim = directory / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    try:
        with claim.open("x", encoding="utf-8") as file:
            file.write(test)
    except FileExistsError:
        other = claim.read_text(encoding="utf-8")
        if other != test:
            raise UsageError(
                f"two tests of this run record the cassette {name}.\n"
                f"  expected  one cassette for each test that records; replays may share one\n"
                f"  seen      {other}\n            {test}\n"
                f"  fix       give one of them another name, or record only one of them"
            ) from None


def model_name(upstream: Any, session: CassetteSession) -> str:
    """Return the name of the model that is recorded or was recorded."""
    named = getattr(upstream, "model", None) or getattr(upstream, "model_name", None)
    if named is None and session.player is not None:
        tape = session.player.tape
        bodies = [call.request.body for call in tape.calls if isinstance(call, ModelCall)]
        requested = (body.get("model") for body in bodies if isinstance(body, dict))
        named = tape.header.model or next((model for model in requested if isinstance(model, str)), None)
    return str(named or "mock-model")
