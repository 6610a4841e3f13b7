"""The tools' worlds of a contract run: each family of scenarios has its own, and one seam leads each call to the right one.

A call belongs to the journal that is current where it is made; a layer that runs its tools in threads without their context
is known by the task that it opened.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.rollout.journal import Crossed, Journal, current_journal, current_rollout
from pytest_hermes_env.sandbox.seam import ToolCall, Turns

__all__ = ["Worlds"]

TOOL_ERROR = "the tool failed, as this scenario asks"


@dataclass
class Worlds:
    """A world that passes each call on to the world of its journal, or lets it fail or hang where the journal says so."""

    first: Any
    turns: Turns = field(default_factory=Turns)
    _journals: dict[str, Journal] = field(default_factory=dict)
    _every: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._every.append(self.first)

    @property
    def backend(self) -> str:
        """The backend of all of them."""
        return str(self.first.backend)

    @property
    def is_confined(self) -> bool:
        """Whether commands are kept from this machine."""
        return bool(self.first.is_confined)

    @property
    def description(self) -> str:
        """What answers."""
        return str(self.first.description)

    @property
    def not_found(self) -> tuple[str, ...]:
        """What was asked for and not there, in any of them."""
        return tuple(text for world in self._every for text in world.not_found)

    def add(self, world: Any) -> Any:
        """Take in one more world, and return it."""
        if not any(known is world for known in self._every):
            self._every.append(world)
        return world

    def sandbox_of(self, task_id: str) -> _Routed:
        """Return what answers the calls of a rollout."""
        return _Routed(self, task_id)

    def record(self, call: ToolCall) -> None:
        """Write a call into its journal."""
        journal = self.journal_of(call.task_id)
        if journal is None:
            return
        journal.tool_calls.append(call)
        task_id, phase = current_rollout.get()
        if task_id and call.task_id and task_id != call.task_id:
            journal.add(Crossed(task_id=task_id, phase=phase, other=call.task_id, tool=call.name))

    def journal_of(self, task_id: str) -> Journal | None:
        """Return the journal that a call of the rollout belongs to."""
        journal = current_journal.get()
        if journal is not None:
            self._journals[task_id] = journal
        return journal or self._journals.get(task_id)


class _Routed:
    """One rollout's sandbox, in the world of its family."""

    def __init__(self, worlds: Worlds, task_id: str) -> None:
        self._worlds = worlds
        self._task_id = task_id

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Answer one call."""
        journal = self._worlds.journal_of(self._task_id)
        faults = journal.faults if journal is not None else None
        if faults is not None and faults.fault == "tools_fail":
            return json.dumps({"output": TOOL_ERROR, "exit_code": 1, "error": TOOL_ERROR})
        if faults is not None and faults.fault == "tool_hangs" and self._worlds.turns.of(self._task_id):
            faults.hang_in_thread()
        return self._here().call(name, arguments)  # type: ignore[no-any-return]

    def acting_as(self, party: str) -> contextlib.AbstractContextManager[None]:
        """Let what an in-memory machine reads and writes meanwhile be this party's."""
        sandbox = self._here()
        return sandbox.acting_as(party) if hasattr(sandbox, "acting_as") else contextlib.nullcontext()

    def alias(self, prefix: str) -> None:
        """Pass on to an in-memory machine what directory its layer took."""
        sandbox = self._here()
        if hasattr(sandbox, "alias"):
            sandbox.alias(prefix)

    def _here(self) -> Any:
        journal = self._worlds.journal_of(self._task_id)
        world = journal.world if journal is not None and journal.world is not None else self._worlds.first
        return world.sandbox_of(self._task_id)
