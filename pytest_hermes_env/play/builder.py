"""Builds an environment for a test: on a mock server, with a local tokenizer, without wandb or retries, and releases it."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_hermes_env.atropos import clients
from pytest_hermes_env.errors import EnvironmentSetupError, UseAfterCleanup, shorten
from pytest_hermes_env.inference.server import MockServer
from pytest_hermes_env.inference.transport import IN_PROCESS_URL
from pytest_hermes_env.layer import Layer, layer_of
from pytest_hermes_env.own_machine import is_this_machine
from pytest_hermes_env.play.auto_script import tool_using_policy
from pytest_hermes_env.play.hermes_home import HOME_PREFIX
from pytest_hermes_env.play.raised import described, is_interrupt
from pytest_hermes_env.play.server_kind import PARSER, ServerKind, choose_kind
from pytest_hermes_env.play.watchers.layer import counting_turns
from pytest_hermes_env.play.watchers.services import sharing_tls_context
from pytest_hermes_env.sandbox.seam import ToolSeam, offering, tool_offer

if TYPE_CHECKING:
    from pytest_hermes_env.faults.plan import FaultPlan
    from pytest_hermes_env.live.live_run import LiveAccess

BACKEND = "TERMINAL_ENV"
"""The variable in which a layer tells hermes which backend runs terminals."""
GROUP_SIZE = 2
"""Default number of rollouts per group: the smallest at which rollouts can affect each other."""
_PREFIX = "hermes-env-tokenizer-"
_tokenizers: dict[str, str] = {}
_temporary: list[tempfile.TemporaryDirectory[str]] = []


def shared_tokenizer(template: str = "chatml") -> str:
    """Return the path of the tiny tokenizer with that chat template, built once per process and removed with it.

    Raises: an unknown template → UsageError.
    """
    if not os.path.isdir(_tokenizers.get(template, "")):
        from pytest_hermes_env.inference.tokens import build_tokenizer  # noqa: PLC0415 - heavy

        home = os.environ.get("HERMES_HOME", "")
        if os.path.basename(home).startswith(HOME_PREFIX) and os.path.isdir(home):
            place = tempfile.mkdtemp(prefix=_PREFIX, dir=home)  # removed with all that a killed process leaves there
        else:
            _temporary.append(tempfile.TemporaryDirectory(prefix=_PREFIX))
            place = _temporary[-1].name
        build_tokenizer(Path(place), template=template)
        _tokenizers[template] = place
    return _tokenizers[template]


OWN_ARGUMENTS = ("script", "server", "config", "in_process", "mode", "server_type", "template")
"""What make_env takes besides settings."""
ROLLOUTS = ("agent_rollout", "collect_trajectories", "collect_trajectory", "evaluate", "evaluate_items")
"""Methods that ask the model."""


@dataclass(kw_only=True, repr=False)
class EnvironmentBuilder:
    """Builds environments, and releases them and their servers. One per test.

    ``seam`` returns what answers the tools instead of hermes; it is called at each build. ``allow_unconfined`` lets a live model
    use an unconfined terminal of this machine. ``live`` is the real server that replaces scripts. ``watch`` is called with each
    class before it is built. ``default_server`` is used when a test names neither a script nor a server. ``use_wandb`` is the
    default of the setting of that name. ``faults`` is the plan of the mock models that it builds.
    """

    allow_leftovers: bool = False
    seam: Callable[[], ToolSeam | None] = lambda: None
    allow_unconfined: bool = False
    live: LiveAccess | None = None
    watch: Callable[[type], None] | None = None
    default_server: Any = None
    use_wandb: bool = False
    faults: FaultPlan | None = None
    addresses: set[str] = field(default_factory=set)
    """The base URLs that were given as ``server``."""
    _servers: list[Any] = field(default_factory=list)
    _mocks: list[Any] = field(default_factory=list)
    _built: list[Any] = field(default_factory=list)
    _world: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _counted: set[type] = field(default_factory=set)

    def __repr__(self) -> str:
        return "<make_env of this test>"

    def build(
        self,
        env_class: type,
        *,
        script: Any = None,
        server: Any = None,
        config: Any = None,
        in_process: bool = False,
        mode: str | None = None,
        server_type: str | None = None,
        template: str | None = None,
        **fields: Any,
    ) -> Any:
        """Return an environment of ``env_class`` on a mock model; ``setup`` is not called yet.

        ``script`` scripts the model (a list of turns, a Script, a function of the conversation); without one the model uses
        every tool once and then answers. ``server`` is a MockServer, a base URL or an APIServerConfig instead. ``config``
        replaces the result of ``config_init``. ``in_process`` skips the socket between the openai client and the mock model,
        which is several times faster. ``mode`` "token" is token mode, on a server of type "vllm" or, with ``server_type``, "sglang",
        with the chat template ``template``: by default the one that fits the configured tool_call_parser. ``fields`` override
        single settings of the configuration.

        Raises: EnvironmentSetupError, BadTarget.
        """
        __tracebackhide__ = True
        layer = layer_of(env_class)
        if script is not None and server is not None:
            raise EnvironmentSetupError("make_env was given both script and server; a server has its own script: give one")
        if server is None and script is None:
            server = self.default_server
        if self.live is not None and ((server is None and self.live.is_default) or getattr(server, "is_live", False)):
            server, script, in_process = _live_endpoint(self.live, script, server_type), None, False
            server_type = None
            if self.live.server.tokenizer:
                fields.setdefault("tokenizer_name", self.live.server.tokenizer)
        if self.watch is not None:
            self.watch(layer.base)
            self.watch(layer.agent_loop.HermesAgentLoop)
        if isinstance(server, str):
            self.addresses.add(server)
        server = getattr(server, "endpoint", None) or server
        config = initial_config(env_class) if config is None else config
        if not hasattr(type(config), "model_fields"):
            raise EnvironmentSetupError(
                f"make_env needs a configuration such as {env_class.__name__}.config_init() returns as config, not {shorten(config)}: "
                f"for single settings write make_env({env_class.__name__}, group_size=2)"
            )
        kind = choose_kind(config, fields, mode=mode, server_type=server_type, template=template, server=server)
        if kind.has_tokens and in_process:
            raise EnvironmentSetupError(
                f"make_env was given in_process=True and a {kind.server_type} server, whose client asks for tokens over HTTP only: "
                "leave out in_process"
            )
        settings = self._settings(config, kind, fields)
        if server is None:
            server = self._mock(script, settings, is_listening=not in_process)
        if kind.has_tokens and getattr(server, "template", "") is None:
            server.speak_tokens(template=kind.template, tokenizer=settings.tokenizer_name, family=kind.family)
        endpoint = self._endpoint(server, kind, settings, in_process=in_process)
        seam = self.seam()
        if not self.allow_unconfined:
            _keep_live_models_in(endpoint, settings, seam)
        try:
            with contextlib.nullcontext() if self.live else sharing_tls_context():
                env = env_class(config=settings, server_configs=[endpoint], slurm=False, testing=False)
        except TypeError:
            _refuse_without(env_class, getattr(env_class, "__abstractmethods__", ()))
            raise
        required = getattr(layer.base, "__abstractmethods__", ())
        _refuse_without(env_class, [name for name in required if not callable(getattr(env, name, None))])
        for held in env.server.servers:
            if self.live is not None and self.live.is_asked_by(held):
                self.live.connect(held)
            else:
                clients.tame(held, server.transport if in_process else None)
            self._servers.append(held)
        if seam is not None:
            self._enter(seam, layer, settings)
        self._built.append(env)
        return env

    def _enter(self, seam: ToolSeam, layer: Layer, settings: Any) -> None:
        """Let the seam's sandbox answer the tools of an environment that was just built."""
        os.environ[BACKEND] = seam.sandbox.backend
        offered, withheld = tool_offer(settings, seam.sandbox)
        self._world.enter_context(offering(offered, withheld=withheld))
        if layer.base not in self._counted:
            self._counted.add(layer.base)
            self._world.enter_context(counting_turns(layer, seam.turns))

    def close(self) -> None:
        """Release clients and servers; then raise if a mock model got a request that its script does not cover.

        Raises: UnexpectedRequest, LeftoverTurns, ScriptError.
        """
        self.release()
        self.verify()

    def release(self) -> None:
        """Release clients and servers."""
        self._world.close()
        self._counted.clear()
        for held in self._servers:
            clients.release(held)
        self._servers.clear()
        for mock in self._mocks:
            mock.stop()
        for env in self._built:
            for name in ROLLOUTS:
                setattr(env, name, _ended)

    def verify(self) -> None:
        """Check every mock model against its script. Raises: UnexpectedRequest, LeftoverTurns, ScriptError."""
        for mock in self._mocks:
            mock.verify()

    def _mock(self, script: Any, settings: Any, *, is_listening: bool) -> Any:
        is_ours = script is None
        if is_ours:
            script = tool_using_policy(getattr(settings, "max_agent_turns", 30))
        mock = MockServer(script, allow_leftovers=self.allow_leftovers or is_ours, faults=self.faults)
        if is_listening:
            mock.start()
        self._mocks.append(mock)
        return mock

    def _endpoint(self, server: Any, kind: ServerKind, settings: Any, *, in_process: bool) -> Any:
        from atroposlib.envs.server_handling.server_baseline import APIServerConfig  # noqa: PLC0415 - heavy

        __tracebackhide__ = True
        if in_process and not hasattr(server, "transport"):
            raise EnvironmentSetupError(
                f"make_env cannot reach {shorten(server)} in this process: in_process=True is for a script or a MockServer"
            )
        if isinstance(server, APIServerConfig):
            return server
        if in_process:
            base_url: Any = IN_PROCESS_URL
        else:
            base_url = server if isinstance(server, str) else getattr(server, "base_url", None)
        if not isinstance(base_url, str):
            raise EnvironmentSetupError(
                f"make_env cannot use {shorten(server)} as a server: give a MockServer, a base URL or an APIServerConfig"
            )
        return APIServerConfig(
            base_url=base_url,
            model_name=getattr(server, "model", "mock-model"),
            api_key="not-needed",
            server_type=kind.server_type,
            tokenizer_name=settings.tokenizer_name if kind.has_tokens else "none",
            health_check=False,
        )

    def _settings(self, config: Any, kind: ServerKind, fields: dict[str, Any]) -> Any:
        """Return the configuration with settings for tests and with ``fields``."""
        from pydantic import ValidationError  # noqa: PLC0415 - heavy

        __tracebackhide__ = True
        known = type(config).model_fields
        if unknown := [name for name in fields if name not in known]:
            nearest = difflib.get_close_matches(unknown[0], [*OWN_ARGUMENTS, *known], n=3, cutoff=0.6)
            raise EnvironmentSetupError(
                f"{type(config).__name__} has no field {unknown[0]!r}."
                + (f" Nearest: {', '.join(nearest)}." if nearest else f" Its fields: {shorten(', '.join(sorted(known)))}")
            )
        for_tests = {
            "group_size": GROUP_SIZE,
            "use_wandb": self.use_wandb,
            "terminal_backend": "local",
            "data_path_to_save_groups": None,
            "data_dir_to_save_evals": None,
        }
        chosen = {name: value for name, value in for_tests.items() if name in known} | fields
        if "tokenizer_name" in known:
            chosen["tokenizer_name"] = _tokenizer(fields.get("tokenizer_name"), kind.template)
        if kind.has_tokens and PARSER in known and PARSER not in fields:
            chosen[PARSER] = kind.family
        try:
            made = type(config)(**(config.model_dump() | chosen))
        except ValidationError as error:
            rows = "; ".join(f"{'.'.join(map(str, row['loc'])) or 'settings'}: {row['msg']}" for row in error.errors())
            raise EnvironmentSetupError(f"{type(config).__name__} does not accept these settings: {rows}") from None
        if getattr(made, "group_size", 1) < 1:
            raise EnvironmentSetupError(f"make_env was given group_size={made.group_size}: a group has one rollout at least")
        return made


