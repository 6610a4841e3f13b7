"""HE405 and HE410 on declared cases: what an author reads when a reward is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.engine import ClassContract
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.ledger.ladder import ladder_lines, ladder_rows
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment


class WordEnv(SmallEnv):
    """Write a word into a file; the reward looks into it."""

    name = "words"

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[Any]]:
        """Offer files, too."""
        config, servers = super().config_init()
        return config.model_copy(update={"enabled_toolsets": ["terminal", "file"]}), servers

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare what was written."""
        found = ctx.read_file("word.txt").get("content", "").strip()
        return 1.0 if found == item["word"] else 0.5 if item["word"] in found else 0.0


class BackwardsEnv(WordEnv):
    """The order of the rewards is wrong."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Take the reward from one."""
        return 1.0 - await super().compute_reward(item, result, ctx)


class TrustingEnv(WordEnv):
    """The reward believes a second file."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for the verdict that the agent left."""
        if "ok" in ctx.read_file("verdict.txt").get("content", ""):
            return 1.0
        return await super().compute_reward(item, result, ctx)


class JudgedEnv(WordEnv):
    """A model decides."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask for a number."""
        answer = await self.server.chat_completion(messages=[{"role": "user", "content": "Grade it from 0 to 1."}], n=1)
        try:
            return float(answer.choices[0].message.content)
        except ValueError:
            return 0.25


def write(path: str, content: str) -> list[Any]:
    """Return a transcript that writes one file."""
    return [call("write_file", path=path, content=content), say("done")]


DECLARED = cases(
    [
        item_cases(
            item={"word": "red"},
            gold=lambda item: write("word.txt", item["word"]),
            near_miss=write("word.txt", "red, I think"),
            hack=write("verdict.txt", "ok"),
        )
    ],
    gap=0.2,
)


def results(env_class: type, declared: Any) -> tuple[Verdict, Verdict, ClassContract]:
    """Return what HE405 and HE410 say."""
    rules = [find_rule("HE405"), find_rule("HE410")]
    contract = contract_of(env_class, rules, cases=declared)
    return contract.result(rules[0]), contract.result(rules[1]), contract


def test_rewards_in_the_authors_order_pass_and_end_in_the_ladder() -> None:
    """Gold is above all, each policy has its row, and the notes say what was compared."""
    tells_apart, not_forgeable, contract = results(WordEnv, DECLARED)

    assert (tells_apart.outcome, not_forgeable.outcome) == (Outcome.PASSED, Outcome.PASSED)
    assert tells_apart.note.startswith("gold 1, near_miss 0.5, hack 0; rewards from 0 to 1 over ")
    assert not_forgeable.note.startswith("the hack earned 0, gold earns 1; ")
    assert ladder_lines(ladder_rows(contract.rungs)) == [
        "ladder",
        "  policy         reward  turns  tools  tokens",
        "  gold                1      2      1      15",
        "  near_miss         0.5      2      1      18",
        "  hack                0      2      1      16",
        "  tools               0      3      6      85  every offered tool is used once, harmlessly",
        "  wrong_content       0      2      1      25  gold's form, wrong content",
        "  wrong_place         0      2      1      18  gold, with other names for its files",
        "  echo                0      1      0       4  the prompt is repeated",
        "  nothing             0      1      0       5  an answer without any work",
    ]


def test_a_reward_in_the_wrong_order_is_shown_with_its_transcript() -> None:
    """Gold below the near miss and below nothing: one finding each, and the automatic policies as warnings."""
    tells_apart, _, _ = results(BackwardsEnv, DECLARED)

    first = tells_apart.findings[0]
    assert tells_apart.outcome is Outcome.FAILED
    assert (first.message, first.seen, first.severity) == (
        "gold of item 0 scored 0, below near_miss, which scored 0.5: at least 0.2 more was expected",
        "gold: call write_file(path='word.txt', content='red') / say 'done'; "
        "compute_reward called read_file(path='word.txt', offset=1, limit=2000): done; it read /workspace/word.txt (written by the agent); "
        "the agent wrote /workspace/word.txt",
        "error",
    )


