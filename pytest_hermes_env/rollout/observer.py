"""Watches an environment at work without changing what it does; on purpose it can make one step fail.

`watching_layer` stands at ToolContext and HermesAgentLoop of the layer under test, `watch_environment` at the methods of one
instance. Both write into the current journal, whose faults say what fails in its scenario.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.layer import Layer
from pytest_hermes_env.rollout.buffers import copied, picture
from pytest_hermes_env.rollout.call_site import called_by_layer, outside_place
from pytest_hermes_env.rollout.faults import InjectedFault, current_faults
from pytest_hermes_env.rollout.journal import (
    Cleaned,
    ContextOpened,
    EvaluationLogged,
    ItemScored,
    LoopEnded,
    LoopStarted,
    Place,
    Reward,
    current_journal,
    current_rollout,
)
from pytest_hermes_env.rollout.result_reads import with_witness

__all__ = ["watch_environment", "watching_layer"]

_LOGGED = ("metrics", "task_name", "model_name", "start_time", "end_time", "generation_parameters", "samples")
"""Parameters of evaluate_log by position."""


@contextlib.contextmanager
def watching_layer(layer: Layer) -> Iterator[None]:
    """Record every ToolContext and every loop of the layer while the context lasts."""
    context_class: Any = layer.context_class
    loop_class: Any = layer.loop_class
    real_init, real_cleanup, real_run = context_class.__init__, context_class.cleanup, loop_class.run

    @functools.wraps(real_init)
    def init(self: Any, task_id: str, *args: Any, **kwargs: Any) -> None:
        real_init(self, task_id, *args, **kwargs)
        journal = current_journal.get()
        if journal is not None:
            self._hermes_env_number = number = journal.next_number()
            journal.add(
                ContextOpened(number=number, task_id=str(task_id), by_layer=called_by_layer(layer), place=outside_place(layer))
            )

    @functools.wraps(real_cleanup)
    def cleanup(self: Any, *args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is not None:
            journal.add(Cleaned(number=getattr(self, "_hermes_env_number", 0), task_id=str(self.task_id)))
        return real_cleanup(self, *args, **kwargs)

    @functools.wraps(real_run)
    async def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is None:
            return await real_run(self, *args, **kwargs)
        task_id = str(getattr(self, "task_id", ""))
        messages = kwargs.get("messages", args[0] if args else ())
        journal.add(
            LoopStarted(
                task_id=task_id,
                by_layer=called_by_layer(layer),
                tools=tuple(_tool_names(getattr(self, "tool_schemas", None) or ())),
                temperature=getattr(self, "temperature", None),
                max_turns=getattr(self, "max_turns", None),
                place=outside_place(layer),
                max_tokens=getattr(self, "max_tokens", None),
                extra_body=copied(getattr(self, "extra_body", None)),
                messages=tuple(copied(list(messages))) if isinstance(messages, list | tuple) else (),
            )
        )
        error = ""
        result = None
        token = current_rollout.set((task_id, "loop"))
        try:
            result = await real_run(self, *args, **kwargs)
            await _after_the_loop()
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        else:
            return result
        finally:
            current_rollout.reset(token)
            turns = getattr(result, "turns_used", 0)
            journal.add(LoopEnded(task_id=task_id, turns_used=turns, error=error))

    context_class.__init__, context_class.cleanup, loop_class.run = init, cleanup, run
    try:
        yield
    finally:
        context_class.__init__, context_class.cleanup, loop_class.run = real_init, real_cleanup, real_run


async def _after_the_loop() -> None:
    faults = current_faults()
    if faults.fails("loop_raises"):
        raise InjectedFault("the agent loop failed, as this scenario asks")
    if faults.fault == "loop_hangs":
        faults.reached.set()
        await asyncio.Event().wait()


def _tool_names(schemas: Any) -> list[str]:
    return [str(schema["function"]["name"]) for schema in schemas]


def watch_environment(env: Any, layer: Layer) -> None:
    """Record the rewards and logged evaluations of one environment instance, whoever asks for them."""
    env.compute_reward = _watched_reward(env.compute_reward, layer)
    env.evaluate_log = _watched_evaluate_log(env.evaluate_log)
    env.collect_trajectory = _watched_collect(env.collect_trajectory)


def _watched_reward(real: Callable[..., Any], layer: Layer) -> Callable[..., Any]:
    source = _definition_place(real)

    async def compute_reward(*args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is None:
            return await real(*args, **kwargs)
        inputs = _Inputs(args, kwargs, layer)
        faults = current_faults()
        if faults.fault == "reward_waits":
            await faults.wait_in_reward()
        if faults.fault == "reward_hangs":
            faults.reached.set()
            await asyncio.Event().wait()
        if faults.fails("reward_raises"):
            error = "the reward failed, as this scenario asks"
            journal.add(Reward(value=None, error=error, injected=True, place=source, **inputs.fields()))
            raise InjectedFault(error)
        args, kwargs = with_witness(args, kwargs, layer)
        token = current_rollout.set((inputs.task_id, "reward"))
        try:
            answer = real(*args, **kwargs)
            value = await answer if inspect.isawaitable(answer) else answer
        except BaseException as raised:
            if isinstance(raised, Exception):
                text = f"{type(raised).__name__}: {shorten(str(raised))}"
                place = _raise_place(raised, source)
                journal.add(Reward(value=None, error=text, injected=False, place=place, **inputs.fields()))
            raise
        finally:
            current_rollout.reset(token)
            if faults.look is not None:
                faults.look()
        journal.add(Reward(value=value, error="", injected=False, place=source, **inputs.fields()))
        return value

    return compute_reward


class _Inputs:
    """What compute_reward was given, kept as it was, and as the live objects that it may change."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> None:
        given = [*args, *kwargs.values()]
        result = next((value for value in given if isinstance(value, layer.agent_loop.AgentResult)), None)
        context = next((value for value in given if isinstance(value, layer.context_class)), None)
        self.task_id = str(getattr(context, "task_id", ""))
        self._live = {"item": kwargs.get("item", args[0] if args else None), "messages": getattr(result, "messages", None)}
        self._kept = {name: copied(value) for name, value in self._live.items()}

    def fields(self) -> dict[str, Any]:
        """Return the inputs, and which of them differ by now, as fields of `Reward`."""
        messages = self._kept["messages"]
        changed = tuple(name for name, value in self._live.items() if picture(value) != picture(self._kept[name]))
        return {
            "task_id": self.task_id,
            "item": self._kept["item"],
            "messages": tuple(messages) if isinstance(messages, list) else (),
            "changed": changed,
        }


