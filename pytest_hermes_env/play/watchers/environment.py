"""Records rewards, scored items and logged evaluations of one environment instance; makes a reward fail or hang where asked.

A reward gets an AgentResult that is equal to the rollout's, and records reads of attributes that AgentResult does not have.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import linecache
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.layer import Layer
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.faults import Faults, InjectedFault
from pytest_hermes_env.play.journal import (
    NEVER_RETURNED,
    Caught,
    EvaluationLogged,
    ItemScored,
    Place,
    Reward,
    UnknownRead,
    current_journal,
    current_rewarded,
    current_rollout,
    note,
)
from pytest_hermes_env.play.raised import described, is_from_outside
from pytest_hermes_env.play.watchers.call_site import evaluating_at, outside_place, raised_in
from pytest_hermes_env.play.watchers.caught_errors import noting_caught_errors

_LOGGED = ("metrics", "task_name", "model_name", "start_time", "end_time", "generation_parameters", "samples")
"""Parameters of evaluate_log by position."""
_rewarded: ContextVar[list[str]] = ContextVar("hermes_env_rewarded")
"""The task ids of the rewards in the running rollout."""


@contextlib.contextmanager
def watching_environment(env: Any, layer: Layer) -> Iterator[None]:
    """Record the rewards, items and logged evaluations of one instance, whoever calls the methods, while the context lasts."""
    reward = functools.partial(_compute_reward, layer, _definition_place(env.compute_reward))
    with (
        intercept("HermesAgentBaseEnv.compute_reward", reward, owner=env),
        intercept("HermesAgentBaseEnv.evaluate_log", _evaluate_log, owner=env),
        intercept("HermesAgentBaseEnv.collect_trajectory", _collect_trajectory, owner=env),
        contextlib.ExitStack() as stack,
    ):
        if hasattr(env, "evaluate_items"):  # a former layer has none
            handler = functools.partial(_evaluate_items, layer)
            stack.enter_context(intercept("HermesAgentBaseEnv.evaluate_items", handler, owner=env))
        yield


async def _compute_reward(layer: Layer, source: Place, real: Any, *args: Any, **kwargs: Any) -> Any:
    journal = current_journal.get()
    if journal is None:
        return await _awaited(real(*args, **kwargs))
    inputs, faults = _Inputs(args, kwargs, layer), journal.faults

    is_plain, caught = False, tuple[Caught, ...]()

    def note_reward(value: Any, error: str = "", *, injected: bool = False, place: Place = source) -> None:
        fields = inputs.fields()
        _rewarded.get([]).append(inputs.task_id)
        journal.add(
            Reward(value=value, error=error, injected=injected, place=place, is_plain=is_plain, caught=caught, **fields)
        )

    await _wait(faults)
    if faults.fails("reward_raises"):
        error = "the reward failed, as this scenario requires"
        note_reward(None, error, injected=True)
        raise InjectedFault(error)
    if (planned := faults.planned_reward()) is not None:
        note_reward(planned, injected=True)
        return planned
    args, kwargs = _with_recorded_reads(args, kwargs, layer)
    if faults.fault == "sandbox_lost":
        _lose(next((one for one in (*args, *kwargs.values()) if isinstance(one, layer.tool_context.ToolContext)), None))
    token = current_rollout.set((inputs.task_id, "reward"))
    current_rewarded.set((inputs.item, inputs.result))
    try:
        with noting_caught_errors(os.path.dirname(source.path), inputs.item) as noted:
            value = real(*args, **kwargs)
            is_plain = not inspect.isawaitable(value)
            value = await _awaited(value)
        caught = tuple(noted)
    except BaseException as raised:
        if journal.is_late or not is_from_outside(raised):
            error = NEVER_RETURNED if journal.is_late else described(raised)
            note_reward(None, error, place=raised_in(source.path, raised) or source)
        raise
    finally:
        current_rollout.reset(token)
        if faults.look is not None:
            faults.look()
    note_reward(value)
    return value


def _lose(context: Any) -> None:
    """Let every method of a ToolContext raise, as those of a sandbox that is gone."""

    def gone(*args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise InjectedFault("the sandbox is gone, as this scenario requires")

    for name in dir(context) if context is not None else ():
        if not name.startswith("_") and name != "cleanup" and callable(getattr(type(context), name, None)):
            setattr(context, name, gone)


async def _wait(faults: Faults) -> None:
    if faults.fault == "reward_waits":
        await faults.wait_in_reward()
        if faults.look_before is not None:
            faults.look_before()
    if faults.fault == "reward_hangs":
        faults.reached.set()
        await asyncio.Event().wait()


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


class _Inputs:
    """The arguments of one call of compute_reward: copies from before the call, and the live objects that it may change."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> None:
        given = [*args, *kwargs.values()]
        result = next((value for value in given if isinstance(value, layer.agent_loop.AgentResult)), None)
        context = next((value for value in given if isinstance(value, layer.tool_context.ToolContext)), None)
        self.task_id = str(getattr(context, "task_id", ""))
        self.result = result
        self.item = kwargs.get("item", args[0] if args else None)
        self._live = {"item": self.item, "messages": getattr(result, "messages", None)}
        self._before = {name: copied(value) for name, value in self._live.items()}

    def fields(self) -> dict[str, Any]:
        """Return the inputs, and the names of those that differ by now, as fields of `Reward`."""
        messages = self._before["messages"]
        changed = tuple(name for name, value in self._live.items() if picture(value) != picture(self._before[name]))
        return {
            "task_id": self.task_id,
            "item": self._before["item"],
            "messages": tuple(messages) if isinstance(messages, list) else (),
            "changed": changed,
        }


