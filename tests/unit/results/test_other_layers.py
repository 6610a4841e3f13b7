"""Results are made of the classes of the layer under test, also where a fork carries one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

FORK = Path(__file__).parents[2] / "plugin" / "old_layer"


def test_a_result_is_of_the_forks_own_class(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """`of` takes an environment's class or an instance, at the beginning or at the end."""
    monkeypatch.syspath_prepend(FORK)
    pytester.makepyfile(
        """
        import pickle
        from oldhermes.agent_loop import AgentResult
        from oldhermes.hermes_base_env import HermesAgentBaseEnv
        from environments.agent_loop import AgentResult as OurResult
        from environments.hermes_base_env import HermesAgentBaseEnv as OurEnv
        from pytest_hermes_env import agent_result

        class ForkEnv(HermesAgentBaseEnv):
            pass

        ForkEnv.__abstractmethods__ = frozenset()

        def test_result():
            result = agent_result.of(ForkEnv).user("hi").say("42")
            messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "42"}]
            plain = AgentResult(messages=messages, turns_used=1, finished_naturally=True, reasoning_per_turn=[None])

            assert isinstance(result, AgentResult) and not isinstance(result, OurResult)
            assert result == plain and plain == result and type(result.build()) is AgentResult
            assert agent_result.user("hi").say("42").of(object.__new__(ForkEnv)) == result
            assert repr(result) == "agent_result.of(ForkEnv).user('hi').say('42')"
            assert repr(pickle.loads(pickle.dumps(result))) == repr(result)

        def test_results_of_two_layers_differ():
            assert agent_result.say("42") != agent_result.of(ForkEnv).say("42")

        def test_our_own_layer_needs_no_mention():
            assert repr(agent_result.of(OurEnv).say("42")) == "agent_result.say('42')"

        def test_a_layer_without_tool_errors_takes_ours():
            (error,) = agent_result.of(ForkEnv).unknown_tool("bash").say("").tool_errors
            assert error.error == "Unknown tool 'bash'"
        """
    )

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=4)


def test_a_layer_with_another_kind_of_result_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that lacks a field cannot be what a loop leaves."""
    package = pytester.mkpydir("strange")
    (package / "agent_loop.py").write_text("class AgentResult:\n    messages = []\n")
    (package / "tool_context.py").write_text("class ToolContext: ...\n")
    (package / "hermes_base_env.py").write_text("class HermesAgentBaseEnv: ...\n")
    pytester.makepyfile(
        """
        import pytest
        from strange.hermes_base_env import HermesAgentBaseEnv
        from pytest_hermes_env import agent_result
        from pytest_hermes_env.errors import ResultError

        def test_refused():
            with pytest.raises(ResultError) as caught:
                agent_result.of(HermesAgentBaseEnv)

            fields = "messages, managed_state, turns_used, finished_naturally, reasoning_per_turn, tool_errors"
            assert str(caught.value) == (
                f"strange.agent_loop.AgentResult cannot be built: it has no field {fields}.\\n"
                f"  expected  a dataclass with {fields}\\n"
                "  seen      not a dataclass"
            )
        """
    )
    monkeypatch.syspath_prepend(pytester.path)

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=1)
