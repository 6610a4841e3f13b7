"""One call of a reward: on copies of its inputs, with its own in-memory machine.

A watched item notes every change. A comparison does not find a reward that writes the same note into every item: the item had the note before
it was probed.
"""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.probing.record import Trial
from pytest_hermes_env.play.probing.reward_constants import RewardConstants, reward_constants
from pytest_hermes_env.play.raised import NeverEnded, described, first_error, is_from_outside, within
from pytest_hermes_env.play.watchers.call_site import raised_in
from pytest_hermes_env.types import RealToolsUse

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox

LONGEST_S = 60.0
"""Seconds that one reward may take on an in-memory machine, where it may run real programs: one that takes longer hangs."""

FIELDS = frozenset({"messages", "managed_state", "turns_used", "finished_naturally", "reasoning_per_turn", "tool_errors"})
_OF_DICTS = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")
_OF_LISTS = (
    "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
)  # fmt: skip


class RewardRunner:
    """Calls one environment's reward. ``asked`` returns how many requests its model has got; ``begun`` is called before each call."""

    def __init__(
        self,
        env: Any,
        item: Any,
        *,
        asked: Callable[[], int],
        real_tools: RealToolsUse = "confined",
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self._item, self._asked, self._real_tools, self._begun = item, asked, real_tools, begun
        self._spare: FakeSandbox | None = None
        self.runs_programs = False
        """Whether a call so far ran real programs."""
        # the class's method, because the instance's is watched and would get another result
        self._kind = kind = type(env)
        self._reward: Callable[..., Any] = inspect.getattr_static(kind, "compute_reward").__get__(env, kind)
        self._path = getattr(getattr(inspect.unwrap(self._reward), "__code__", None), "co_filename", "")

    @cached_property
    def reward_constants(self) -> RewardConstants:
        """The short texts and patterns in the reward's own code."""
        return reward_constants(self._kind, self._reward)

    def close(self) -> None:
        """Release the machine that is kept for the next call."""
        if self._spare is not None:
            self._spare.close()

    def new_machine(self) -> FakeSandbox:
        """Return an empty in-memory machine."""
        from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415 - only where rewards are probed

        return FakeSandbox(unscripted="not found", allow_leftovers=True, real_tools=self._real_tools)

    async def trial(
        self,
        result: Any,
        *,
        machine: FakeSandbox | None = None,
        is_watched: bool = False,
    ) -> Trial:
        """Return what compute_reward returned for a copy of ``result``; a watched item notes every change."""
        from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415 - only where rewards are probed

        self._begun()
        is_own = machine is not None
        machine = machine or self._spare or self.new_machine()
        files, missed = dict(machine.files.nodes), len(machine.not_found)
        ctx = FakeToolContext(machine, task_id="reward-probe")
        item, given = copy.deepcopy(self._item), copy.deepcopy(result)
        noted: list[str] = []
        if is_watched:
            item = watched(item, lambda: noted.append("the item"))
        before, asked = copied(_fields(item, given)), self._asked()
        value: Any = None
        error, place, is_foreign, is_timeout = "", Place(), False, False
        try:
            answer = self._reward(item, given, ctx)
            if inspect.isawaitable(answer):
                answer = await within(LONGEST_S, answer, progress=lambda: int(time.process_time()))
            value = answer
        except BaseException as raised:
            if is_from_outside(raised):
                raise
            cause = first_error(raised)
            error, is_timeout = described(cause), isinstance(cause, NeverEnded)
            place, is_foreign = raised_in(self._path, cause.__cause__ or cause) or Place(), _is_foreign(cause, given)
        trial = Trial(
            value=value,
            error=error,
            place=place,
            is_foreign=is_foreign,
            is_timeout=is_timeout,
            changed=tuple(dict.fromkeys([*noted, *_changed(before, _fields(item, given))])),
            cleanups=ctx.cleanups,
            judged=self._asked() - asked,
            absent=tuple(dict.fromkeys(text.split()[0] if text.split() else text for text in machine.not_found[missed:])),
        )
        self.runs_programs |= machine.has_cell
        # starting a machine that runs real programs takes longer than most rewards: one that nobody changed is used again
        is_clean = machine.files.nodes == files and machine.cwd == machine.files.cwd and not trial.is_timeout
        self._spare = machine if is_clean and not is_own else None
        if self._spare is None:
            ctx.cleanup()
        return trial


def _is_foreign(error: BaseException, result: Any) -> bool:
    """Return whether a reward failed at an attribute that AgentResult does not have, which HE301 reports."""
    if isinstance(error, AttributeError):
        return isinstance(error.obj, type(result)) and error.name not in FIELDS
    return isinstance(error, TypeError) and "AgentResult" in str(error) and "subscriptable" in str(error)


def _fields(item: Any, result: Any) -> dict[str, Any]:
    return {"the item": item} | {f"result.{name}": getattr(result, name) for name in sorted(FIELDS - {"managed_state"})}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """Return what differs by value: objects of a class without ``__eq__`` are equal to none but themselves."""
    return tuple(name for name, value in before.items() if picture(value) != picture(after[name]))


def watched(value: Any, note: Callable[[], None]) -> Any:
    """Return a copy of plain dicts and lists, and of those inside, that calls ``note`` when it is changed."""
    if type(value) is dict:
        return _noting(dict, _OF_DICTS, note)({key: watched(inner, note) for key, inner in value.items()})
    if type(value) is list:
        return _noting(list, _OF_LISTS, note)([watched(inner, note) for inner in value])
    return value


def _noting(base: type, methods: tuple[str, ...], note: Callable[[], None]) -> type:
    """Return a subclass of dict or list that calls ``note`` in these methods; a copy of it belongs to the reward and is a plain one."""

    def noting(name: str) -> Callable[..., Any]:
        real = getattr(base, name)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            note()
            return real(self, *args, **kwargs)

        return method

    members: dict[str, Any] = {name: noting(name) for name in methods}
    members["__reduce_ex__"] = lambda self, _: (base, (base(self),))
    return type(base.__name__, (base,), members)