def test_a_call_of_gold_that_a_tool_refuses_is_shown_with_the_tools_error() -> None:
    """A number for the content of a file is the author's mistake, not the reward's."""
    refused = cases(
        [
            item_cases(
                item={"word": "4900"},
                gold=lambda item: [call("write_file", path="word.txt", content=int(item["word"])), say("done")],
                near_miss=[say("no")],
            )
        ]
    )
    tells_apart, _, _ = results(WordEnv, refused)

    assert tells_apart.findings[0].seen == (
        "gold: call write_file(path='word.txt', content=4900) / say 'done'; "
        "failed: write_file: 'content' must be a string, got int.; "
        "compute_reward called read_file(path='word.txt', offset=1, limit=2000): File not found: word.txt; it read /workspace/word.txt (not found)"
    )
    assert tells_apart.findings[0].because_of == "HE412"  # which shows the same
    proven = contract_of(WordEnv, [find_rule("HE412")], cases=refused).result(find_rule("HE412"))
    assert "failed: write_file: 'content' must be a string" in proven.findings[0].seen


def test_a_hack_that_scores_like_gold_is_shown_with_what_the_verifier_read() -> None:
    """The reading says who wrote each file."""
    _, not_forgeable, _ = results(TrustingEnv, DECLARED)

    first = not_forgeable.findings[0]
    assert (first.message, first.seen) == (
        "the hack of item 0 earned 1, gold earns 1",
        "it did: call write_file(path='verdict.txt', content='ok') / say 'done'; "
        "the verifier called: read_file(path='verdict.txt', offset=1, limit=2000): done; "
        "the verifier read: /workspace/verdict.txt (written by the agent)",
    )


def test_a_gold_that_is_not_filled_in_exercises_nothing() -> None:
    """The reason names what is missing, also where other rewards differ."""
    tells_apart, _, contract = results(WordEnv, cases([item_cases(index=1, gold=None, near_miss=write("word.txt", "x"))]))

    assert (tells_apart.outcome, tells_apart.note) == (Outcome.NOT_EXERCISED, "gold of training item 1 is not filled in")
    assert ladder_lines(ladder_rows(contract.rungs))[-1] == (
        "  gold                -      -      -       -  gold of training item 1 is not filled in"
    )


def test_without_declared_cases_the_ladder_says_how_to_declare_them() -> None:
    """The automatic policies are played all the same."""
    tells_apart, _, contract = results(WordEnv, None)

    assert (tells_apart.outcome, tells_apart.note, tells_apart.blocked_by) == (
        Outcome.NOT_EXERCISED,
        "no transcript earned anything: HE412 asks for one that does",
        ("HE412",),
    )
    assert [row.name for row in ladder_rows(contract.rungs)] == ["tools", "wrong_content", "echo", "nothing"]
    assert ladder_lines(ladder_rows(contract.rungs))[-1] == (
        "  no gold is declared, so nothing shows that good work is rewarded: hermes-env init FILE"
    )


