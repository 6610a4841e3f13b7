"""One call of a reward: on copies of its inputs, with an in-memory machine of its own, and watched."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.rollout.journal import Place
from pytest_hermes_env.rollout.probing.record import Trial
from pytest_hermes_env.rollout.probing.tracked_items import watched

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox

__all__ = ["LONGEST_S", "Bench"]

LONGEST_S = 5.0
"""How long one reward may take on an in-memory machine, in seconds."""

FIELDS = frozenset({"messages", "managed_state", "turns_used", "finished_naturally", "reasoning_per_turn", "tool_errors"})


class Bench:
    """Where one environment's reward is tried. ``asked`` tells how many requests its model got so far."""

    def __init__(self, env: Any, item: Any, *, asked: Callable[[], int]) -> None:
        self._item, self._asked = item, asked
        # the class's own, not the instance's, which is watched and would be given another result
        self._reward: Callable[..., Any] = type(env).compute_reward.__get__(env)
        self._code = getattr(inspect.unwrap(self._reward), "__code__", None)

    async def trial(self, result: Any, *, machine: FakeSandbox | None = None, is_watched: bool = False) -> Trial:
        """Return what compute_reward made of a copy of ``result``; a watched item tells of every change."""
        from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415 - only where rewards are probed
        from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

        machine = machine or FakeSandbox(unscripted="not found", allow_leftovers=True)
        ctx = FakeToolContext(machine, task_id="reward-probe")
        item, given = copy.deepcopy(self._item), copy.deepcopy(result)
        noted: list[str] = []
        if is_watched:
            item = watched(item, lambda: noted.append("the item"))
        before, asked = _picture(item, given), self._asked()
        value: Any = None
        error, place, is_foreign, is_timeout = "", Place(), False, False
        try:
            answer = self._reward(item, given, ctx)
            if inspect.isawaitable(answer):
                answer = await asyncio.wait_for(_awaited(answer), LONGEST_S)
            value = answer
        except TimeoutError:
            error, is_timeout = f"no end within {LONGEST_S:g} s", True
        except Exception as raised:  # noqa: BLE001 - the record says it; rules judge it
            error = f"{type(raised).__name__}: {shorten(str(raised))}"
            place, is_foreign = self._place_of(raised), _is_foreign(raised, given)
        trial = Trial(
            value=value,
            error=error,
            place=place,
            is_foreign=is_foreign,
            is_timeout=is_timeout,
            changed=tuple(dict.fromkeys([*noted, *_changed(before, _picture(item, given))])),
            cleanups=ctx.cleanups,
            judged=self._asked() - asked,
            absent=tuple(dict.fromkeys(text.split()[0] if text.split() else text for text in machine.not_found)),
        )
        ctx.cleanup()
        return trial

    def _place_of(self, error: BaseException) -> Place:
        """Return the deepest line of the traceback in the reward's own file, or the last line there is."""
        found = Place()
        traceback = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if self._code is not None and code.co_filename == self._code.co_filename:
                found = Place(path=code.co_filename, line=traceback.tb_lineno, function=code.co_name)
            traceback = traceback.tb_next
        return found


async def _awaited(answer: Any) -> Any:
    return await answer


def _is_foreign(error: Exception, result: Any) -> bool:
    """Tell whether a reward stumbled over what AgentResult does not have: that is HE301's finding."""
    if isinstance(error, AttributeError):
        return isinstance(error.obj, type(result)) and error.name not in FIELDS
    return isinstance(error, TypeError) and "AgentResult" in str(error) and "subscriptable" in str(error)


def _picture(item: Any, result: Any) -> dict[str, Any]:
    return {"the item": copy.deepcopy(item)} | {
        f"result.{name}": copy.deepcopy(getattr(result, name)) for name in sorted(FIELDS - {"managed_state"})
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, value in before.items() if not _is_equal(value, after[name]))


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays answer with an array: their text tells as well
        return repr(one) == repr(other)
