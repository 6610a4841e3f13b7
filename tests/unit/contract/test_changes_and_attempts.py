"""Changes of a file that was there, groups that are collected again, rollouts without an end, evaluation in other words, an item as its own example."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from typing import Any, ClassVar

import openai
import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules.he203_eval_is_held_out import _twins

from .test_around_gold import SumEnv, judged


def settings_of(item: Any, *, is_new: bool) -> str:
    """Return settings before or after the work."""
    lines = ["[server]", "host = 0.0.0.0", *([] if is_new else ["legacy_ssl = true"]), f"port = {item['a'] + is_new}", ""]
    return "\n".join(lines)


class SettingsEnv(SumEnv):
    """A setting is changed, and one taken out."""

    prompts = "In server.ini, the port {a} becomes one more. Remove legacy_ssl, and leave all else as it is."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write them."""
        ctx.write_file("server.ini", settings_of(item, is_new=False))

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare them."""
        found = str(ctx.read_file("server.ini").get("content") or "").strip()
        return float(self.is_right(found.splitlines(), settings_of(item, is_new=True).strip().splitlines()))

    def is_right(self, found: list[str], wanted: list[str]) -> bool:
        """Whether it is what was asked for."""
        return found == wanted


class ExpectedSideEnv(SettingsEnv):
    """Looks only for what should be there."""

    def is_right(self, found: list[str], wanted: list[str]) -> bool:
        """Compare from one side."""
        return {*wanted} <= {*found}


NEW_SETTINGS = cases(
    [
        item_cases(
            where="*",
            gold=lambda item: [call("write_file", path="server.ini", content=settings_of(item, is_new=True)), say("Done.")],
        )
    ]
)


@pytest.mark.parametrize(
    ("env_class", "told"),
    [(SettingsEnv, ""), (ExpectedSideEnv, "gold (what it takes out left in in line 3, /workspace/server.ini) scored 1")],
)
def test_each_change_of_a_file_counts(env_class: type, told: str) -> None:
    """What gold took out, and a verifier does not look for, is left in."""
    messages = [finding.message for finding in judged("HE405", env_class, NEW_SETTINGS).findings]

    assert any(told in message for message in messages) if told else messages == []


class PlacesEnv(SumEnv):
    """Three names are asked for; F1 of the lines."""

    prompts = "Write the three names of group {a} to names.txt, one a line."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Count each line, also a second one of a name."""
        found = str(ctx.read_file("names.txt").get("content") or "").split()
        hits = sum(name in names_of(item) for name in found)
        return min(1.0, hits / 3) * hits / len(found) if found else 0.0


def names_of(item: Any) -> list[str]:
    """Return three names that only this item has."""
    return [f"{first}{item['a']}" for first in ("mia", "bo", "zed")]


def test_one_right_line_for_all_is_no_work() -> None:
    """A verifier that counts lines, and not names, pays it."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [call("write_file", path="names.txt", content="\n".join(names_of(item)) + "\n"), say("Done.")],
        )
    ]
    verdict = judged("HE405", PlacesEnv, cases(gold))

    assert any("its first line as often as it has lines" in finding.message for finding in verdict.findings)


class SecondAttemptEnv(SumEnv):
    """Collects a group of zeros once more."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Take the better of two rewards."""
        group, backlog = await super().collect_trajectories(item)
        if group and not any(group["scores"]):
            again, _ = await super().collect_trajectories(item)
            group = self.joined(group, again)
        return group, backlog

    def joined(self, group: Any, again: Any) -> Any:
        """Return the second group."""
        return again


class MixedAttemptsEnv(SecondAttemptEnv):
    """Puts the rewards of one attempt beside the rollouts of the other."""

    def joined(self, group: Any, again: Any) -> Any:
        """Keep the first rollouts."""
        return {**group, "scores": [max(pair) for pair in zip(group["scores"], again["scores"], strict=True)]}


@pytest.mark.parametrize(("env_class", "outcome"), [(SecondAttemptEnv, Outcome.PASSED), (MixedAttemptsEnv, Outcome.FAILED)])
def test_a_group_that_is_collected_again_keeps_its_own_scores(env_class: type, outcome: Outcome) -> None:
    """HE511 plays gold in the second attempt."""
    verdict = judged("HE511", env_class)

    assert verdict.outcome is outcome
    assert all("scores of one attempt stand beside the tokens of the other" in one.message for one in verdict.findings)