def _ended(*_: Any, **__: Any) -> Any:
    """Stand for what an environment did, after its clients and servers were closed."""
    __tracebackhide__ = True
    raise UseAfterCleanup(
        "this environment was used after the end of the test that made it.\n"
        "  seen      its model is gone: each rollout would fail, and earn nothing\n"
        "  fix       call make_env in the test itself, or in a fixture of function scope"
    )


def _live_endpoint(live: LiveAccess, script: Any, server_type: str | None) -> Any:
    """Return the configuration of the real server. Raises: the test cannot run on it → EnvironmentSetupError."""
    __tracebackhide__ = True
    if script is not None and not live.has_mock:
        raise EnvironmentSetupError(
            "make_env was given a script in a test marked hermes_live, which never runs on a mock model.\n"
            "  fix       leave the script out, or mark it hermes_live(or_mock=True): it then runs on the script without --hermes-live"
        )
    if server_type not in {None, live.server.server_type}:
        raise EnvironmentSetupError(
            f"make_env was given server_type={server_type!r}, and the real server is of type {live.server.server_type!r}: "
            f"{live.server.describe()}.\n"
            "  fix       leave server_type out, or choose a --provider of that type"
        )
    return live.server.config()


def _refuse_without(env_class: type, missing: Iterable[str]) -> None:
    """Raise if the class lacks methods, or has something else under their names."""
    if names := ", ".join(sorted(missing)):
        raise EnvironmentSetupError(f"{env_class.__name__} cannot be built: it lacks {names}")


