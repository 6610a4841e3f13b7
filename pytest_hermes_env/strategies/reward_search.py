"""Tries a reward on generated results, and finds the smallest one on which it fails.

Place in the flow: the one engine behind `check_reward`, which a test calls, and behind the probes of the contract, which records what
each call returned.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from pytest_hermes_env.results import agent_result


class _Failure(Protocol):
    @property
    def expression(self) -> str:
        """Python source of the result."""


F = TypeVar("F", bound=_Failure)


def start_of(env: Any, item: Any) -> Any:
    """Return a builder with the prompts of a rollout of ``item``, on the environment's layer."""
    start = agent_result.of(env)
    if isinstance(prompt := getattr(getattr(env, "config", None), "system_prompt", None), str) and prompt:
        start = start.system(prompt)
    question = env.format_prompt(copy.deepcopy(item))
    return start.user(question) if isinstance(question, str) and question else start


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return ``count`` results at most, the same in every run."""
    found: list[Any] = []

    def keep(result: Any) -> None:
        found.append(result)

    decorate: Any = given
    _settings(count, Phase.generate)(decorate(strategy)(keep))()
    return found


def smallest_failure(
    strategy: st.SearchStrategy[Any],
    failure_on: Callable[[Any], F | None],
    kind_of: Callable[[F], object],
    *,
    examples: int,
    derandomize: bool = True,
) -> F | None:
    """Return the failure on the smallest result that fails in the same way as the first one that fails; None without one.

    ``failure_on`` calls the reward. Every run tries the same results, unless ``derandomize`` is False.
    """
    seen: list[F] = []

    def fails(result: Any) -> bool:
        failure = failure_on(result)
        if failure is None or (seen and kind_of(failure) != kind_of(seen[0])):
            return False
        seen.append(failure)
        return True

    try:
        find(strategy, fails, settings=_settings(examples, Phase.generate, Phase.shrink, derandomize=derandomize))
    except HypothesisException:  # none fails, or not each time: then the shortest that was seen counts
        return min(seen, key=lambda failure: len(failure.expression), default=None)
    return seen[-1]


def _settings(count: int, *phases: Phase, derandomize: bool = True) -> settings:
    return settings(
        max_examples=count,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=phases,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