class PatientEvaluationEnv(SumEnv):
    """Evaluates by hand."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Log the mean of what is graded."""
        scores, turns = [], []
        for item in self.held_out:
            async with self.agent_rollout(item, temperature=0.0) as rollout:
                if self.is_graded(rollout.result):
                    scores.append(await self.compute_reward(item, rollout.result, rollout.ctx))
                    turns.append(rollout.result.turns_used)
        metrics = {"eval/turns": sum(turns) / max(1, len(turns)), "eval/pass_rate": sum(scores) / max(1, len(scores))}
        await self.evaluate_log(metrics, samples=[{"score": score} for score in scores])

    def is_graded(self, result: AgentResult) -> bool:
        """Whether a rollout counts."""
        return True


class EndedOnlyEnv(PatientEvaluationEnv):
    """Leaves out what did not come to an end."""

    def is_graded(self, result: AgentResult) -> bool:
        """Whether the agent ended."""
        return bool(result.finished_naturally)


@pytest.mark.parametrize(
    ("env_class", "told"),
    [(PatientEvaluationEnv, ""), (EndedOnlyEnv, "eval/pass_rate is 1 where every other rollout used up its turns")],
)
def test_rollouts_without_an_end_count_in_evaluation(env_class: type, told: str) -> None:
    """The metric that is named is that of the rewards."""
    messages = [finding.message for finding in judged("HE708", env_class).findings]

    assert any(told in message for message in messages) if told else messages == []


