"""HE303: the tool names that a reward compares with are names of tools."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.verdict import Outcome

BROKEN = {
    "a name in a loop": """
        async def compute_reward(self, item, result, ctx):
            for message in result.messages:
                for call in message.get("tool_calls") or []:
                    if call["function"]["name"] == "patch_file":  # <- here
                        return 1.0
            return 0.0
    """,
    "a list of names, a helper and an alias": """
        async def compute_reward(self, task, outcome, sandbox):
            r = outcome
            used = self._used(r)
            return float("bash" in used)  # <- here

        def _used(self, rollout):
            return [c.get("function", {}).get("name") for m in rollout.messages for c in m.get("tool_calls", [])]
    """,
    "a set of names against a module constant": """
        async def compute_reward(self, item, result, ctx):
            names = {c["function"]["name"] for m in result.messages for c in m["tool_calls"]}
            return float(any(name in EDITORS for name in names))  # <- here
    """,
    "a class constant, the other way round": """
        FAVOURITE = "file_write"

        async def compute_reward(self, item, result, ctx):
            call = result.messages[1]["tool_calls"][0]
            function = call["function"]
            return float(self.FAVOURITE == function["name"])  # <- here
    """,
    "what two sets share": """
        async def compute_reward(self, item, result, ctx):
            names = []
            for message in result.messages:
                for call in message.get("tool_calls") or []:
                    names.append((call.get("function") or {}).get("name", ""))
            return 1.0 if {"web_search", "web_fetch"} & set(names) else 0.0  # <- here
    """,
    "as text, or nothing, appended one by one": """
        async def compute_reward(self, item, result, ctx):
            return float("bash" in self.names(result))  # <- here

        @staticmethod
        def names(result):
            found = []
            for message in result.messages:
                for call in message.get("tool_calls") or []:
                    if isinstance(call, dict) and isinstance(call.get("function"), dict):
                        found.append(str(call["function"].get("name") or ""))
            return found
    """,
    "counting": """
        async def compute_reward(self, item, result, ctx):
            names = [c["function"]["name"] for m in result.messages for c in m["tool_calls"]]
            return min(1.0, names.count("search"))  # <- here
    """,
}

SOUND = {
    "names of hermes": (
        """
        async def compute_reward(self, item, result, ctx):
            names = [c["function"]["name"] for m in result.messages for c in m.get("tool_calls") or []]
            return float("patch" in names or any(name in ("write_file", "terminal") for name in names))
        """,
        Outcome.PASSED,
        "hermes has patch, terminal, write_file",
    ),
    "other texts are compared": (
        """
        async def compute_reward(self, item, result, ctx):
            return float(result.messages[-1]["content"] == "patch_file" and result.messages[0]["role"] == "bash")
        """,
        Outcome.NOT_APPLICABLE,
        "no tool's name is compared with a constant",
    ),
    "names from the item": (
        """
        async def compute_reward(self, item, result, ctx):
            names = [c["function"]["name"] for m in result.messages for c in m.get("tool_calls") or []]
            return float(item["tool"] in names)
        """,
        Outcome.NOT_APPLICABLE,
        "no tool's name is compared with a constant",
    ),
}


def source_of(body: str) -> str:
    return "class Env(HermesAgentBaseEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")


def with_constants(body: str) -> str:
    return 'EDITORS = ("patch", "str_replace_editor")\n\n' + source_of(body)


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_name_that_hermes_does_not_have_is_found(judge, body):
    judgement = judge("HE303", with_constants(body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize(("body", "outcome", "note"), SOUND.values(), ids=SOUND)
def test_other_comparisons_are_no_finding(judge, body, outcome, note):
    verdict = judge("HE303", source_of(body)).verdict

    assert (verdict.outcome, verdict.note) == (outcome, note)


def test_the_message_names_the_nearest_tool(judge):
    judgement = judge("HE303", source_of(BROKEN["a name in a loop"]))

    assert judgement.messages == ("compute_reward looks for a tool 'patch_file', which hermes does not have; nearest: 'patch'",)


def test_an_environment_with_tools_of_its_own_is_undecided(judge):
    verdict = judge(
        "HE303",
        source_of(
            BROKEN["a name in a loop"]
            + """
        def _resolve_tools_for_group(self):
            return [], set()
        """
        ),
    ).verdict

    assert (verdict.outcome, verdict.note) == (
        Outcome.UNDECIDED,
        "Env has its own _resolve_tools_for_group, so 'patch_file' may be one of the environment's own tools",
    )