def _with_recorded_reads(args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with each AgentResult replaced by one that records reads of what it does not have."""
    result_class = layer.agent_loop.AgentResult

    def exchange(value: Any) -> Any:
        return _recording(value, layer) if isinstance(value, result_class) else value

    return tuple(exchange(value) for value in args), {name: exchange(value) for name, value in kwargs.items()}


def _recording(result: Any, layer: Layer) -> Any:
    base = type(result)
    if getattr(base, "_hermes_env_records_reads", False):
        return result

    class Recording(base):  # type: ignore[misc, valid-type]
        _hermes_env_records_reads = True

        def __getattr__(self, name: str) -> Any:
            _note_read(name, layer)
            raise AttributeError(f"{base.__name__!r} object has no attribute {name!r}")

        def __getitem__(self, key: object) -> Any:
            _note_read(f"[{key!r}]", layer)
            raise TypeError(f"{base.__name__!r} object is not subscriptable")

    Recording.__name__ = base.__name__
    Recording.__qualname__ = base.__qualname__
    recording = object.__new__(Recording)
    recording.__dict__.update(result.__dict__)
    return recording


def _note_read(name: str, layer: Layer) -> None:
    if not name.startswith("__"):
        place = outside_place(layer)
        line = linecache.getline(place.path, place.line)
        guarded = ("getattr(" in line or "hasattr(" in line) and f".{name}" not in line
        note(UnknownRead(name=name, guarded=guarded, place=place))


_numbers = itertools.count(0.001, 0.001)
"""Logprobs of which each rollout has its own."""


async def _collect_trajectory(real: Any, *args: Any, **kwargs: Any) -> Any:
    journal = current_journal.get()
    rewarded: list[str] = []
    token = _rewarded.set(rewarded)
    try:
        with contextlib.nullcontext() if journal is None else journal.faults.rollout():
            outcome = await real(*args, **kwargs)
    finally:
        _rewarded.reset(token)
    item = outcome[0] if isinstance(outcome, tuple) and outcome else None
    if isinstance(item, dict):
        is_numbered = journal is not None and journal.faults.fault in {"rewards_fall", "rewards_rise"}
        if is_numbered and item.get("tokens") and item.get("inference_logprobs") is None:
            item = {**item, "inference_logprobs": [-next(_numbers)] * len(item["tokens"])}  # chat mode has none: training does
            outcome = (item, *outcome[1:])
        logprobs = item.get("inference_logprobs")
        note(
            ItemScored(
                tokens=tuple(item.get("tokens") or ()),
                masks=tuple(item.get("masks") or ()),
                logprobs=None if logprobs is None else tuple(logprobs),
                score=item.get("scores"),
                sequences=1 + len(item.get("more_rows") or ()),
                task_id=rewarded[-1] if rewarded else "",
            )
        )
    return outcome


async def _evaluate_log(real: Any, *args: Any, **kwargs: Any) -> Any:
    given = dict(zip(_LOGGED, args, strict=False)) | kwargs
    metrics, samples = given.get("metrics") or {}, given.get("samples") or []
    failed = [sample for sample in samples if _has_failed(sample)]
    error = next((str(sample["error"]) for sample in failed if sample.get("error")), "")
    note(EvaluationLogged(metrics=copied(dict(metrics)), samples=len(samples), failed=len(failed), error=shorten(error)))
    return await real(*args, **kwargs)


def _has_failed(sample: Any) -> bool:
    """Whether a sample has no score, or an error and no score other than 0."""
    if not isinstance(sample, dict):
        return False
    score = sample.get("score", 0.0)
    return score is None or (bool(sample.get("error")) and not score)


async def _evaluate_items(layer: Layer, real: Any, *args: Any, **kwargs: Any) -> Any:
    token = evaluating_at.set(outside_place(layer))
    try:
        return await _awaited(real(*args, **kwargs))
    finally:
        evaluating_at.reset(token)


def _definition_place(function: Any) -> Place:
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    if code is None:
        return Place()
    return Place(path=code.co_filename, line=code.co_firstlineno, function=code.co_name)