def _keep_live_models_in(endpoint: Any, settings: Any, seam: ToolSeam | None) -> None:
    """Refuse to give a model on another machine an unconfined terminal of this one.

    Raises: EnvironmentSetupError.
    """
    __tracebackhide__ = True
    host = urlsplit(str(endpoint.base_url)).hostname or ""
    is_ours = is_this_machine(host) or host.endswith(".invalid")
    sandbox = seam.sandbox if seam is not None else None
    backend = sandbox.backend if sandbox is not None else _as_hermes_reads(getattr(settings, "terminal_backend", "local"))
    if is_ours or backend not in {"local", "fake"} or (sandbox is not None and sandbox.is_confined):
        return
    seen = sandbox.description if sandbox is not None else "hermes' own terminal, with your files and your network"
    raise EnvironmentSetupError(
        f"A live model at {host} would be given a terminal of this machine that nothing confines.\n"
        "  expected  a sandbox in which the model's commands cannot do harm\n"
        f"  seen      {seen}\n"
        "  fix       take the fixture local_sandbox (bubblewrap or user namespaces confine it), fake_sandbox, or another\n"
        "            terminal_backend; --hermes-confine=off accepts the risk"
    )


def _as_hermes_reads(backend: object) -> str:
    """Return a backend as most of hermes' tools read TERMINAL_ENV: no name is local, and capitals do not matter.

    Its terminal tool takes the exact names only and refuses the others. Source: tools/file_tools.py, tools/browser_tool.py and
    tools/terminal_tool.py of hermes-agent 0.19.
    """
    return str(backend or "local").strip().lower() or "local"


