"""Runs a reward function on generated results, and reports the smallest one on which it fails.

Place in the flow: a test calls `check_reward` with an environment from ``make_env`` and an item. It needs no model and no sandbox:
the results are built, and the tool context uses an in-memory machine.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import copy
import inspect
import linecache
import math
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, find, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from pytest_hermes_env.errors import BadTarget, RewardProblem, StrategyError, UsageError, shorten, with_type
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.results import agent_result
from pytest_hermes_env.strategies.rollouts import agent_results

MAX_TURNS = 4
Bounds = tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """A failure on one result.

    ``what`` completes the sentence "compute_reward …". ``kind`` is equal for failures of one cause. ``place`` is the source line, or
    "".
    """

    expression: str
    result: Any
    kind: str
    what: str
    place: str = ""


def check_reward(
    env: Any,
    item: Any,
    *,
    results: st.SearchStrategy[Any] | None = None,
    context: Any = None,
    examples: int = 100,
    bounds: Bounds = (0.0, 1.0),
    derandomize: bool = True,
) -> None:
    """Run ``env.compute_reward(item, result, ctx)`` on generated results: it must return a finite number within ``bounds``.

    ``results`` is a strategy of AgentResults; by default `agent_results` with the environment's own prompt, tools and layer.
    ``context`` makes the ``ctx`` of one call (default: a FakeToolContext on an empty machine without scripted commands); a value that
    is not callable is passed unchanged to every call. ``bounds`` are inclusive; None allows every finite number. Every run tries the
    same results, unless ``derandomize`` is False.

    It also works inside a running event loop, which it blocks: the reward then runs on a loop in another thread.

    Raises: the reward fails on a result → RewardProblem, with the smallest one; invalid arguments → StrategyError; not an
    environment → UsageError.
    """
    __tracebackhide__ = True
    _check_arguments(env, results, examples, bounds)
    strategy = _results_for(env, item) if results is None else results
    probe = _Probe(env, item, _contexts(context), bounds)
    failure = _outside_event_loop(lambda: probe.search(strategy, examples, derandomize))
    if failure is not None:
        raise RewardProblem(
            f"{type(env).__name__}.compute_reward {failure.what}.\n"
            f"  item      {shorten(repr(item))}\n"
            f"  result    {failure.expression}\n"
            f"  at        {failure.place or 'an unknown line'}\n"
            "  fix       paste the result into a test, and fix the function until it passes:\n"
            "            reward = await env.compute_reward(item, result, tool_context)"
        )


def _check_arguments(env: Any, results: Any, examples: Any, bounds: Any) -> None:
    __tracebackhide__ = True
    if isinstance(env, type):
        raise UsageError(
            f"check_reward() takes an environment, not its class {env.__name__}.\n"
            f"  fix       check_reward(make_env({env.__name__}), item), with the fixture make_env"
        )
    if not callable(getattr(env, "compute_reward", None)):
        raise UsageError(f"check_reward() takes an environment; {type(env).__name__} has no compute_reward.")
    if results is not None and not isinstance(results, st.SearchStrategy):
        raise StrategyError(
            "check_reward(results=...) takes a strategy of results.\n"
            f"  seen      {with_type(results)}\n"
            "  fix       results=agent_results(...), or results=hypothesis.strategies.sampled_from([...])"
        )
    if not isinstance(examples, int) or isinstance(examples, bool) or examples < 1:
        raise StrategyError(f"check_reward(examples=...) takes an integer from 1; got {with_type(examples)}.")
    is_pair = isinstance(bounds, list | tuple) and len(bounds) == 2  # noqa: PLR2004 - a pair
    is_range = is_pair and all(isinstance(end, int | float) for end in bounds) and bounds[0] <= bounds[1]
    if bounds is not None and not is_range:
        raise StrategyError(
            f"check_reward(bounds=...) takes (lowest, highest) in this order, or None; got {with_type(bounds)}."
        )


def _results_for(env: Any, item: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for results of this item, on this environment's layer, with its tools."""
    try:
        layer_of(type(env))
    except BadTarget:
        return agent_results()
    schemas, _ = env._resolve_tools_for_group()  # noqa: SLF001 - the layer has no public method
    turns = min(MAX_TURNS, getattr(getattr(env, "config", None), "max_agent_turns", MAX_TURNS))
    return agent_results(schemas or None, max_turns=max(turns, 1), start=start_of(env, item))


def _contexts(context: Any) -> Callable[[], Any]:
    if context is not None:
        return context if callable(context) else lambda: context
    from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415 - only where it is used
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    return lambda: FakeToolContext(FakeSandbox(unscripted="not found"))


