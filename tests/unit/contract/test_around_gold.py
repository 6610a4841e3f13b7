"""What is played around gold: worse work, the same work by another way, judges, groups, evaluations, answers in reach."""

from __future__ import annotations

import json
import random
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment


class SumEnv(HermesAgentBaseEnv):
    """Sums, in a file with the numbers as JSON; each fault below differs in one method."""

    name = "sums"
    prompts: ClassVar[str] = "Add {a} and {b}. Write total and count of the numbers to sum.json."

    @classmethod
    def config_init(cls) -> Any:
        """As the small environment, with files."""
        config, servers = SmallEnv.config_init()
        return HermesAgentEnvConfig(enabled_toolsets=["terminal", "file"], max_agent_turns=config.max_agent_turns), servers

    async def setup(self) -> None:
        """Make twelve items and four that are held out."""
        made = [{"a": 31 * n + 205, "b": 17 * n + 3, "answer": {"total": 48 * n + 208, "count": n % 5 + 2}} for n in range(16)]
        self.items, self.held_out, self.taken = made[:12], made[12:], 0

    async def get_next_item(self) -> Any:
        """Cycle."""
        self.taken += 1
        return self.items[(self.taken - 1) % len(self.items)]

    def format_prompt(self, item: Any) -> str:
        """Ask."""
        return self.prompts.format(**item)

    def read(self, ctx: ToolContext) -> Any:
        """Return what the agent wrote."""
        try:
            return json.loads(ctx.read_file("sum.json").get("content") or "null")
        except ValueError:
            return None

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare both."""
        return float(self.read(ctx) == item["answer"])

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Ask the held-out items."""
        await self.evaluate_items(self.held_out)


GOLD = cases(
    [
        item_cases(
            where="*",
            gold=lambda item: [call("write_file", path="sum.json", content=json.dumps(item["answer"])), say("Done.")],
        )
    ]
)


def judged(rule: str, env_class: type, declared: Any = GOLD) -> Verdict:
    """Return what one rule says."""
    return contract_of(env_class, [find_rule(rule)], cases=declared).result(find_rule(rule))


@pytest.mark.parametrize("rule", ["HE207", "HE208", "HE405", "HE511", "HE603", "HE708"])
def test_a_sound_environment_passes(rule: str) -> None:
    """With nothing left open."""
    verdict = judged(rule, SumEnv)

    assert (verdict.outcome, verdict.findings, verdict.questions) == (Outcome.PASSED, (), ())


class TotalOnlyEnv(SumEnv):
    """Does not look at one of two fields."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the totals."""
        found = self.read(ctx)
        return float(isinstance(found, dict) and found.get("total") == item["answer"]["total"])


class TolerantEnv(SumEnv):
    """Takes every total that is large enough."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Forget abs()."""
        found, answer = self.read(ctx), item["answer"]
        is_near = isinstance(found, dict) and isinstance(total := found.get("total"), int) and answer["total"] - total < 1
        return float(is_near and found.get("count") == answer["count"])


class SortedEnv(SumEnv):
    """Looks for the values, whatever they are called."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Sort them."""
        found = self.read(ctx)
        return float(isinstance(found, dict) and sorted(map(str, found.values())) == sorted(map(str, item["answer"].values())))


class SubsetEnv(SumEnv):
    """Compares what is there; its items hold the answer as JSON."""

    prompts = "Add {a} and {b}. Write what form.txt asks for to sum.json."

    async def setup(self) -> None:
        """Write them."""
        await super().setup()
        for item in (*self.items, *self.held_out):
            item["answer"] = json.dumps(item["answer"])

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Forget what is missing."""
        found, answer = self.read(ctx), json.loads(item["answer"])
        return float(isinstance(found, dict) and all(answer.get(key) == value for key, value in found.items()))


class HastyEnv(SumEnv):
    """Pays only for who writes at once."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look at the first call."""
        first = next((one["tool_calls"] for one in result.messages if one.get("tool_calls")), [{"function": {"name": ""}}])
        return float(self.read(ctx) == item["answer"] and first[0]["function"]["name"] == "write_file")


