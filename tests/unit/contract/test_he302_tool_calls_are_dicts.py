"""HE302: messages and the tool calls in them are read as dicts."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.verdict import Outcome

BROKEN = {
    "a loop over messages and calls": """
        async def compute_reward(self, item, result, ctx):
            for message in result.messages:
                for call in message.get("tool_calls") or []:
                    if call.function.name == "terminal":  # <- here
                        return 1.0
            return 0.0
    """,
    "a message": """
        async def compute_reward(self, task, outcome, sandbox):
            last = outcome.messages[-1]
            return float(bool(last.content))  # <- here
    """,
    "a comprehension with a walrus": """
        async def compute_reward(self, item, result, ctx):
            return float(len([c.id for m in result.messages if (calls := m["tool_calls"]) for c in calls]))  # <- here
    """,
    "a helper, by position, and an alias": """
        async def compute_reward(self, item, result, ctx):
            r = result
            return float(sum(self._is_search(call) for m in reversed(r.messages) for call in m.get("tool_calls", [])))

        def _is_search(self, entry):
            return entry["function"].name == "web_search"  # <- here
    """,
    "getattr without a default, in a nested function": """
        async def compute_reward(self, item, result, ctx):
            def names():
                return [getattr(c, "function")["name"] for c in result.messages[-1]["tool_calls"]]  # <- here
            return float(len(names()))
    """,
    "getattr with a default, and no other way": """
        async def compute_reward(self, item, result, ctx):
            calls = [c for m in result.messages for c in m.get("tool_calls") or []]
            made = [getattr(c, "function", None) for c in calls]  # <- here
            return float(any(isinstance(one, dict) for one in made))
    """,
    "a broad except": """
        async def compute_reward(self, item, result, ctx):
            try:
                return float(result.messages[-1]["tool_calls"][0].function.name == "terminal")  # <- here
            except Exception:
                return 0.0
    """,
}

SOUND = {
    "dicts": """
        async def compute_reward(self, item, result, ctx):
            names = [c["function"]["name"] for m in result.messages for c in m.get("tool_calls") or ()]
            return float(len(names)) + len(result.messages[-1].get("content") or "")
    """,
    "both shapes, asked by a default": """
        async def compute_reward(self, item, result, ctx):
            calls = [c for m in result.messages for c in m.get("tool_calls") or []]
            return float(any(getattr(c, "function", None) or c["function"] for c in calls))
    """,
    "both shapes, asked by isinstance": """
        async def compute_reward(self, item, result, ctx):
            return float(len([self._name(c) for m in result.messages for c in m.get("tool_calls", [])]))

        def _name(self, call):
            if isinstance(call, dict):
                return call["function"]["name"]
            return call.function.name
    """,
    "both shapes, asked by hasattr": """
        async def compute_reward(self, item, result, ctx):
            call = result.messages[-1]["tool_calls"][0]
            return float((call.function.name if hasattr(call, "function") else call["function"]["name"]) == "terminal")
    """,
    "both shapes, by trying": """
        async def compute_reward(self, item, result, ctx):
            call = result.messages[-1]["tool_calls"][0]
            try:
                return float(call.function.name == "terminal")
            except AttributeError:
                return float(call["function"]["name"] == "terminal")
    """,
    "an answer of the judge": """
        async def compute_reward(self, item, result, ctx):
            try:
                answer = await self.server.chat_completion(messages=result.messages)
                return float(answer.choices[0].message.content)
            except Exception:
                return 0.0
    """,
}


def source_of(body: str) -> str:
    return "class Env(HermesAgentBaseEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_is_read_like_an_object_is_found(judge, body):
    judgement = judge("HE302", source_of(body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_dicts_and_open_shapes_pass(judge, body):
    verdict = judge("HE302", source_of(body)).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.PASSED, "messages and tool calls are read as dicts")


def test_the_message_names_the_part(judge):
    judgement = judge("HE302", source_of(BROKEN["a helper, by position, and an alias"]))

    assert judgement.messages == ("_is_search reads entry['function'].name, but a tool call's function is a dict",)