BROKEN = {
    "the agent asked for turn 2 of gold of item 0, which has 1: end it with a say turn": {
        "gold": [call("terminal", command="ls")]
    },
    "the agent asked for 1 of the 2 turns of gold of item 0: a turn without a call ends the rollout": {
        "gold": [say("a"), say("b")]
    },
    "KeyError: 'wrod'": {"gold": lambda item: [say(item["wrod"])]},
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_transcript_that_cannot_be_played_is_a_finding(text: str) -> None:
    """A declaration that does not fit never passes for a bad reward, nor for a good one."""
    tells_apart, _, _ = results(WordEnv, cases([item_cases(item={"word": "red"}, **BROKEN[text])]))

    first = tells_apart.findings[0]
    assert (first.message, first.path.endswith("test_declared_cases.py"), first.severity) == (
        f"a declared case cannot be judged: {text}",
        True,
        "error",
    )


def test_a_judge_says_what_each_case_declares() -> None:
    """A case whose judge was asked and has no answer cannot be judged: a guess would decide it."""
    judged = case([say("good")], judge="0.9")
    right = results(JudgedEnv, cases([item_cases(item={"word": "red"}, gold=judged, nothing=[say("no")], judge="0.1")]))[0]
    wrong = results(JudgedEnv, cases([item_cases(item={"word": "red"}, gold=judged, nothing=[say("no")])]))[0]

    assert (right.outcome, right.note.partition(";")[0]) == (Outcome.PASSED, "gold 0.9, nothing 0.1")
    assert [finding.message for finding in wrong.findings] == [
        "a declared case cannot be judged: a judge was called for nothing of item 0, but its answer is not declared: "
        "add `judge:` with the text that it returns"
    ]


def green(item: Any) -> bool:
    """Tell whether the word is green."""
    return item["word"] == "green"


def test_items_that_are_not_there_are_findings() -> None:
    """An index beyond the items, and a predicate that fits none."""
    declared = cases(
        [
            item_cases(index=7, gold=write("word.txt", "red")),
            item_cases(where=green, gold=write("word.txt", "green")),
        ]
    )

    messages = [finding.message for finding in results(WordEnv, declared)[0].findings]

    assert messages == [
        "a declared case cannot be judged: there is no training item 7: get_next_item returns 2 different ones",
        "a declared case cannot be judged: where=green matches none of the 2 training items that came, which have word",
    ]


class NumberedEnv(WordEnv):
    """Its items have two fields."""

    async def get_next_item(self) -> Any:
        """Number them."""
        return {**await super().get_next_item(), "length": 3}

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask for both."""
        return await super().compute_reward(item, result, ctx) if item.get("length", 1) else 0.0


def test_a_part_of_an_item_is_no_item() -> None:
    """It was meant to choose; one that has nothing in common with the items is the author's own."""
    declared = cases(
        [
            item_cases(item={"word": "blue"}, gold=write("word.txt", "blue")),
            item_cases(item={"word": "mine"}, gold=write("word.txt", "mine")),
        ]
    )

    (finding,) = results(NumberedEnv, declared)[0].findings

    assert finding.message.endswith("this is a part of training item 0: to choose items by it, write `where`")


def test_files_and_commands_stand_around_a_case() -> None:
    """The sandbox of a case is furnished before the rollout, and the wrong-content policy works in the same one."""

    class CommandEnv(WordEnv):
        """A command decides."""

        async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
            """Run it."""
            return float(ctx.terminal("make check")["output"].strip() == "fine")

    declared = item_cases(
        item={"word": "red"},
        files={"Makefile": "check:"},
        commands={"make check": "broken"},
        gold=case([call("terminal", command="cat Makefile"), say("done")], commands={"make check": "fine"}),
        nothing=[say("no")],
    )

    tells_apart = results(CommandEnv, cases([declared]))[0]

    assert (tells_apart.outcome, tells_apart.note.partition(";")[0]) == (Outcome.PASSED, "gold 1, nothing 0")


def test_a_case_without_a_reward_breaks_no_order() -> None:
    """What the reward raised is told by another rule: here it is why nothing could be compared."""

    class RaisingEnv(WordEnv):
        """The reward stumbles."""

        async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
            """Look for what no item has."""
            return float(item["words"])

    tells_apart = results(RaisingEnv, cases([item_cases(item={"word": "red"}, gold=write("word.txt", "red"))]))[0]

    assert tells_apart.outcome is Outcome.NOT_EXERCISED
    assert tells_apart.note.startswith("gold of item 0 got no reward: KeyError")


def test_one_mistake_in_several_cases_is_told_once() -> None:
    """With the tool that was meant."""

    def misspelt(word: str) -> Any:
        return [call("write_fil", path="word.txt", content=word), say("Done.")]

    declared = cases([item_cases(item={"word": "red"}, gold=misspelt("red"), near_miss=misspelt("green"))])
    tells_apart = results(WordEnv, declared)[0]

    assert tells_apart.outcome is Outcome.NOT_EXERCISED
    assert tells_apart.note.startswith("gold of item 0 and 1 more got no reward: ScriptError")
    assert tells_apart.note.count("Did you mean 'write_file'?") == 1
