"""Every place where the test kit replaces something that belongs to Python, a library or the code under test.

`PATCHES` lists them: what is replaced, what the replacement does, why, and for how long. The three functions below are the only
way to do it, and they refuse what the table does not list. docs/reference/patches.md shows the same table.

Place in the flow: below every room. Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_CONTRACT_RUN = "while the scenarios of a contract run are played"


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One row of the table. ``targets`` are dotted names; a name that begins with a class is looked up on the class or object
    that the caller passes as ``owner``, because it depends on the environment under test.
    """

    targets: tuple[str, ...]
    does: str
    why: str
    lasts: str


PATCHES: tuple[Patch, ...] = (
    Patch(
        targets=(
            "socket.socket.connect",
            "socket.socket.connect_ex",
            "socket.socket.sendto",
            "socket.socket.sendmsg",
            "socket.getaddrinfo",
            "socket.gethostbyname",
            "socket.gethostbyname_ex",
            "socket.getnameinfo",
        ),
        does="refuse the names of other hosts, resolve those below localhost on this machine, note the addresses of allowed hosts",
        why="Python resolves a name before its audit event, and the resolver asks a DNS server; an allowed host is reached by its address",
        lasts="during a test that uses the kit; during the scenario `setup_offline`; while `--hermes-env` imports",
    ),
    Patch(
        targets=("sys.addaudithook",),
        does="refuse hosts other than this machine and the allowed ones, before Python connects, sends or resolves",
        why="tests must not depend on a network; a hook sees every thread, and functions that were imported before the test",
        lasts="as above, and for threads that a test started as long as they live; Python keeps the hook itself, idle, to the end",
    ),
    Patch(
        targets=(
            "huggingface_hub.constants.HF_HUB_OFFLINE",
            "huggingface_hub.constants.HF_HUB_CACHE",
            "huggingface_hub.constants.HUGGINGFACE_HUB_CACHE",
            "datasets.config.HF_HUB_OFFLINE",
            "datasets.config.HF_DATASETS_OFFLINE",
            "datasets.config.HF_DATASETS_CACHE",
            "datasets.config.HF_MODULES_CACHE",
        ),
        does="switch the dataset hub off; in `setup_offline` and with `hub` the caches are empty directories",
        why="the libraries read these constants, not the variables, once they are imported",
        lasts="during a test that is kept from the network; during the scenario `setup_offline`; during a test that has `hub`",
    ),
    Patch(
        targets=(
            "datasets.load.load_dataset_builder",
            "datasets.load_dataset_builder",
            "datasets.inspect.load_dataset_builder",
        ),
        does="give the library a local directory in place of a repository's name",
        why="every `load_dataset` passes it, however the environment imported it",
        lasts="during a test that has `hub`",
    ),
    Patch(
        targets=(
            "httpx.AsyncHTTPTransport.handle_async_request",
            "httpx.HTTPTransport.handle_request",
            "aiohttp.ClientSession._request",
        ),
        does="record or replay requests to models; in live mode count them; answer the routes of `mock_http`; refuse connections",
        why="openai clients use httpx, atroposlib's token-mode servers use aiohttp",
        lasts="while a cassette is recorded or replayed; during a live test; during a test that has `mock_http`; while a server "
        "with a fault plan runs",
    ),
    Patch(
        targets=("requests.adapters.HTTPAdapter.send",),
        does="count requests to models",
        why="a judge that is called through requests spends the same budget",
        lasts="during a live test",
    ),
    Patch(
        targets=("tenacity.BaseRetrying.iter", "tenacity.AsyncRetrying.iter"),
        does="raise a cassette miss at once instead of retrying",
        why="atroposlib retries in three layers with growing pauses, and a missing recording stays missing",
        lasts="while a cassette is recorded or replayed",
    ),
    Patch(
        targets=("APIServer.openai", "APIServer.*"),
        does="close connections with the event loop, send requests in-process where asked, fail at the first failure, count calls",
        why="an unclosed client fails the next test under -W error, and retries turn one failing call into 27 requests",
        lasts="for the life of the server object, which belongs to one environment that the kit built",
    ),
    Patch(
        targets=("wandb.log",),
        does="collect metrics; with `wandb_capture`, start a run if there is none",
        why="rules and tests read what was logged",
        lasts=f"{_CONTRACT_RUN}; during a test that has `wandb_capture`",
    ),
    Patch(
        targets=(
            "time.time",
            "time.time_ns",
            "time.localtime",
            "time.gmtime",
            "datetime.datetime",
        ),
        does="show another day and another time of day",
        why="a reward must not depend on the clock",
        lasts="in the process of its own of the scenario `reward_probes_elsewhere`",
    ),
    Patch(
        targets=("atroposlib.api.server.app.state",),
        does="give the app of run-api an empty state",
        why="the app keeps its queue and its environments in the module, and every test starts with none",
        lasts="while `run_api` runs in this process",
    ),
    Patch(
        targets=("atroposlib.envs.base.asyncio", "Config.rollout_server_url"),
        does="shorten the pauses of serve's main loop, and name the run-api of the test",
        why="it waits 5 s for other environments before its first step",
        lasts="inside `train_steps`",
    ),
    Patch(
        targets=("HermesAgentLoop.run", "HermesAgentLoop.server"),
        does="note start, end and arguments of each loop, count its turns, and fail or hang where the scenario asks for it",
        why="a tool call is assigned to the agent or the verifier, and to its rollout, by the loop that is running",
        lasts=f"{_CONTRACT_RUN}; while an environment built on a sandbox lives; while a cassette is recorded or replayed",
    ),
    Patch(
        targets=("ToolContext.__init__", "ToolContext.cleanup"),
        does="note each context and its cleanup",
        why="rules check that every context is released",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=(
            "HermesAgentBaseEnv.collect_trajectory",
            "HermesAgentBaseEnv.compute_reward",
            "HermesAgentBaseEnv.evaluate_items",
            "HermesAgentBaseEnv.evaluate_log",
        ),
        does="note items, rewards and evaluations, and fail or hang where the scenario asks for it",
        why="recorded calls belong to rollouts, and rules read rewards with their inputs",
        lasts=f"{_CONTRACT_RUN} (on the instance); while a cassette is recorded or replayed (on the class)",
    ),
    Patch(
        targets=("HermesAgentBaseEnv.get_eval_items",),
        does="return three of the held-out items",
        why="after one full evaluation, the evaluations in which something fails need no more",
        lasts="while such a scenario of a contract run is played (on the instance)",
    ),
    Patch(
        targets=("ToolRegistry.dispatch",),
        does="let the sandbox answer tool calls, and note them",
        why="every tool call of every layer passes this method of hermes-agent's registry",
        lasts="while a sandbox fixture, a contract run or a cassette is open",
    ),
    Patch(
        targets=("ToolEntry.check_fn",),
        does="offer tools whose key, browser or terminal is absent, and withhold others",
        why="the sandbox answers for them, so the model must see the same tools on every machine",
        lasts="while an environment built on a sandbox lives",
    ),
    Patch(
        targets=(
            "agent.lsp.get_service",
            "tools.environments.local._read_terminal_shell_init_config",
            "tools.file_operations.ShellFileOperations._has_command",
            "tools.terminal_tool._sudo_nopasswd_works",
        ),
        does="return no language servers, no shell start-up files, no optional programs such as ripgrep, and no sudo",
        why="they would run outside of the confined shell, and a rollout must not depend on what a machine has",
        lasts="while a local sandbox is open",
    ),
    Patch(
        targets=("os._exit",),
        does="raises SystemExit in the process of the tests",
        why="an environment that ends the process would end the run without a report, and with its own exit code",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("os._Environ.__setitem__", "os._Environ.__delitem__", "os.chdir"),
        does="note changes made by the environment's own code",
        why="rules report variables and working directories that are not restored",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=(
            "tempfile.mkdtemp",
            "threading.Thread.start",
            "subprocess.Popen.__init__",
            "aiohttp.ClientSession.__init__",
            "httpx.AsyncClient.__init__",
            "httpx.Client.__init__",
        ),
        does="note what the environment's own code creates; find no space for the directory of a sandbox",
        why="rules report leaked directories, threads, processes and clients with the line that created them; a disk may be full",
        lasts=f"{_CONTRACT_RUN}; while a tool seam with a fault plan is open",
    ),
    Patch(
        targets=("openai.resources.chat.completions.completions.async_maybe_transform",),
        does="return a request of plain JSON values as it is, without what was not given",
        why="openai compares every value with the types of all messages, which changes no such request and is a third of a rollout's CPU time",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("openai._base_client.AsyncAPIClient.request",),
        does="hand a request that has nothing but a body to the mock model of this process, and raise the same errors",
        why="HTTP's headers and cookies, which no scripted model reads, are a tenth of a contract run's CPU time",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("ssl.create_default_context",),
        does="return one context for equal arguments",
        why="reading the certificate authorities takes longer than a scripted rollout",
        lasts=_CONTRACT_RUN,
    ),
    Patch(
        targets=("BaseEnv.__init_subclass__", "HermesAgentBaseEnv.__init__"),
        does="open the cassette of a recorded command when its first environment is built",
        why="the command is a program of the user's, which is not started by the kit's own fixtures",
        lasts="to the end of the recorded or replayed process",
    ),
    Patch(
        targets=("importlib.machinery.SourceFileLoader.get_code", "SourceTree.text_of"),
        does="import and read one file with other contents",
        why="a mutation is tried without changing the user's files",
        lasts="to the end of the process that tries one mutant",
    ),
)