class BoastedEnv(SumEnv):
    """Pays more for who is sure."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Add a bonus for confidence."""
        is_sure = "confidence: 1" in str(result.messages[-1].get("content")).lower()
        return (0.7 + 0.3 * is_sure) * (self.read(ctx) == item["answer"])


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (
            TotalOnlyEnv,
            "in count, /workspace/sum.json) scored 1 on training item 0 (and on 2 more items)",
        ),
        (TolerantEnv, "gold (half as much again in total, /workspace/sum.json) scored 1"),
        (SortedEnv, "gold (two values exchanged in total and count, /workspace/sum.json) scored 1"),
        (HastyEnv, "gold (after a look around) scored 0 on training item 0, gold itself 1: the same work by another way loses"),
        (BoastedEnv, "gold (claims of success after it) scored 1 on training item 0"),
    ],
)
def test_work_around_gold_is_paid_as_it_is_worth(env_class: type, told: str) -> None:
    """HE405 names the change."""
    verdict = judged("HE405", env_class)

    assert verdict.outcome is Outcome.FAILED
    assert any(told in finding.message for finding in verdict.findings), [finding.message for finding in verdict.findings]


def test_keys_of_a_label_that_is_json_are_asked_for() -> None:
    """They stand in no prompt."""
    declared = cases(
        [item_cases(where="*", gold=lambda item: [call("write_file", path="sum.json", content=item["answer"]), say("Done.")])]
    )

    verdict = judged("HE405", SubsetEnv, declared)

    assert any("gold (without" in finding.message for finding in verdict.findings), verdict


def test_a_question_is_asked_until_its_author_answers() -> None:
    """And an answer holds: what is worse must earn less."""

    class RoundingEnv(SumEnv):
        async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
            found, answer = self.read(ctx), item["answer"]
            is_near = (
                isinstance(found, dict) and isinstance(total := found.get("total"), int) and abs(answer["total"] - total) < 2
            )
            return float(is_near and found.get("count") == answer["count"])

    name = "one more in total, /workspace/sum.json"
    asked = judged("HE405", RoundingEnv)
    as_good, not_good = (judged("HE405", RoundingEnv, cases(GOLD.items, **{how: [name]})) for how in ("equivalent", "worse"))

    assert (asked.outcome, as_good.outcome, not_good.outcome) == (Outcome.PASSED, Outcome.PASSED, Outcome.FAILED)
    assert [name in text for text in asked.questions] == [True]
    assert as_good.questions == ()


class SolvedEnv(SumEnv):
    """Drops groups that were solved once."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Keep only what is hard."""
        group, backlog = await super().collect_trajectories(item)
        return (None if group and max(group["scores"]) == 1.0 else group), backlog


class RankedEnv(SumEnv):
    """Takes the places of an order for ranks."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Rank."""
        group, backlog = await super().collect_trajectories(item)
        if group:
            scores = group["scores"]
            group["scores"] = [float(place) for place in sorted(range(len(scores)), key=scores.__getitem__)]
        return group, backlog


class AnyZeroEnv(SumEnv):
    """Keeps groups that hold a zero, and pays for each of two numbers."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare each."""
        found = self.read(ctx)
        right = [isinstance(found, dict) and found.get(key) == value for key, value in item["answer"].items()]
        return 1.0 if all(right) else 0.4 * any(right)

    async def collect_trajectories(self, item: Any) -> Any:
        """Keep what not all solved, and more."""
        group, backlog = await super().collect_trajectories(item)
        return (None if group and all(group["scores"]) else group), backlog


class RoundedEnv(AnyZeroEnv):
    """Takes rewards for equal that are equal when rounded."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Drop them."""
        group, backlog = await SumEnv.collect_trajectories(self, item)
        return (None if group and len({round(score) for score in group["scores"]}) == 1 else group), backlog


class KeptEnv(SumEnv):
    """Keeps the first reward of an item."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look it up."""
        self.known = getattr(self, "known", {})
        key = (item["a"], item["b"])
        self.known[key] = self.known.get(key) or await super().compute_reward(item, result, ctx)
        return float(self.known[key])


@pytest.mark.parametrize(
    ("rule", "env_class", "told"),
    [
        ("HE511", SolvedEnv, "a group with the rewards 1, 0, 0 was dropped"),
        ("HE511", AnyZeroEnv, "a group with the rewards 1, 0.4, 0.4 was dropped"),
        ("HE511", RoundedEnv, "a group with the rewards 0.4, 0, 0 was dropped"),
        ("HE511", RankedEnv, "their scores in the group are"),
        ("HE603", KeptEnv, "a rollout that did nothing earned 1 in"),
    ],
)
def test_a_reward_belongs_to_its_own_rollout(rule: str, env_class: type, told: str) -> None:
    """In each group that has gold beside no work."""
    verdict = judged(rule, env_class)

    assert verdict.outcome is Outcome.FAILED
    assert any(told in finding.message for finding in verdict.findings), verdict.findings


