"""Watches an environment at work without changing what it does; on purpose it can make one step fail.

`watching_layer` stands at ToolContext and HermesAgentLoop of the layer under test, `watch_environment` at the methods of one
instance. Both write into the current journal. Faults are asked for by a scenario and raise `InjectedFault`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.rollout.journal import (
    Cleaned,
    ContextOpened,
    EvaluationLogged,
    ItemScored,
    LoopEnded,
    LoopStarted,
    Place,
    Reward,
    UnknownRead,
    current_journal,
)
from pytest_hermes_env.rollout.layer import Layer

__all__ = ["Fault", "Faults", "InjectedFault", "watch_environment", "watching_layer"]

Fault = Literal["none", "loop_raises", "reward_raises", "reward_hangs"]


class InjectedFault(RuntimeError):
    """Raised by a scenario in place of what an environment could meet; never a finding by itself."""


@dataclass
class Faults:
    """Which step fails at the moment. ``reached`` is set when a hanging step was entered."""

    fault: Fault = "none"
    reached: asyncio.Event = field(default_factory=asyncio.Event)


def outside_place(layer: Layer) -> Place:
    """Return the nearest calling line that is neither this package's nor the layer's own: the environment's."""
    hidden = (_package_directory(__file__, 2), _package_directory(inspect.getfile(layer.base), 1))
    own_files = {inspect.getfile(layer.base), layer.agent_loop.__file__, layer.tool_context.__file__}
    frame: FrameType | None = sys._getframe(1)
    fallback = Place()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith((hidden[0], "<")) or path in own_files or _is_library(path):
            frame = frame.f_back
            continue
        if not path.startswith(hidden[1]) or _is_environment_file(path, own_files):
            return Place(path=path, line=frame.f_lineno, function=frame.f_code.co_name)
        frame = frame.f_back
    return fallback


def _is_called_by_layer(layer: Layer) -> bool:
    """Tell whether the watched call, two frames up, came from the layer's own files."""
    frame = sys._getframe(2)
    return frame.f_code.co_filename in {
        inspect.getfile(layer.base),
        layer.agent_loop.__file__,
        layer.tool_context.__file__,
    }


def _is_environment_file(path: str, own_files: set[str | None]) -> bool:
    """Tell an environment that lives in the layer's package from the layer's own plumbing."""
    return path not in own_files and any("compute_reward" in line for line in linecache.getlines(path))


def _package_directory(file: str, levels: int) -> str:
    parts = file.split("/")
    return "/".join(parts[:-levels]) + "/"


def _is_library(path: str) -> bool:
    return "/asyncio/" in path or "/concurrent/" in path or path.endswith(("/threading.py", "/contextlib.py"))


@contextlib.contextmanager
def watching_layer(layer: Layer, faults: Faults) -> Iterator[None]:
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
                ContextOpened(
                    number=number, task_id=str(task_id), by_layer=_is_called_by_layer(layer), place=outside_place(layer)
                )
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
        journal.add(
            LoopStarted(
                task_id=task_id,
                by_layer=_is_called_by_layer(layer),
                tools=tuple(_tool_names(getattr(self, "tool_schemas", None) or ())),
                temperature=getattr(self, "temperature", None),
                max_turns=getattr(self, "max_turns", None),
                place=outside_place(layer),
            )
        )
        error = ""
        result = None
        try:
            result = await real_run(self, *args, **kwargs)
            _fail_if_asked(faults)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        else:
            return result
        finally:
            turns = getattr(result, "turns_used", 0)
            journal.add(LoopEnded(task_id=task_id, turns_used=turns, error=error))

    context_class.__init__, context_class.cleanup, loop_class.run = init, cleanup, run
    try:
        yield
    finally:
        context_class.__init__, context_class.cleanup, loop_class.run = real_init, real_cleanup, real_run


def _fail_if_asked(faults: Faults) -> None:
    if faults.fault == "loop_raises":
        raise InjectedFault("the agent loop failed, as this scenario asks")


def _tool_names(schemas: Any) -> list[str]:
    return [str(schema["function"]["name"]) for schema in schemas]


def watch_environment(env: Any, layer: Layer, faults: Faults) -> None:
    """Record the rewards and logged evaluations of one environment instance, whoever asks for them."""
    env.compute_reward = _watched_reward(env.compute_reward, layer, faults)
    env.evaluate_log = _watched_evaluate_log(env.evaluate_log)
    env.collect_trajectory = _watched_collect(env.collect_trajectory)


def _watched_reward(real: Callable[..., Any], layer: Layer, faults: Faults) -> Callable[..., Any]:
    source = _definition_place(real)

    async def compute_reward(*args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is None:
            return await real(*args, **kwargs)
        if faults.fault == "reward_hangs":
            faults.reached.set()
            await asyncio.Event().wait()
        if faults.fault == "reward_raises":
            error = "the reward failed, as this scenario asks"
            journal.add(Reward(value=None, error=error, injected=True, place=source))
            raise InjectedFault(error)
        args, kwargs = _with_witness(args, kwargs, layer)
        try:
            answer = real(*args, **kwargs)
            value = await answer if inspect.isawaitable(answer) else answer
        except BaseException as raised:
            if isinstance(raised, Exception):
                text = f"{type(raised).__name__}: {shorten(str(raised))}"
                journal.add(Reward(value=None, error=text, injected=False, place=_raise_place(raised, source)))
            raise
        journal.add(Reward(value=value, error="", injected=False, place=source))
        return value

    return compute_reward


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
            metrics = kwargs.get("metrics", args[0] if args else {})
            samples = kwargs.get("samples") or []
            journal.add(EvaluationLogged(metrics=dict(metrics), samples=len(samples)))
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


# ---------------------------------------------------------------------- the witness


def _with_witness(args: tuple[Any, ...], kwargs: dict[str, Any], layer: Layer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replace the AgentResult among the arguments by one that records reads of what it does not have."""
    result_class = layer.agent_loop.AgentResult

    def exchange(value: Any) -> Any:
        return _witness(value, layer) if isinstance(value, result_class) else value

    return tuple(exchange(value) for value in args), {name: exchange(value) for name, value in kwargs.items()}


def _witness(result: Any, layer: Layer) -> Any:
    """Return a result of a subclass that is equal in all it has, and tells when it is asked for more."""
    if getattr(type(result), "_hermes_env_witness", False):
        return result
    base = type(result)

    def note(name: str) -> None:
        journal = current_journal.get()
        place = outside_place(layer)
        if journal is not None and not name.startswith("__"):
            text = _line(place)
            guarded = ("getattr(" in text or "hasattr(" in text) and f".{name}" not in text
            journal.add(UnknownRead(name=name, guarded=guarded, place=place))

    class Witness(base):  # type: ignore[misc, valid-type]
        _hermes_env_witness = True

        def __getattr__(self, name: str) -> Any:
            note(name)
            raise AttributeError(f"{base.__name__!r} object has no attribute {name!r}")

        def __getitem__(self, key: object) -> Any:
            note(f"[{key!r}]")
            raise TypeError(f"{base.__name__!r} object is not subscriptable")

    Witness.__name__ = base.__name__
    Witness.__qualname__ = base.__qualname__
    witness = object.__new__(Witness)
    witness.__dict__.update(result.__dict__)
    return witness


def _line(place: Place) -> str:
    return linecache.getline(place.path, place.line)
