"""check_reward finds the smallest result on which a reward function breaks, and says so ready to paste."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from environments.agent_loop import AgentResult
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import agent_result, check_reward
from pytest_hermes_env.errors import RewardProblem, StrategyError, UsageError
from pytest_hermes_env.strategies import agent_results

HERE = Path(__file__)
ITEM = {"question": "What is 6 * 7?"}


class Context:
    """A tool context without a world: counts."""

    def __init__(self) -> None:
        self.cleanups = 0

    def cleanup(self) -> None:
        self.cleanups += 1


class Judged:
    """An environment whose reward is a function of the result."""

    def __init__(self, reward: Callable[[Any], Any]) -> None:
        self.reward = reward
        self.seen: list[Any] = []

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> Any:
        self.seen.append((item, result, ctx))
        return self.reward(result)  # the line that returns


def final(result: Any) -> str:
    spoken = [message["content"] for message in result.messages if message["role"] == "assistant"]
    return next((text for text in reversed(spoken) if text), "")


def returning_line() -> str:
    lines, start = inspect.getsourcelines(Judged.compute_reward)
    (line,) = [number for number, text in enumerate(lines, start) if "the line that returns" in text]
    return f"{HERE}:{line}: return self.reward(result)  # the line that returns"


def problem(env: Any, item: Any = ITEM, **options: Any) -> str:
    with pytest.raises(RewardProblem) as caught:
        check_reward(env, item, **{"context": Context, **options})
    return str(caught.value)


def report(what: str, expression: str, at: str = "", item: Any = ITEM) -> str:
    return (
        f"Judged.compute_reward {what}.\n"
        f"  item      {item!r}\n"
        f"  result    {expression}\n"
        f"  at        {at or returning_line()}\n"
        "  fix       paste the result into a test, and fix the function until it passes:\n"
        "            reward = await env.compute_reward(item, result, tool_context)"
    )


def test_a_good_reward_passes() -> None:
    """A hundred results by default, each with a context of its own, cleaned up."""
    env = Judged(lambda result: 1.0 if "42" in final(result) else 0.0)

    check_reward(env, ITEM, context=Context)

    contexts = [ctx for _, _, ctx in env.seen]
    assert len(env.seen) == len(set(contexts)) == 100
    assert {ctx.cleanups for ctx in contexts} == {1}
    assert all(item is ITEM and isinstance(result, AgentResult) for item, result, _ in env.seen)


def test_a_reward_that_raises_is_shown_with_its_line() -> None:
    """The smallest result, and the last line in the environment's own file."""

    def divide(result: Any) -> float:
        return 1 / len(final(result))

    line = inspect.getsourcelines(divide)[1] + 1
    assert problem(Judged(divide)) == report(
        "raised ZeroDivisionError: division by zero",
        "agent_result.say('')",
        f"{HERE}:{line}: return 1 / len(final(result))",
    )


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "returned None, which is not a number"),
        ("1.0", "returned '1.0', which is not a number"),
        ([1.0], "returned [1.0], which is not a number"),
        (1j, "returned 1j, which is not a number"),
        (True, "returned True, a boolean: return 1.0 or 0.0"),
        (float("nan"), "returned nan, which is not finite"),
        (float("inf"), "returned inf, which is not finite"),
        (-0.25, "returned -0.25, which is not between 0.0 and 1.0"),
        (2, "returned 2, which is not between 0.0 and 1.0"),
    ],
)
def test_a_value_that_is_no_reward_is_shown_with_its_line(value: object, what: str) -> None:
    """None, text, truth values, NaN, infinity, and numbers beyond the bounds."""
    assert problem(Judged(lambda result: value)) == report(what, "agent_result.say('')")


def test_numpy_numbers_are_numbers_and_numpy_truth_values_are_not() -> None:
    """As the layer reads rewards."""
    import numpy as np

    check_reward(Judged(lambda result: np.float32(0.5)), ITEM, context=Context, examples=5)

    assert "a boolean: return 1.0 or 0.0" in problem(Judged(lambda result: np.bool_(True)))