class FewEnv(SumEnv):
    """Takes its index modulo the wrong number."""

    async def get_next_item(self) -> Any:
        """Cycle."""
        self.taken += 1
        return self.items[self.taken % 3]


class ToldEnv(SumEnv):
    """Tells the answer."""

    prompts = "{answer[total]}: add {a} and {b}. Write total and count of the numbers to sum.json."


class LeftEnv(SumEnv):
    """Leaves the answer in the sandbox."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write all of the item."""
        ctx.write_file("task.json", json.dumps(item))


class StaleEnv(SumEnv):
    """Writes the first item's file into each sandbox."""

    async def setup(self) -> None:
        """Add a text to each item."""
        await super().setup()
        for item in (*self.items, *self.held_out):
            item["text"] = f"the numbers are {item['a']} and {item['b']}"

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write it."""
        self.text = getattr(self, "text", item["text"])
        ctx.write_file("task.txt", self.text)


class ShuffledEnv(SumEnv):
    """Asks for an order of four numbers, which stand in another one."""

    prompts = "Sort these numbers, the largest first, and write one a line to sorted.txt.\n\n"

    def listed(self, item: Any) -> list[int]:
        """Return them as they are shown."""
        return random.Random(item["a"]).sample(numbers_of(item), 4)

    def format_prompt(self, item: Any) -> str:
        """Show them."""
        return self.prompts + "".join(f"{number}\n" for number in self.listed(item))

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the lines."""
        written = str(ctx.read_file("sorted.txt").get("content") or "").split()
        return float(written == [str(number) for number in numbers_of(item)])


class InOrderEnv(ShuffledEnv):
    """Shows them as they are kept."""

    def listed(self, item: Any) -> list[int]:
        """Forget to shuffle."""
        return numbers_of(item)


def numbers_of(item: Any) -> list[int]:
    """Return four numbers, the largest first."""
    return [1000 * (4 - place) + 10 * item["a"] + place for place in range(4)]


@pytest.mark.parametrize(("env_class", "is_told"), [(ShuffledEnv, False), (InOrderEnv, True)])
def test_an_order_that_the_task_gives_away_is_told(env_class: type, is_told: bool) -> None:
    """Copying the list is all of the work then."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="sorted.txt", content="".join(f"{one}\n" for one in numbers_of(item))),
                say("Done."),
            ],
        )
    ]

    messages = [finding.message for finding in judged("HE208", env_class, cases(gold)).findings]

    assert any("in the order of gold, on each of" in message for message in messages) is is_told, messages


@pytest.mark.parametrize(
    ("rule", "env_class", "told"),
    [
        ("HE207", FewEnv, "gave 3 different items, and 9 beside them never came"),
        ("HE208", ToldEnv, "answer of the item is in the user message before the agent works"),
        ("HE208", LeftEnv, "answer of the item is in the file /workspace/task.json of the sandbox"),
        ("HE603", StaleEnv, "was prepared with text of another item: /workspace/task.txt"),
    ],
)
def test_items_answers_and_sandboxes(rule: str, env_class: type, told: str) -> None:
    """What the agent gets is of its own item, and not the answer."""
    messages = [finding.message for finding in judged(rule, env_class).findings]

    assert any(told in message for message in messages), messages


def test_every_kind_of_change_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few plays there are: the budget is for the second and third time."""
    monkeypatch.setattr("pytest_hermes_env.play.cases.item_cases.NEAR", 1)
    verdict = judged("HE405", TotalOnlyEnv)

    assert verdict.outcome is Outcome.FAILED
    assert any("in count" in finding.message for finding in verdict.findings), verdict.findings


class GivenEnv(SumEnv):
    """Works on a file that lies there before."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for it, too."""
        return float(ctx.read_file("given.txt").get("content") == "1 2\n" and self.read(ctx) == item["answer"])


@pytest.mark.parametrize("rule", ["HE511", "HE708"])
def test_files_of_a_case_lie_in_the_sandboxes_of_groups_and_evaluations(rule: str) -> None:
    """As they do where gold is played alone."""

    def gold(item: Any) -> Any:
        return case(
            [call("write_file", path="sum.json", content=json.dumps(item["answer"])), say("Done.")],
            files={"given.txt": "1 2\n"},
        )

    verdict = judged(rule, GivenEnv, cases([item_cases(where="*", gold=gold)]))

    assert verdict.outcome is Outcome.PASSED, verdict