def _tokenizer(given: str | None, template: str) -> str:
    __tracebackhide__ = True
    if given is None:
        return shared_tokenizer(template)
    looks_like_path = given.startswith(("/", "./", "../", "~"))
    if looks_like_path and not Path(given).expanduser().is_dir():
        raise EnvironmentSetupError(
            f"There is no tokenizer directory {given}. Leave tokenizer_name out to get the tiny local one, "
            "or take the path from the hermes_tokenizer fixture."
        )
    return given


def config_init_of(env_class: Any) -> tuple[Any, str, tuple[str, ...] | None]:
    """Return what ``config_init`` returned, or None; the error that it raised, as text; and the names that its configuration dropped.

    None in place of the names: it made no configuration while it ran that could be watched.
    """
    given: list[tuple[Any, set[str]]] = []
    before = sys.getprofile()
    sys.setprofile(_noting_fields(given))
    try:
        returned = env_class.config_init()
    except BaseException as error:
        if is_interrupt(error):
            raise
        return None, described(error), None
    finally:
        sys.setprofile(before)
    if inspect.iscoroutine(returned):
        returned.close()  # or Python would warn of it in a later test
    kind = env_class.env_config_cls if isinstance(env_class.env_config_cls, type) else object
    dropped = [_dropped(made, names) for made, names in given if issubclass(made, kind)]
    return returned, "", tuple(sorted(set().union(*dropped))) if dropped else None


def _noting_fields(given: list[tuple[Any, set[str]]]) -> Callable[[FrameType, str, Any], None]:
    """Return a profiler that notes the class and the names of each pydantic model that is made from names."""
    from pydantic import BaseModel  # noqa: PLC0415 - heavy

    ways = {
        BaseModel.__init__.__code__: ("self", "data"),
        BaseModel.model_validate.__func__.__code__: ("cls", "obj"),  # type: ignore[attr-defined]
        BaseModel.model_construct.__func__.__code__: ("cls", "values"),  # type: ignore[attr-defined]
        BaseModel.model_copy.__code__: ("self", "update"),
    }

    def note_names(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in ways:
            made, names = (frame.f_locals.get(name) for name in ways[frame.f_code])
            if isinstance(names, Mapping):
                given.append((made if isinstance(made, type) else type(made), {*map(str, names)}))

    return note_names


def _dropped(made: Any, names: set[str]) -> set[str]:
    """Return the names that a configuration's class does not have; none for one that takes others, or changes what it is given first."""
    validators = made.__pydantic_decorators__.model_validators.values()
    has_aliases = any(field.validation_alias for field in made.model_fields.values())
    takes_more = made.model_config.get("extra") == "allow" or has_aliases or any(one.info.mode != "after" for one in validators)
    return set() if takes_more else names - made.model_fields.keys()


def initial_config(env_class: Any) -> Any:
    """Return the configuration that ``config_init`` returns; the defaults of its class if it returns none."""
    from pydantic import BaseModel  # noqa: PLC0415 - heavy

    returned, *_ = config_init_of(env_class)
    first = returned[0] if isinstance(returned, tuple) and returned else returned
    return first if isinstance(first, BaseModel) else env_class.env_config_cls()
