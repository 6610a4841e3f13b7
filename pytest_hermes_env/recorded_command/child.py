"""The cassette in the process of a recorded command: from the first environment that is built to the end of the process.

Place in the flow: `startup/sitecustomize.py` calls `prepare` when atroposlib is imported. From there it works as in a test: a
session intercepts requests and watches rollouts, a seam intercepts tool calls.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.live.network_guard import NetworkGuard
from pytest_hermes_env.patches import assign
from pytest_hermes_env.recorded_command.process_settings import VARIABLE, Report, Settings

BASE = "HermesAgentBaseEnv"
RECORDED = "recorded.json"
"""The file in the run's directory that holds a recording until the command has succeeded."""

EXIT_BY_SIGTERM = 143
TERMINAL_ENV = "TERMINAL_ENV"


def prepare(module: ModuleType, directory: str) -> None:
    """Wait for an environment: ``module`` is atroposlib's, just loaded. A replay blocks the network from here on."""
    place = Path(directory)
    settings = Settings.read(place)
    guard = _ReplayGuard(test="") if settings.plays else None
    if guard is not None:
        guard.__enter__()
    cassette = CommandCassette(place, settings, guard)
    base: Any = module.BaseEnv
    inherited = base.__init_subclass__

    def init_subclass(cls: type, /, **kwargs: Any) -> None:
        inherited.__func__(cls, **kwargs) if hasattr(inherited, "__func__") else inherited(**kwargs)
        if cls.__name__ == BASE:
            _watch(cls, cassette)

    assign("BaseEnv.__init_subclass__", classmethod(init_subclass), owner=base)


def _watch(base: Any, cassette: CommandCassette) -> None:
    """Open the cassette when the first environment of a layer is built, and route the tools of each environment."""
    real = vars(base).get("__init__") or base.__init__

    @functools.wraps(real)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        cassette.open(kwargs.get("server_configs", args[1] if len(args) > 1 else None))
        real(self, *args, **kwargs)
        cassette.give_tools(self)

    assign("HermesAgentBaseEnv.__init__", init, owner=base)


class _ReplayGuard(NetworkGuard):
    """Blocks the network with texts that do not mention tests; refusals are reported at the end."""

    def _text(self, happened: str, seen: str, host: str) -> str:
        del host
        return f"{happened}: a replay reaches no other machine.\n  seen      {seen}"


class CommandCassette:
    """One cassette, from `open` to the end of the process."""

    def __init__(self, place: Path, settings: Settings, guard: _ReplayGuard | None) -> None:
        self._place = place
        self._settings = settings
        self._guard = guard
        self._process = 0
        self._session: Any = None
        self._world: Any = None
        self._stack = contextlib.ExitStack()

    def open(self, server_configs: Any) -> None:
        """Intercept requests from here on. Does nothing if it is open. Raises: another process opened it → SystemExit."""
        if self._session is not None:
            return
        _forget(self._settings)
        self._process = os.getpid()
        try:
            with (self._place / "taken").open("x", encoding="utf-8") as file:
                file.write(str(self._process))
        except FileExistsError:
            Report(
                process=self._process,
                error="a second process of the command builds an environment.\n"
                "  expected  one process with environments: a cassette keeps the order of its rollouts\n"
                "  fix       record each process with a separate command and cassette",
            ).write(self._place)
            sys.exit(2)
        Report(process=self._process).write(self._place)
        configs = server_configs if isinstance(server_configs, list) else [server_configs]
        self._upstream = next((str(url) for each in configs if (url := getattr(each, "base_url", None))), "")
        self._model = next((str(name) for each in configs if (name := getattr(each, "model_name", None))), "")
        self._session = self._stack.enter_context(self._made([getattr(each, "api_key", None) for each in configs]))
        atexit.register(self._finish)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_BY_SIGTERM))

    def _made(self, keys: list[Any]) -> Any:
        from pytest_hermes_env.cassette.format import read_tape  # noqa: PLC0415 - heavy
        from pytest_hermes_env.cassette.player import Player  # noqa: PLC0415
        from pytest_hermes_env.cassette.recorder import Recorder  # noqa: PLC0415
        from pytest_hermes_env.cassette.redact import Redactor  # noqa: PLC0415
        from pytest_hermes_env.cassette.session import CassetteSession  # noqa: PLC0415
        from pytest_hermes_env.redaction.secret_names import MIN_KNOWN, secrets_of  # noqa: PLC0415

        given = {f"api_key_{number}": str(key) for number, key in enumerate(keys) if key and len(str(key)) >= MIN_KNOWN}
        self._redactor = Redactor(known=secrets_of(os.environ) | given)
        settings = self._settings
        path = Path(settings.cassette)
        return CassetteSession(
            name=settings.name,
            record_command=settings.again,
            player=Player(read_tape(path), redactor=self._redactor) if settings.plays else None,
            recorder=None if settings.plays else Recorder(),
            tools=settings.tools,
            allow_leftovers="hermes-env replay --allow-leftovers -- ...",
        )

    def give_tools(self, env: Any) -> None:
        """Route the tools of an environment through the cassette, and watch its classes."""
        from pytest_hermes_env.layer import layer_of  # noqa: PLC0415
        from pytest_hermes_env.sandbox.seam import RealTools, ToolSeam, offering  # noqa: PLC0415
        from pytest_hermes_env.sandbox.tool_offer import tool_offer  # noqa: PLC0415

        session, layer = self._session, layer_of(type(env))
        session.watch.watch(layer.base)
        session.watch.watch(type(env))
        session.watch.watch(layer.loop_class)
        if self._world is None:
            self._world = session.world(RealTools()) or RealTools()
            self._stack.enter_context(ToolSeam(self._world, record=session.note_tool_call))
        if session.serves_tools:
            os.environ[TERMINAL_ENV] = self._world.backend
            offer = tool_offer(env.config, self._world)
            self._stack.enter_context(offering(offer.offered, withheld=offer.withheld))

    def _finish(self) -> None:
        if os.getpid() != self._process:  # a fork
            return
        self._stack.close()
        error = ""
        try:
            if self._settings.plays:
                self._session.verify(allow_leftovers=self._settings.allow_leftovers)
            else:
                self._keep()
        except HermesEnvError as problem:
            error = f"{type(problem).__name__}: {problem}"
        except BaseException as problem:  # a failure here must not look like success
            error = f"{type(problem).__name__}: {problem}"
            raise
        finally:
            rollouts = sorted(self._session.watch.rollouts, key=lambda each: each.number)
            Report(
                process=self._process,
                is_whole=True,
                error=error,
                calls=self._session.played if self._settings.plays else self._session.recorder.calls,
                rollouts=len(rollouts),
                rewards=[rollout.reward for rollout in rollouts if rollout.has_reward],
                refused=[] if self._guard is None else self._guard.hosts,
            ).write(self._place)

    def _keep(self) -> None:
        from pytest_hermes_env.cassette.origin import header_of  # noqa: PLC0415
        from pytest_hermes_env.cassette.save import save_tape  # noqa: PLC0415

        settings = self._settings
        header = header_of(
            recorded_from=settings.recorded_from or f"the server at {self._upstream or 'an unknown address'}",
            provider=settings.provider,
            model=self._model,
            test=settings.again,
        )
        save_tape(self._place / RECORDED, self._session.tape(header), self._redactor.knowing(self._session.sent))


def _forget(settings: Settings) -> None:
    """Remove the variables that a tool's process would inherit."""
    os.environ.pop(VARIABLE, None)
    if settings.python_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = settings.python_path
