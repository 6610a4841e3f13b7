"""Intercepts hermes-agent's tool registry: a double answers tool calls, and each call is recorded.

Every tool call of every layer, the agent's and the verifier's, passes ``tools.registry.registry.dispatch``. While a `ToolSeam` is
open, the sandbox of the call's task_id answers, or lets hermes' own tool answer, and the seam records the call.

Source: hermes-agent 0.19, tools/registry.py and model_tools.py.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from hermes_env_shared.hermes_names import tool_name
from pytest_hermes_env.patches import intercept, replace
from pytest_hermes_env.sandbox.hermes_modules import hermes_module, hermes_name

if TYPE_CHECKING:
    from pytest_hermes_env.faults.plan import FaultPlan
    from pytest_hermes_env.types import Sandboxes


DESKTOP_ONLY = frozenset({"read_terminal", "close_terminal"})
"""Tools of the toolset ``terminal`` that hermes offers only in its desktop application; no rollout has them."""

NEED_NOTHING = frozenset({
    "clarify", "delegate_task", "execute_code", "memory", "patch", "process", "project_create", "project_list", "project_switch",
    "read_file", "search_files", "session_search", "skill_manage", "skill_view", "skills_list", "terminal", "todo", "write_file",
})  # fmt: skip
"""Tools that hermes offers on a machine that has nothing."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call that passed the seam.

    ``result`` is what the caller got, ``seconds`` how long it took. ``turn`` is the turn of the rollout's loop, from 1; 0 outside
    of a loop, where the caller is the verifier or other code of the environment.
    """

    task_id: str
    name: str
    arguments: dict[str, Any]
    result: Any
    seconds: float
    turn: int = 0

    @property
    def by_agent(self) -> bool:
        """Whether the agent made this call, and not the verifier."""
        return self.turn > 0


class RealTools:
    """No sandbox: hermes' own tools answer every call, and the seam only records."""

    backend = "local"
    is_confined = False
    description = "hermes' own tools"

    def sandbox_of(self, task_id: str) -> Self:
        """Return this object, which serves all rollouts."""
        del task_id
        return self

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        """Let hermes' own tool answer."""
        del name, arguments


class Turns:
    """The current turn of each rollout's loop. The loop's watcher writes, the seam reads, from any thread."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._begun: set[str] = set()
        self._lock = threading.Lock()

    def of(self, task_id: str) -> int:
        """Return the turn of a rollout's loop, or 0 when none is running."""
        return self._turns.get(task_id, 0)

    def next(self, task_id: str) -> None:
        """Note a request of a loop to its model."""
        with self._lock:
            self._begun.add(task_id)
            self._turns[task_id] = self._turns.get(task_id, 0) + 1

    def has_begun(self, task_id: str) -> bool:
        """Return whether a rollout's loop has ever asked its model."""
        return task_id in self._begun

    def end(self, task_id: str) -> None:
        """Note the end of a loop."""
        with self._lock:
            self._turns.pop(task_id, None)