def as_markdown() -> str:
    """Return the table of docs/reference/patches.md."""
    rows = [
        f"| {'<br>'.join(f'`{target}`' for target in patch.targets)} | {patch.does} | {patch.why} | {patch.lasts} |"
        for patch in PATCHES
    ]
    return "\n".join(("| What is replaced | What the replacement does | Why | How long |", "|---|---|---|---|", *rows))


_TARGETS = frozenset(target for patch in PATCHES for target in patch.targets)
_lock = threading.RLock()


@contextlib.contextmanager
def intercept(target: str, handler: Callable[..., Any], *, owner: Any = None) -> Iterator[None]:
    """Call ``handler(real, *args, **kwargs)`` in place of a function or method while the context lasts.

    The first handler of a target installs one wrapper and later ones join it: the handler that was entered last is called
    first, and its ``real`` is the handler before it. They may leave in any order; the last one restores the original.

    Raises: the target is not in `PATCHES` → LookupError.
    """
    owner, name = _located(target, owner)
    with _lock:
        chain = _Chain.of(owner, name)
        chain.change([*chain.handlers, handler])
    try:
        yield
    finally:
        with _lock:
            newest_first = [*reversed(chain.handlers)]
            newest_first.remove(handler)
            chain.change(newest_first[::-1])