class RewordedEnv(SumEnv):
    """Asks each item in two wordings."""

    async def setup(self) -> None:
        """Split before the wordings are made."""
        await super().setup()
        made = [
            {
                **item,
                "n": n,
                "sheet": f"{item['a']} and {item['b']} stand in the first column of this sheet",
                "wording": wording,
            }
            for n, item in enumerate([*self.items, *self.held_out])
            for wording in ("Add them", "What do they make")
        ]
        for item in made:
            item["expected"] = json.dumps(item.pop("answer") | {"of": item["sheet"]})
        self.items, self.held_out = self.split(made)

    def split(self, made: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return training and held-out items."""
        return made[8:], made[:8]

    def format_prompt(self, item: Any) -> str:
        """Ask in its wording."""
        return f"{item['wording']}: {item['sheet']}. Write sum.json."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare."""
        return float(self.read(ctx) == json.loads(item["expected"]))


class SharedSheetsEnv(RewordedEnv):
    """Splits the wordings, and not the sheets."""

    def split(self, made: list[Any]) -> tuple[list[Any], list[Any]]:
        """Hold out one wording of a few."""
        return made[1::2] + made[8::2], made[:8:2]


@pytest.mark.parametrize(("env_class", "outcome"), [(RewordedEnv, Outcome.PASSED), (SharedSheetsEnv, Outcome.FAILED)])
def test_training_items_in_other_words_are_training_items(env_class: type, outcome: Outcome) -> None:
    """One answer to one input is one task."""
    verdict = judged("HE203", env_class, None)

    assert verdict.outcome is outcome
    assert all("training items with other names, wordings or order" in one.message for one in verdict.findings)


def readings(number: int) -> dict[str, Any]:
    """Return an item of ten numbers that no other has, and their sum."""
    rows = [{"at": row, "read": 1000 * number + 37 * row} for row in range(1, 11)]
    told = f"all readings of this place together come to {sum(row['read'] for row in rows)}"
    return {"rows": rows, "place": f"street {number}", "expected": told}


@pytest.mark.parametrize(
    ("change", "is_twin"),
    [
        (lambda item: {**item, "rows": item["rows"][::-1], "place": "elsewhere"}, True),
        (lambda item: {**item, "rows": [[row["read"], row["at"]] for row in item["rows"]]}, True),
        (lambda item: {**item, "expected": "another question of the same rows, with a long answer"}, False),
        (lambda item: {**item, "expected": "7"}, False),
        (
            lambda item: {
                **item,
                "place": "elsewhere",
                "reason": f"{item['place']} is told of in many words, others each time",
            },
            True,
        ),
        (lambda item: readings(int(item["place"].split()[1]) + 50), False),
    ],
)
def test_items_in_another_order_are_the_same(change: Any, is_twin: bool) -> None:
    """With nearly all of their numbers, and their answer."""
    trained = [readings(number) for number in range(6)]

    assert _twins([change(item) for item in trained], trained) == (len(trained) if is_twin else 0)


class ExampleEnv(SumEnv):
    """Shows a solved item."""

    is_own: ClassVar[bool] = False

    def format_prompt(self, item: Any) -> str:
        """Show the example, and ask."""
        shown = next(one for one in self.items if (one["a"] == item["a"]) == self.is_own)
        told = [f"{one['a']} and {one['b']}: {json.dumps(one['answer'])}" for one in (shown,)]
        return f"Example:\n{told[0]}\n\nAdd {item['a']} and {item['b']}. Write total and count to sum.json."

    async def setup(self) -> None:
        """Keep answers as text."""
        await super().setup()
        for item in (*self.items, *self.held_out):
            item["answer_text"] = json.dumps(item["answer"])


class OwnExampleEnv(ExampleEnv):
    """Takes the item itself for the most similar one."""

    is_own = True

    def format_prompt(self, item: Any) -> str:
        """Fall back on the first one for those that are held out."""
        known = any(one["a"] == item["a"] for one in self.items)
        return super().format_prompt(item) if known else SumEnv.format_prompt(self, item)


@pytest.mark.parametrize(("env_class", "outcome"), [(ExampleEnv, Outcome.PASSED), (OwnExampleEnv, Outcome.FAILED)])
def test_an_item_is_not_its_own_example(env_class: type, outcome: Outcome) -> None:
    """Copies of the answer that other objects hold are found by the answer itself."""
    verdict = judged("HE208", env_class)

    assert verdict.outcome is outcome
    assert all("have the item's own answer as an example" in one.message for one in verdict.findings)


class LongReportEnv(SumEnv):
    """A judge grades a report."""

    shown: ClassVar[int] = 5_000
    prompts = "Write a report on {a} and {b} to report.md."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Show the judge the report."""
        report = str(ctx.read_file("report.md").get("content") or "")
        if not report.startswith(head_of(item)):
            return 0.0
        told = [{"role": "user", "content": f"Grade from 0 to 10, as JSON: {report[: self.shown]}"}]
        try:
            answer = await self.server.chat_completion(messages=told, n=1, max_tokens=20, temperature=0.0)
            return float(json.loads(answer.choices[0].message.content)["score"]) / 10
        except (ValueError, KeyError, TypeError, OSError, openai.OpenAIError):
            return 0.0


class CutReportEnv(LongReportEnv):
    """Shows the judge its head."""

    shown = 120


def head_of(item: Any) -> str:
    """Return what each report begins with."""
    return f"# Report on {item['a']} and {item['b']}\n\n" + "This report is about two numbers, as it was asked for. " * 2


@pytest.mark.parametrize(
    ("env_class", "told"),
    [(LongReportEnv, ""), (CutReportEnv, "the judge was not shown the second half of /workspace/report.md")],
)
def test_a_judge_is_shown_all_of_the_work(env_class: type, told: str) -> None:
    """A check of the head keeps other worse work from it."""
    gold = [
        item_cases(
            where="*",
            gold=case(
                lambda item: [
                    call("write_file", path="report.md", content=head_of(item) + "The sum is what both make together. " * 8),
                    say("Done."),
                ],
                judge=say('{"score": 10}'),
            ),
        )
    ]
    messages = [finding.message for finding in judged("HE406", env_class, cases(gold)).findings]

    assert any(told in message for message in messages) if told else messages == []


class MarkedReportEnv(LongReportEnv):
    """Shows the judge something that is drawn, too; of one of both the item's own text in place of the report."""

    is_shown: ClassVar[bool] = True

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Put it between two marks."""
        report = str(ctx.read_file("report.md").get("content") or "")
        mark = secrets.token_hex(8)
        shown = report if self.is_shown else head_of(item)
        told = [
            {
                "role": "user",
                "content": f"Grade what stands between {mark} and {mark} from 0 to 10, as JSON: {mark}\n{shown}\n{mark}",
            }
        ]
        try:
            answer = await self.server.chat_completion(messages=told, n=1, max_tokens=20, temperature=0.0)
            return float(json.loads(answer.choices[0].message.content)["score"]) / 10
        except (ValueError, KeyError, TypeError, OSError, openai.OpenAIError):
            return 0.0


class UnseenReportEnv(MarkedReportEnv):
    """Fills the place of the report with a field of the item."""

    is_shown = False


@pytest.mark.parametrize(("env_class", "told"), [(MarkedReportEnv, ""), (UnseenReportEnv, "the judge was not shown")])
def test_what_is_drawn_for_a_judge_hides_nothing(env_class: type, told: str) -> None:
    """No two questions are equal, and the work is in neither."""
    gold = case(
        lambda item: [
            call("write_file", path="report.md", content=f"The numbers {item['a']} and {item['b']} are summed here."),
            say("Done."),
        ],
        judge=say('{"score": 10}'),
    )
    messages = [finding.message for finding in judged("HE406", env_class, cases([item_cases(where="*", gold=gold)])).findings]

    assert any(told in message for message in messages) if told else messages == []


class SlowReportEnv(MarkedReportEnv):
    """Is slower with better reports."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Wait as long as the reward is high."""
        reward = await super().compute_reward(item, result, ctx)
        for _ in range(int(200 * reward)):
            await asyncio.sleep(0)
        return reward


def test_rollouts_with_equal_tokens_are_not_confused() -> None:
    """One work, of which a judge says two things: whichever rollout ends first, the scores of the group hold."""

    def report(item: Any) -> Any:
        return [call("write_file", path="report.md", content=f"The sum is {item['a'] + item['b']}."), say("Done.")]

    good, bad = (case(report, judge=say(f'{{"score": {score}}}')) for score in (10, 4))
    verdict = judged("HE511", SlowReportEnv, cases([item_cases(where="*", gold=good, near_miss=bad)]))

    assert (verdict.outcome, verdict.findings) == (Outcome.PASSED, ())


class SampledEnv(SumEnv):
    """Looks at one of the two numbers, once at this and once at that."""

    is_fair: ClassVar[bool] = False
    looks: ClassVar[Any] = itertools.count()

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """In turn, or at both."""
        found = self.read(ctx)
        if not isinstance(found, dict):
            return 0.0
        names = ["total", "count"] if self.is_fair else [["total", "count"][next(self.looks) // 2 % 2]]
        return sum(found.get(name) == item["answer"][name] for name in names) / len(names)


class WholeEnv(SampledEnv):
    """Looks at both."""

    is_fair = True


@pytest.mark.parametrize(("env_class", "is_told"), [(SampledEnv, True), (WholeEnv, False)])
def test_what_is_drawn_shows_in_work_that_is_right_in_part(env_class: type, is_told: bool) -> None:
    """Gold earns the same whatever is looked at."""
    messages = [finding.message for finding in judged("HE404", env_class).findings]

    assert any("for the same transcript" in message for message in messages) is is_told
    assert bool(messages) is is_told


class BestSoFarEnv(SumEnv):
    """Measures by the best that was seen."""

    keeps: ClassVar[bool] = True
    reach: ClassVar[int] = 1_000

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare with it."""
        found = self.read(ctx)
        is_whole = isinstance(found, dict) and {*found} == {*item["answer"]}
        off = abs(found["total"] - item["answer"]["total"]) if is_whole else 1_000
        worth = 1_000 - off if off <= self.reach else 0
        best = vars(self).setdefault("best", {})
        best[item["a"]] = max(worth, best.get(item["a"], 1)) if self.keeps else 1_000
        return float(worth / best[item["a"]])


class OfAllEnv(BestSoFarEnv):
    """Measures by what can be had."""

    keeps = False


class BestOfFewEnv(BestSoFarEnv):
    """Pays no other item's answer."""

    reach = 40


@pytest.mark.parametrize(
    ("env_class", "told"), [(OfAllEnv, ""), (BestSoFarEnv, "before gold was played"), (BestOfFewEnv, "before gold was played")]
)
def test_less_is_played_before_gold_too(env_class: type, told: str) -> None:
    """A reward that is measured by the best so far pays the first in full."""
    messages = [finding.message for finding in judged("HE404", env_class).findings]

    assert [told in message for message in messages] == ([True] if told else [])