def test_the_same_judgement_as_the_layer() -> None:
    """What `scoring.as_reward` refuses is a problem here, and what it takes without a warning is none."""
    from environments.trainer.scoring import as_reward

    for value in (0, 1.0, -3, None, "1", float("nan"), [], 10**400, object(), b"1"):
        try:
            as_reward(value)
            is_reward = True
        except ValueError:
            is_reward = False
        try:
            check_reward(Judged(lambda result, value=value: value), ITEM, context=Context, bounds=None, examples=1)
            passed = True
        except RewardProblem:
            passed = False
        assert (value, passed) == (value, is_reward)


def test_only_what_breaks_the_reward_is_in_the_result() -> None:
    """A reward that adds up tool errors without a limit breaks on as few as it takes."""
    text = problem(Judged(lambda result: 0.6 * len(result.tool_errors)), results=agent_results(finishes=["answer"]))

    assert text.startswith("Judged.compute_reward returned 1.2, which is not between 0.0 and 1.0.\n")
    (shown,) = [line.removeprefix("  result    ") for line in text.splitlines() if line.startswith("  result    ")]
    found = eval(shown, {"agent_result": agent_result})
    assert len(found.tool_errors) == 2
    assert len(found.messages) == len([call for m in found.messages for call in m.get("tool_calls", ())]) + found.turns_used + 1


def test_bounds_are_the_users() -> None:
    """Both ends included; None allows every finite number."""
    check_reward(Judged(lambda result: -1), ITEM, context=Context, bounds=(-1, 1), examples=10)
    check_reward(Judged(lambda result: 1e9), ITEM, context=Context, bounds=None, examples=10)

    assert "which is not between 0 and 5" in problem(Judged(lambda result: 5.1), bounds=(0, 5))


def test_a_reward_that_is_not_async_is_a_problem() -> None:
    """The layer awaits it."""

    class Plain:
        def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            return 1.0

    text = problem(Plain())

    assert text.startswith(
        "Plain.compute_reward returned 1.0, but not from a coroutine: the layer awaits it, so it must be `async def`.\n"
    )
    assert f"  at        {HERE}:" in text


def test_the_same_results_are_tried_every_time() -> None:
    """So that a pipeline that was green stays green; without derandomize other ones are."""

    def tried(**options: Any) -> list[str]:
        env = Judged(lambda result: 0.0)
        check_reward(env, ITEM, context=Context, examples=15, **options)
        return [repr(result) for _, result, _ in env.seen]

    assert tried() == tried()
    assert tried(derandomize=False) != tried(derandomize=False)


def test_results_can_be_the_users_own() -> None:
    """Any strategy, also of plain results, which are shown by their fields."""
    plain = AgentResult(messages=[], turns_used=1)

    text = problem(Judged(lambda result: None), results=st.just(plain))

    assert f"  result    {plain!r}\n" in text


def test_a_result_that_the_reward_changes_is_shown_as_it_was() -> None:
    """What is shown is what was passed in."""

    def spoil(result: Any) -> Any:
        is_whole = bool(result.messages)
        result.messages.clear()
        return None if is_whole else 0.0

    assert problem(Judged(spoil)) == report("returned None, which is not a number", "agent_result.say('')")


def test_a_reward_that_is_not_the_same_each_time_is_a_problem_too() -> None:
    """What was seen once is shown, with the function where the line is not known."""
    values = itertools.chain([0.0] * 5, [None], itertools.repeat(0.0))

    text = problem(Judged(lambda result: next(values)))

    assert text.startswith("Judged.compute_reward returned None, which is not a number.\n")


def test_a_context_that_is_no_callable_is_passed_as_it_is() -> None:
    """One for all calls; it is cleaned up as often, as it is in rollouts."""
    context = Context()
    env = Judged(lambda result: 0.0)

    check_reward(env, ITEM, context=context, examples=10)

    assert {ctx for _, _, ctx in env.seen} == {context}
    assert context.cleanups == 10


def test_the_default_context_is_an_empty_machine() -> None:
    """It has files and everyday commands; any other command is not found, which a reward must survive."""

    class Verifying:
        def __init__(self) -> None:
            self.codes: set[int] = set()

        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            assert ctx.write_file("a.txt", "42").get("error") is None
            assert ctx.terminal("ls")["output"].split() == ["a.txt"]
            self.codes.add(ctx.terminal("no-such-program -q")["exit_code"])
            return 0.0

    env = Verifying()

    check_reward(env, ITEM, examples=20)

    assert env.codes == {127}