def _watched_collect(real: Callable[..., Any]) -> Callable[..., Any]:
    async def collect_trajectory(*args: Any, **kwargs: Any) -> Any:
        outcome = await real(*args, **kwargs)
        journal = current_journal.get()
        item = outcome[0] if isinstance(outcome, tuple) and outcome else None
        if journal is not None and isinstance(item, dict):
            logprobs = item.get("inference_logprobs")
            journal.add(
                ItemScored(
                    tokens=tuple(item.get("tokens") or ()),
                    masks=tuple(item.get("masks") or ()),
                    logprobs=None if logprobs is None else tuple(logprobs),
                    score=item.get("scores"),
                )
            )
        return outcome

    return collect_trajectory


def _watched_evaluate_log(real: Callable[..., Any]) -> Callable[..., Any]:
    async def evaluate_log(*args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is not None:
            given = dict(zip(_LOGGED, args, strict=False)) | kwargs
            metrics, samples = given.get("metrics") or {}, given.get("samples") or []
            journal.add(EvaluationLogged(metrics=copied(dict(metrics)), samples=len(samples)))
        return await real(*args, **kwargs)

    return evaluate_log


def _definition_place(function: Any) -> Place:
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    if code is None:
        return Place()
    return Place(path=code.co_filename, line=code.co_firstlineno, function=code.co_name)


def _raise_place(error: BaseException, source: Place) -> Place:
    """Return the deepest line of the traceback that lies in the reward function's own file."""
    place = source
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == source.path:
            place = Place(path=source.path, line=traceback.tb_lineno, function=traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return place