@contextlib.contextmanager
def replace(target: str, value: Any, *, owner: Any = None) -> Iterator[None]:
    """Give an attribute another value while the context lasts. Raises: the target is not in `PATCHES` → LookupError."""
    owner, name = _located(target, owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def auditing(prefix: str, handler: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Call ``handler(event, args)`` at Python's audit events with that prefix while the context lasts; an error stops the event."""
    auditor = _Auditor(prefix, handler)
    with _lock:
        if not _auditors.hook_is_added:
            sys.addaudithook(_auditors)
            _auditors.hook_is_added = True
        _auditors.active = (*_auditors.active, auditor)
    try:
        yield
    finally:
        with _lock:
            _auditors.active = tuple(other for other in _auditors.active if other is not auditor)


def keep_auditing(prefix: str, handler: Callable[[str, tuple[Any, ...]], None], threads: frozenset[threading.Thread]) -> None:
    """Call ``handler`` at the audit events of these threads for as long as they live, also after its context."""
    with _lock:
        alive = tuple(
            other for other in _auditors.active if other.threads is None or any(map(threading.Thread.is_alive, other.threads))
        )
        _auditors.active = (*alive, _Auditor(prefix, handler, threads))


@dataclass(frozen=True, slots=True, eq=False)
class _Auditor:
    """Who is told of audit events: those of all threads, or of some."""

    prefix: str
    handler: Callable[[str, tuple[Any, ...]], None]
    threads: frozenset[threading.Thread] | None = None


class _Auditors:
    """The one audit hook of this process: Python has no way to remove one."""

    def __init__(self) -> None:
        self.active: tuple[_Auditor, ...] = ()
        self.hook_is_added = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        told = [auditor for auditor in reversed(self.active) if event.startswith(auditor.prefix)]
        for auditor in [one for one in told if one.threads is None] or told:  # what holds for a thread from before gives way
            if auditor.threads is None or threading.current_thread() in auditor.threads:
                auditor.handler(event, args)


_auditors = _Auditors()


def assign(target: str, value: Any, *, owner: Any = None, name: str = "") -> None:
    """Give an attribute another value for good. ``name`` is the attribute where the target ends in ``*``.

    Raises: the target is not in `PATCHES` → LookupError.
    """
    owner, last = _located(target, owner)
    setattr(owner, name if last == "*" else last, value)


def _located(target: str, owner: Any) -> tuple[Any, str]:
    """Return the object that holds a target, and the attribute's name."""
    if target not in _TARGETS:
        raise LookupError(
            f"{target} is not in the table of pytest_hermes_env.patches: add a row that says what, why and how long"
        )
    holder, _, name = target.rpartition(".")
    if owner is None:
        owner = sys.modules.get(holder) or pkgutil.resolve_name(holder)
    return owner, name


class _Chain:
    """The wrapper that stands in for one attribute, and the handlers that it calls."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self._is_inherited = name not in vars(owner)
        self.real = getattr(owner, name)
        self.handlers: tuple[Callable[..., Any], ...] = ()
        self._entry: Callable[..., Any] = self.real
        self.wrapper = self._new_wrapper()

    @classmethod
    def of(cls, owner: Any, name: str) -> _Chain:
        """Return the chain that is installed, or a new one: also where a test replaced our wrapper by a method of its own."""
        installed = vars(owner).get(name)
        chain = getattr(installed, "_hermes_env_chain", None)
        return chain if isinstance(chain, cls) and chain.wrapper is installed else cls(owner, name)

    def change(self, handlers: list[Callable[..., Any]]) -> None:
        """Install, update or remove the wrapper."""
        was_installed, self.handlers = bool(self.handlers), tuple(handlers)
        self._entry = functools.reduce(lambda real, handler: functools.partial(handler, real), handlers, self.real)
        if handlers and not was_installed:
            setattr(self._owner, self._name, self.wrapper)
        elif not handlers and vars(self._owner).get(self._name) is self.wrapper:
            if self._is_inherited:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self.real)

    def _new_wrapper(self) -> Callable[..., Any]:
        @functools.wraps(self.real)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            return await self._entry(*args, **kwargs)

        @functools.wraps(self.real)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            return self._entry(*args, **kwargs)

        wrapper: Callable[..., Any] = asynchronous if inspect.iscoroutinefunction(self.real) else synchronous
        vars(wrapper)["_hermes_env_chain"] = self
        return wrapper


if __name__ == "__main__":
    print(as_markdown())  # noqa: T201 - the table of the page
