"""HE301: of an AgentResult only its own fields are read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.source.finding import Severity


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str


BROKEN = (
    Case(
        name="the second parameter, whatever its name",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, task, outcome, sandbox):
                return float("42" in outcome.final_response)  # <- here
        """,
    ),
    Case(
        name="a helper with the result in another place",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return self._score(ctx, text=result)

            def _score(self, ctx, bonus=0.0, *, text):
                return bonus + len(text["response"])  # <- here
        """,
    ),
    Case(
        name="a static helper, called on the class",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return Env._length(result)

            @staticmethod
            def _length(thing):
                return len(thing.get("output", ""))  # <- here
        """,
    ),
    Case(
        name="getattr without a default",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return len(getattr(result, "tools_used"))  # <- here
        """,
    ),
    Case(
        name="another name, and the result's dict",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                outcome = result
                text = vars(outcome)["final_response"]  # <- here
                return len(text) + len(vars(result).get("tool_calls"))  # <- here
        """,
    ),
    Case(
        name="what agent.run gives, in evaluate",
        source="""
        from environments.agent_loop import HermesAgentLoop as Loop

        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                agent = Loop(server=self.server, tool_schemas=self.tools)
                done = await agent.run([])
                print(done.output)  # <- here
        """,
    ),
    Case(
        name="a module function with an annotation",
        source="""
        def final_text(answer: "AgentResult | None") -> str:
            return answer.final_response  # <- here

        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return float(bool(final_text(result)))
        """,
    ),
)

SOUND = (
    Case(
        name="messages walked backwards",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                for message in reversed(result.messages):
                    if message.get("role") == "assistant" and message.get("content"):
                        return float(message["content"] == item["answer"])
                return 0.0 if result.finished_naturally else -0.0
        """,
    ),
    Case(
        name="the name is given to something else",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                turns = result.turns_used
                result = ctx.terminal("pytest -q")
                if result["exit_code"] == 0 and turns:
                    return 1.0
                return float("ok" in result.get("output", ""))
        """,
    ),
    Case(
        name="a helper for several kinds of things",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return float(self._text(result) == self._text(ctx.terminal("ls")))

            def _text(self, thing):
                if isinstance(thing, dict):
                    return thing["output"]
                return str(thing.messages[-1])
        """,
    ),
    Case(
        name="result is the name of a dict in a helper and in evaluate",
        source="""
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
    Case(
        name="own fields through the result's dict",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                fields = vars(result)
                other = vars(self)["output"]
                return len(fields["messages"]) + len(vars(result).get("output", "")) + len(other)
        """,
    ),
    Case(
        name="all own fields, a dunder, and a field set",
        source="""
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                seen = (result.managed_state, result.reasoning_per_turn, result.tool_errors, result.__class__)
                result.final_response = "kept for later"
                return float(len(seen))
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_foreign_fields_are_found_where_they_are_read(judge, case):
    judgement = judge("HE301", case.source)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_own_fields_and_other_things_pass_without_a_word(judge, case):
    verdict = judge("HE301", case.source).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.PASSED, "only AgentResult's own fields are read")


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


def test_the_message_names_the_function_and_the_read(judge):
    judgement = judge(
        "HE301",
        """
        class Env(HermesAgentBaseEnv):
            async def compute_reward(self, item, result, ctx):
                return len(result.final_response)
        """,
    )

    assert judgement.messages == ("compute_reward reads result.final_response, which AgentResult does not have",)
