"""Which fields of an item the agent is to find out, whatever they are called: they may stand in no variable of its session."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.play.scenarios.labels import parts_of_gold

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment

ITEM = {"net": "10.0.0.0/24", "last": "10.0.0.255", "hosts": 254, "big": True, "id": 7}
GOLD = "write_file last=10.0.0.255 hosts=254 of 10.0.0.0/24, id 7"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Which is the last address of 10.0.0.0/24?", {"10.0.0.255": "last", "254": "hosts"}),
        ("The last one of 10.0.0.0/24 is 10.0.0.255. How many hosts?", {"254": "hosts"}),
        ("Write $HOSTS and ${LAST} of 10.0.0.0/24 down.", {}),
        ("It costs $5 to ask for 10.0.0.0/24.", {"10.0.0.255": "last", "254": "hosts"}),
    ],
)
def test_what_gold_has_and_the_prompt_has_not_is_to_be_found(prompt: str, expected: dict[str, str]) -> None:
    assert parts_of_gold(ITEM, GOLD, prompt) == expected


class HiddenEnv(SmallEnv):
    """Asks for a word without a hint."""

    exported = "TASK_FILE=word.txt"

    def format_prompt(self, item: Any) -> str:
        """Name the file only."""
        return f"Write the word number {len(item['word'])} into word.txt."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Export something of the task."""
        ctx.terminal(f"export {self.exported.format(**item)}")


class ExportingEnv(HiddenEnv):
    """Exports the word as well."""

    exported = "TASK_WORD={word}"


class OneTurnEnv(ExportingEnv):
    """Writes the answer where the prompt is, and gives the agent a single turn."""

    async def get_next_item(self) -> Any:
        """Call it an answer, too."""
        return {**await super().get_next_item(), "answer": "forty-two"}

    def format_prompt(self, item: Any) -> str:
        """Give it away."""
        return f"Write {item['answer']}."

    @classmethod
    def config_init(cls) -> Any:
        """Allow one turn."""
        config, servers = super().config_init()
        return config.model_copy(update={"max_agent_turns": 1}), servers


class CommittedEnv(HiddenEnv):
    """Commits the work, and takes it away again."""

    reason = "Nothing of it is there."

    @classmethod
    def config_init(cls) -> Any:
        """Have files."""
        config, servers = super().config_init()
        return config.model_copy(update={"enabled_toolsets": ["terminal", "file"]}), servers

    def format_prompt(self, item: Any) -> str:
        """Say how long it is, and more."""
        return f"Write {len(item['word'])} letters into word.txt. {self.reason}"

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Make a repository."""
        ctx.terminal("git init -q && git config user.name n && git config user.email e@example.org")
        ctx.write_file("word.txt", the_word(item))
        ctx.terminal("git add -A && git commit -qm all && git rm -q word.txt && git commit -qm none")

    async def compute_reward(self, item: Any, result: Any, ctx: ToolContext) -> float:
        """Compare."""
        return float(ctx.read_file("word.txt").get("content") == the_word(item))


class RestoredEnv(CommittedEnv):
    """Asks for what is in the history."""

    reason = "Restore it from the history."


def the_word(item: Any) -> str:
    """Return a text that is long enough to be no coincidence."""
    return f"the word is {item['word']}, and nothing else\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(("env_class", "expected"), [(CommittedEnv, Outcome.FAILED), (RestoredEnv, Outcome.PASSED)])
def test_work_that_git_still_has_is_found(env_class: type, expected: Outcome) -> None:
    """Unless it is what is asked for."""
    rule = find_rule("HE208")
    gold = cases(
        [item_cases(where="*", gold=lambda item: [call("write_file", path="word.txt", content=the_word(item)), say("ok")])]
    )

    result = contract_of(env_class, [rule], cases=gold).result(rule)

    assert (result.outcome is Outcome.FAILED) is (expected is Outcome.FAILED), result
    assert all("of git's history" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    ("env_class", "expected"), [(ExportingEnv, Outcome.FAILED), (HiddenEnv, Outcome.PASSED), (OneTurnEnv, Outcome.FAILED)]
)
def test_a_variable_of_the_session_with_a_part_of_gold_is_found(env_class: type, expected: Outcome) -> None:
    """The field is not called like an answer."""
    rule = find_rule("HE208")
    declared = cases(
        [
            item_cases(
                where=lambda _: True,
                gold=lambda item: [call("terminal", command=f"echo {item['word']} > word.txt"), say("done")],
            )
        ]
    )

    assert contract_of(env_class, [rule], cases=declared).result(rule).outcome is expected