class ToolSeam:
    """Intercepts hermes' registry while it is open: as a context manager, or between `open` and `close`.

    ``sandbox`` answers; ``record`` is called with each answered call, in the thread of the call. Of several open seams, the one
    that was opened last answers first. ``faults``: a `FaultPlan`, whose faults of the sandbox are played.
    """

    def __init__(
        self,
        sandbox: Sandboxes,
        *,
        record: Callable[[ToolCall], None] | None = None,
        turns: Turns | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        self.sandbox: Any = sandbox
        self.turns = turns or Turns()
        self._record = record
        self._faults = faults
        self._calls: list[ToolCall] = []
        self._seen: set[str] = set()
        self._taken_over = contextlib.ExitStack()
        self._is_open = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every answered call so far, in the order of their answers."""
        return tuple(self._calls)

    def open(self) -> Self:
        """Start answering. Does nothing when already open."""
        if not self._is_open:
            self._taken_over.enter_context(
                intercept("ToolRegistry.dispatch", self._dispatch, owner=hermes_module("tools.registry").registry)
            )
            if self._faults is not None:
                from pytest_hermes_env.faults.tool_calls import refusing_directories  # noqa: PLC0415 - most tests have no plan

                self._taken_over.enter_context(refusing_directories(self._faults))
            self._is_open = True
        return self

    def close(self) -> None:
        """Stop answering. Does nothing when not open."""
        self._is_open = False
        self._taken_over.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _dispatch(self, real: Callable[..., Any], name: str, args: dict[str, Any], **kwargs: Any) -> Any:
        task_id = str(kwargs.get("task_id") or "")
        arguments = dict(args)
        turn = self.turns.of(task_id)
        started = time.monotonic()
        result: Any = None
        try:
            if self._faults is None:
                result = self._answer(real, name, args, kwargs)
            else:
                from pytest_hermes_env.faults.tool_calls import answer_or_fault  # noqa: PLC0415 - most tests have no plan

                result = answer_or_fault(self._faults, name, arguments, lambda: self._answer(real, name, args, kwargs))
        except Exception as error:
            result = error
            raise
        finally:
            seconds = time.monotonic() - started
            call = ToolCall(task_id=task_id, name=name, arguments=arguments, result=result, seconds=seconds, turn=turn)
            self._calls.append(call)
            if self._record is not None:
                self._record(call)
        return result

    def _answer(self, real: Callable[..., Any], name: str, args: dict[str, Any], kwargs: dict[str, Any]) -> Any:
        task_id = str(kwargs.get("task_id") or "")
        sandbox = self.sandbox.sandbox_of(task_id)
        if task_id not in self._seen:
            self._seen.add(task_id)
            if "tools.terminal_tool" in sys.modules and hasattr(
                sandbox, "alias"
            ):  # an in-memory machine: its layer may have chosen a directory here
                directory = hermes_name("tools.terminal_tool", "_task_env_overrides").get(task_id, {}).get("cwd")
                if directory:
                    sandbox.alias(directory)
        acting_as = getattr(sandbox, "acting_as", None)
        party = "agent" if self.turns.of(task_id) else "verifier"
        with acting_as(party) if acting_as is not None else contextlib.nullcontext():
            answer = sandbox.call(name, args)
        if answer is None:
            answer = real(name, args, **kwargs)
            if hasattr(sandbox, "after_call"):
                sandbox.after_call()
        return answer


def _never() -> bool:
    return False


@contextlib.contextmanager
def offering(tool_names: Iterable[str], *, withheld: Iterable[str] = ()) -> Iterator[None]:
    """Make hermes offer these tools although their requirements (a key, a browser) are absent: a double answers them.

    ``withheld`` are tools that it must not offer although their requirements may be present.
    """
    forget_tools = hermes_name("model_tools", "_clear_tool_defs_cache")
    from tools.registry import invalidate_check_fn_cache, registry  # noqa: PLC0415

    checks = dict.fromkeys(tool_names) | dict.fromkeys(withheld, _never)
    entries = {name: registry.get_entry(name) for name in checks}
    changed = [(entry, checks[name]) for name, entry in entries.items() if entry and entry.check_fn not in {None, checks[name]}]
    if not changed:  # as for all environments of a contract run but the first: hermes keeps its memo of the tools
        yield
        return
    with contextlib.ExitStack() as replaced:
        for entry, check in changed:
            replaced.enter_context(replace("ToolEntry.check_fn", check, owner=entry))
        forget_tools()
        try:
            yield
        finally:
            replaced.close()
            invalidate_check_fn_cache()
            forget_tools()


def tool_offer(config: Any, sandbox: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tools that hermes offers whatever the machine has, and those that it does not offer whatever the machine has.

    That is what ``sandbox`` offers to an environment with this configuration, before its disabled toolsets are taken away.

    A sandbox offers every tool of the toolsets that ``enabled_toolsets`` or ``distribution`` names, and otherwise only tools
    that need nothing. A cassette offers the recorded tools. With `RealTools`, hermes decides by what the machine has; only
    toolsets of which it would offer no tool at all are offered whole, so that the environment can be built.
    """
    import model_tools  # noqa: PLC0415 - hermes is heavy
    import toolset_distributions  # noqa: PLC0415
    import toolsets  # noqa: PLC0415

    def tools_of(names: Iterable[str]) -> frozenset[str]:
        return frozenset(tool for name in names for tool in toolsets.resolve_toolset(name)) - DESKTOP_ONLY

    distribution = getattr(config, "distribution", None)
    if distribution is None:
        given = getattr(config, "enabled_toolsets", None) or ()
    else:  # those that it may sample
        given = (toolset_distributions.get_distribution(distribution) or {}).get("toolsets", ())
    named = [name for name in given if toolsets.validate_toolset(name)]
    if isinstance(sandbox, RealTools):
        available = model_tools.get_tool_definitions
        return tools_of(one for one in named if not available(enabled_toolsets=[one], quiet_mode=True)), frozenset()
    recorded = getattr(sandbox, "offered", None)
    offered = tools_of(named) | set(map(tool_name, NEED_NOTHING)) if recorded is None else frozenset(recorded)
    return offered, tools_of(toolsets.TOOLSETS) - offered
