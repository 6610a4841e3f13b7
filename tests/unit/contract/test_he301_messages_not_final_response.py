"""HE301: of an AgentResult only its own fields are read."""

from __future__ import annotations

import pytest

from pytest_hermes_env.source.finding import Severity

from .rule_cases import broken, check, sound

CASES = (
    broken(
        "the second parameter, whatever its name",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, task, outcome, sandbox):
                return float("42" in outcome.final_response)  # <- here
        """,
        "compute_reward reads outcome.final_response, which AgentResult does not have",
    ),
    broken(
        "a helper with the result in another place",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return self._score(ctx, text=result)

            def _score(self, ctx, bonus=0.0, *, text):
                return bonus + len(text["response"])  # <- here
        """,
    ),
    broken(
        "a static helper, called on the class",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return Env._length(result)

            @staticmethod
            def _length(thing):
                return len(thing.get("output", ""))  # <- here
        """,
    ),
    broken(
        "getattr without a default",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return len(getattr(result, "tools_used"))  # <- here
        """,
    ),
    broken(
        "another name, and the result's dict",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                outcome = result
                text = vars(outcome)["final_response"]  # <- here
                return len(text) + len(vars(result).get("tool_calls"))  # <- here
        """,
    ),
    broken(
        "what agent.run gives, in evaluate",
        """
        from environments.agent_loop import HermesAgentLoop as Loop

        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                agent = Loop(server=self.server, tool_schemas=self.tools)
                done = await agent.run([])
                print(done.output)  # <- here
        """,
    ),
    broken(
        "a module function with an annotation",
        """
        def final_text(answer: "AgentResult | None") -> str:
            return answer.final_response  # <- here

        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return float(bool(final_text(result)))
        """,
    ),
    sound(
        "messages walked backwards",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                for message in reversed(result.messages):
                    if message.get("role") == "assistant" and message.get("content"):
                        return float(message["content"] == item["answer"])
                return 0.0 if result.finished_naturally else -0.0
        """,
    ),
    sound(
        "the name is given to something else",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                turns = result.turns_used
                result = ctx.terminal("pytest -q")
                if result["exit_code"] == 0 and turns:
                    return 1.0
                return float("ok" in result.get("output", ""))
        """,
    ),
    sound(
        "a helper for several kinds of things",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return float(self._text(result) == self._text(ctx.terminal("ls")))

            def _text(self, thing):
                if isinstance(thing, dict):
                    return thing["output"]
                return str(thing.messages[-1])
        """,
    ),
    sound(
        "result is the name of a dict in a helper and in evaluate",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return self._parse(ctx.terminal("ls"))

            def _parse(self, result):
                return float(result["exit_code"] == 0)

            async def evaluate(self):
                for result in self.results:
                    print(result["score"], result.output)
        """,
    ),
    sound(
        "own fields through the result's dict",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                fields = vars(result)
                other = vars(self)["output"]
                return len(fields["messages"]) + len(vars(result).get("output", "")) + len(other)
        """,
    ),
    sound(
        "all own fields, a dunder, and a field set",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                seen = (result.managed_state, result.reasoning_per_turn, result.tool_errors, result.__class__)
                result.final_response = "kept for later"
                return float(len(seen))
        """,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_fields_of_the_result_are_read(judge, case):
    check(judge, "HE301", case)


def test_a_guarded_read_is_a_warning(judge):
    """A read that cannot fail does no harm, and finds nothing: the finding weighs less than its rule."""
    judgement = judge(
        "HE301",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                text = getattr(result, "output", "")  # <- here
                return float(bool(text or (hasattr(result, "response") and result.response)))  # <- here
        """,
    )

    assert judgement.lines == judgement.marked
    assert {finding.severity for finding in judgement.verdict.findings} == {Severity.WARNING}
    assert judgement.messages == (
        "compute_reward reads 'output' from result with getattr: AgentResult never has it, so the fallback is always used",
        "compute_reward reads 'response' from result with hasattr: AgentResult never has it, so the fallback is always used",
    )