def test_it_works_inside_a_running_loop() -> None:
    """The reward runs on a loop of another thread, with the caller's context variables; the running loop waits."""
    variable = contextvars.ContextVar("variable", default="unset")
    seen: set[tuple[bool, str]] = set()

    def reward(result: Any) -> float:
        seen.add((threading.current_thread() is threading.main_thread(), variable.get()))
        return 0.0

    async def scenario() -> None:
        variable.set("set")
        check_reward(Judged(reward), ITEM, context=Context, examples=5)
        with pytest.raises(RewardProblem):
            check_reward(Judged(lambda result: None), ITEM, context=Context, examples=5)

    asyncio.run(scenario())

    assert seen == {(False, "set")}


def test_an_environment_gives_its_own_prompt_and_tools(make_env) -> None:
    """Results begin with its system prompt and its question, call its tools, and are of its layer."""
    env = make_env(TerminalTestEnv, system_prompt="Be brief.", max_agent_turns=2)
    asyncio.run(env.setup())
    item = asyncio.run(env.get_next_item())
    offered = env._resolve_tools_for_group()[1]
    seen: list[AgentResult] = []

    async def compute_reward(item: Any, result: AgentResult, ctx: Any) -> float:
        seen.append(result)
        return 0.0

    env.compute_reward = compute_reward
    check_reward(env, item, context=Context, examples=50)

    first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": env.format_prompt(item)}]
    known = {
        call["function"]["name"]
        for result in seen
        for message in result.messages
        for call in message.get("tool_calls", ())
        if not any(error.error.startswith("Unknown tool") for error in result.tool_errors)
    }
    assert all(isinstance(result, AgentResult) and result.messages[:2] == first for result in seen)
    assert {sum(message["role"] == "assistant" for message in result.messages) for result in seen} == {1, 2}
    assert known <= offered
    assert len(known) >= 3


IMPOSSIBLE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a class": (
        lambda: check_reward(Judged, ITEM),
        UsageError,
        "check_reward() takes an environment, not its class Judged.\n"
        "  fix       check_reward(make_env(Judged), item), with the fixture make_env",
    ),
    "no environment": (
        lambda: check_reward(42, ITEM),
        UsageError,
        "check_reward() takes an environment; int has no compute_reward.",
    ),
    "results that are no strategy": (
        lambda: check_reward(Judged(len), ITEM, results=["42"]),
        StrategyError,
        "check_reward(results=...) takes a strategy of results.\n"
        "  seen      list ['42']\n"
        "  fix       results=agent_results(...), or results=hypothesis.strategies.sampled_from([...])",
    ),
    "no examples": (
        lambda: check_reward(Judged(len), ITEM, examples=0),
        StrategyError,
        "check_reward(examples=...) takes an integer from 1; got int 0.",
    ),
    "bounds in the wrong order": (
        lambda: check_reward(Judged(len), ITEM, bounds=(1.0, 0.0)),
        StrategyError,
        "check_reward(bounds=...) takes (lowest, highest) in this order, or None; got tuple (1.0, 0.0).",
    ),
    "one bound": (
        lambda: check_reward(Judged(len), ITEM, bounds=1.0),
        StrategyError,
        "check_reward(bounds=...) takes (lowest, highest) in this order, or None; got float 1.0.",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_checked_is_refused(name: str) -> None:
    """Before anything runs."""
    ask, error, text = IMPOSSIBLE[name]

    with pytest.raises(error) as caught:
        ask()

    assert (type(caught.value), str(caught.value)) == (error, text)


def test_nothing_is_left_behind(pytester: pytest.Pytester) -> None:
    """No example is stored, nothing warns, and `random` goes on where it was, also when a reward breaks."""
    pytester.makepyfile(
        """
        import random

        import pytest
        from hypothesis import strategies as st
        from pytest_hermes_env import check_reward
        from pytest_hermes_env.errors import RewardProblem

        class Env:
            async def compute_reward(self, item, result, ctx):
                return None

        def test_reward():
            state = random.getstate()
            for derandomize in (True, False):
                with pytest.raises(RewardProblem):
                    check_reward(Env(), 1, context=object, results=st.integers(), derandomize=derandomize)
            assert random.getstate() == state
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=1)
    assert not (pytester.path / ".hypothesis" / "examples").exists()