def _outside_event_loop(search: Callable[[], _Failure | None]) -> _Failure | None:
    """Run the search here, or in a new thread if an event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return search()
    current = contextvars.copy_context()
    with concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="check-reward") as pool:
        return pool.submit(current.run, search).result()


class _Probe:
    """Calls one reward function repeatedly, on one event loop."""

    def __init__(self, env: Any, item: Any, contexts: Callable[[], Any], bounds: Bounds) -> None:
        self._env, self._item, self._contexts, self._bounds = env, item, contexts, bounds
        self._code: CodeType | None = getattr(inspect.unwrap(env.compute_reward), "__code__", None)

    def search(self, strategy: st.SearchStrategy[Any], examples: int, derandomize: bool) -> _Failure | None:
        """Return the smallest failure, or None if every result got a reward."""
        with asyncio.Runner() as runner:
            found = _smallest_failure(
                strategy, lambda result: self._failure_on(runner, result), examples=examples, derandomize=derandomize
            )
            return self._placed(runner, found) if found is not None and not found.place else found

    def _failure_on(self, runner: asyncio.Runner, result: Any) -> _Failure | None:
        """Compute one reward, and return how it failed; None for a valid reward."""
        expression, given = repr(result), copy.deepcopy(result)
        try:
            value, is_awaitable = self._compute_reward(runner, result)
        except Exception as error:  # noqa: BLE001 - whatever the reward raises is the finding
            name, text = type(error).__name__, f": {shorten(str(error))}" if str(error) else ""
            place = self._line_of(error)
            return _Failure(expression=expression, result=given, kind=name + place, what=f"raised {name}{text}", place=place)
        problem = _problem(value, self._bounds)
        if not is_awaitable:
            problem = "but not from a coroutine: the layer awaits it, so it must be `async def`"
        if not problem:
            return None
        return _Failure(expression=expression, result=given, kind=problem, what=f"returned {shorten(repr(value))}, {problem}")

    def _compute_reward(self, runner: asyncio.Runner, result: Any) -> tuple[Any, bool]:
        """Return the reward, and whether it was awaited."""
        ctx = self._contexts()
        try:
            made = self._env.compute_reward(self._item, result, ctx)
            is_awaitable = inspect.isawaitable(made)
            return runner.run(_awaited(made)) if is_awaitable else made, is_awaitable
        finally:
            if callable(cleanup := getattr(ctx, "cleanup", None)):
                cleanup()

    def _line_of(self, error: Exception) -> str:
        """Return the last line of the environment's file in the traceback, or of the whole traceback."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if self._code is not None and frame.filename == self._code.co_filename]
        last = (own or frames)[-1]
        return _source_line(last.filename, last.lineno or 0)

    def _placed(self, runner: asyncio.Runner, failure: _Failure) -> _Failure:
        """Return the failure with the line that returned the value, found by computing the reward once more with a profiler."""
        if self._code is None:
            return failure
        lines = [self._code.co_firstlineno]

        def watch(frame: FrameType, event: str, _value: Any) -> None:
            if event == "return" and frame.f_code is self._code:
                lines.append(frame.f_lineno)

        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            self._failure_on(runner, failure.result)
        finally:
            sys.setprofile(before)
        return replace(failure, place=_source_line(self._code.co_filename, lines[-1]))


async def _awaited(made: Any) -> Any:
    return await made


def _problem(value: Any, bounds: Bounds) -> str:
    """Return what is wrong with a reward; empty for a valid one. The layer accepts the same numbers.

    Source: ``as_reward`` of this distribution's ``environments.trainer.scoring``.
    """
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return "a boolean: return 1.0 or 0.0"
    try:
        number = float(value) if hasattr(value, "__float__") else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        return "which is not a number"
    if not math.isfinite(number):
        return "which is not finite"
    if bounds is not None and not bounds[0] <= number <= bounds[1]:
        return f"which is not between {bounds[0]} and {bounds[1]}"
    return ""


def _source_line(path: str, line: int) -> str:
    return f"{path}:{line}: {linecache.getline(path, line).strip()}"


def start_of(env: Any, item: Any) -> Any:
    """Return a builder with the prompts of a rollout of ``item``, on the environment's layer."""
    start = agent_result.of(env)
    if isinstance(prompt := getattr(getattr(env, "config", None), "system_prompt", None), str) and prompt:
        start = start.system(prompt)
    question = env.format_prompt(copy.deepcopy(item))
    return start.user(question) if isinstance(question, str) and question else start


def _smallest_failure(
    strategy: st.SearchStrategy[Any], failure_on: Callable[[Any], _Failure | None], *, examples: int, derandomize: bool
) -> _Failure | None:
    """Return the failure on the smallest result that fails in the same way as the first one that fails; None without one.

    ``failure_on`` calls the reward. Every run tries the same results, unless ``derandomize`` is False.
    """
    seen: list[_Failure] = []

    def fails(result: Any) -> bool:
        failure = failure_on(result)
        if failure is None or (seen and failure.kind != seen[0].kind):
            return False
        seen.append(failure)
        return True

    chosen = settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        find(strategy, fails, settings=chosen)
    except HypothesisException:  # none fails, or not each time: then the shortest that was seen counts
        return min(seen, key=lambda failure: len(failure.expression), default=None)
    return seen[-1]
