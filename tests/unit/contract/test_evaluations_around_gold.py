"""What an evaluation logs moves with the work that is played in it, by about as much."""

from __future__ import annotations

import json
import uuid
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge import Severity
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules.he708_evaluation_tells_apart import _OF_FAILURES

from .test_around_gold import SumEnv, judged


class SuccessesEnv(SumEnv):
    """Counts what succeeded."""

    metric: ClassVar[str] = "eval/mean"

    def metrics_of(self, scores: list[float]) -> float:
        """Leave out the zeros."""
        good = [score for score in scores if score]
        return sum(good) / len(good) if good else 0.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Log one number of the scores."""
        scores = []
        for item in self.held_out:
            scored, _ = await self.collect_trajectory(item)
            scores.append(float(scored["scores"]))
        await self.evaluate_log({self.metric: self.metrics_of(scores)}, samples=[{"score": score} for score in scores])


class FinishedEnv(SuccessesEnv):
    """Counts what ended."""

    def metrics_of(self, scores: list[float]) -> float:
        """Count."""
        return len(scores) / len(self.held_out)


class TwoMetricsEnv(SumEnv):
    """Logs the mean, and another number."""

    def other(self, scores: list[float]) -> float:
        """Count each."""
        return sum(score == 1.0 for score in scores) / len(scores)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Log both."""
        await self.evaluate_items(
            self.held_out, metrics=lambda samples: {"eval/solved_rate": self.other([one["score"] for one in samples])}
        )


class FirstOnlyEnv(TwoMetricsEnv):
    """Its other number is of one item."""

    def other(self, scores: list[float]) -> float:
        """Look at the first."""
        return float(scores[0] == 1.0)


class ErrorsAloneEnv(SuccessesEnv):
    """Logs how many answers are wrong."""

    metric: ClassVar[str] = "eval/errors"

    def metrics_of(self, scores: list[float]) -> float:
        """Count them."""
        return sum(score != 1.0 for score in scores)


class FallingEnv(TwoMetricsEnv):
    """Its other number is the wrong way round."""

    def other(self, scores: list[float]) -> float:
        """Count what is not solved."""
        return sum(score != 1.0 for score in scores) / len(scores)


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (TwoMetricsEnv, ""),
        (FirstOnlyEnv, "where 50% of the gold was played, and 1 with all of it"),
        (FallingEnv, "eval/solved_rate falls when each rollout plays gold: from 1 to 0"),
    ],
)
def test_another_metric_of_success_is_warned_of(env_class: type, told: str) -> None:
    """The mean is right, so that nothing is an error."""
    findings = judged("HE708", env_class).findings

    assert [told.partition(":")[0] in one.message for one in findings] == ([True] if told else [])
    assert all(told in one.message and one.severity is Severity.WARNING for one in findings)


class AnySumEnv(SumEnv):
    """Pays any numbers for items that are held out."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look at the form."""
        found = self.read(ctx)
        return float(
            found == item["answer"] or (item in self.held_out and isinstance(found, dict) and {*found} == {*item["answer"]})
        )


@pytest.mark.parametrize(
    ("name", "is_of_failures"),
    [
        ("eval/errors", True),
        ("eval/failure_rate", True),
        ("timeouts", True),
        ("eval/submission_accuracy", False),
        ("eval/permission", False),
        ("eval/errors_fixed", False),
        ("eval/error_free_rate", False),
    ],
)
def test_metrics_of_failures_are_told_by_whole_words(name: str, is_of_failures: bool) -> None:
    assert bool(_OF_FAILURES.search(name)) is is_of_failures


class PooledEnv(SumEnv):
    """Counts all answers together: it does not matter whose they are."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Compare two sets."""
        tools, names = self._resolve_tools_for_group()
        found, samples = set(), []
        for item in self.held_out:
            ctx = ToolContext(str(uuid.uuid4()))
            try:
                loop = HermesAgentLoop(self.server, tools, names, max_turns=4, task_id=ctx.task_id, temperature=0.0)
                await loop.run([{"role": "user", "content": self.format_prompt(item)}])
                found.add(json.dumps(self.read(ctx)))
                samples.append({"score": 0.0})
            finally:
                ctx.cleanup()
        wanted = {json.dumps(item["answer"]) for item in self.held_out}
        await self.evaluate_log({"eval/recall": len(wanted & found) / len(wanted)}, samples=samples)


def test_failures_fall_with_the_work() -> None:
    """A metric that counts them tells gold from no work, too."""
    assert judged("HE708", ErrorsAloneEnv).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (SuccessesEnv, "not all items count alike"),
        (FinishedEnv, "is the same for an agent"),
        (PooledEnv, "is 1, as with gold, where each rollout played the gold of another item"),
        (AnySumEnv, "pays the gold of another item like the item's own, on each of"),
    ],
)
def test_an_evaluation_moves_with_the_work(env_class: type, told: str) -> None:
    """By as much as the rewards."""
    (finding,) = judged("HE708", env_class).findings

    assert told in finding.message


class OwnLoopEnv(SumEnv):
    """Asks and scores by itself, as many environments do: compute_reward is not called."""

    def score(self, found: Any, item: Any) -> float:
        """Compare."""
        return float(found == item["answer"])

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the loop on each item."""
        tools, names = self._resolve_tools_for_group()
        samples = []
        for item in self.held_out:
            ctx = ToolContext(str(uuid.uuid4()))
            try:
                loop = HermesAgentLoop(self.server, tools, names, max_turns=4, task_id=ctx.task_id, temperature=0.0)
                await loop.run([{"role": "user", "content": self.format_prompt(item)}])
                samples.append({"score": self.score(self.read(ctx), item)})
            finally:
                ctx.cleanup()
        await self.evaluate_log({"eval/mean": sum(one["score"] for one in samples) / len(samples)}, samples=samples)


class AnyFileEnv(OwnLoopEnv):
    """Scores that there is a file; the reward of training compares it."""

    def score(self, found: Any, item: Any) -> float:
        """Count."""
        return 1.0


@pytest.mark.parametrize(("env_class", "told"), [(OwnLoopEnv, ""), (AnyFileEnv, "is the same for an agent")])
def test_an_evaluation_with_scores_of_its_own_moves_with_the_work(env_class: type, told: str) -> None:
    """Its items are those that the environment holds and whose prompts it asks."""
    verdict = judged("HE708", env_class)

    assert verdict.outcome is (Outcome.FAILED if told else Outcome.PASSED), verdict.note
    assert [told in finding.message for finding in verdict.findings] == ([True] if told else [])


class JudgedEvaluationEnv(SumEnv):
    """A judge grades the file, in training and in an evaluation that scores by itself."""

    async def score(self, ctx: ToolContext) -> float:
        """Ask."""
        told = [{"role": "user", "content": f"Grade from 0 to 10, as JSON: {self.read(ctx)}"}]
        answer = await self.server.chat_completion(messages=told, n=1, max_tokens=20, temperature=0.0)
        return float(json.loads(answer.choices[0].message.content)["score"]) / 10

    async def compute_reward(self, item: Any, result: Any, ctx: ToolContext) -> float:
        """Ask."""
        return await self.score(ctx) if self.read(ctx) else 0.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Score without compute_reward."""

        async def score(rollout: Any) -> float:
            return await self.score(rollout.ctx) if self.read(rollout.ctx) else 0.0

        await self.evaluate_items(self.held_out, score=score)


class DeafEvaluationEnv(JudgedEvaluationEnv):
    """Does not read the verdict there: only turns move."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Ask for nothing."""

        async def score(rollout: Any) -> float:
            return 0.5

        await self.evaluate_items(self.held_out, score=score)


@pytest.mark.parametrize(("env_class", "told"), [(JudgedEvaluationEnv, ""), (DeafEvaluationEnv, "is the same for an agent")])
def test_a_judge_of_an_evaluation_gets_its_declared_answer(env_class: type, told: str) -> None:
    """It is asked behind a loop, without a reward; that gold has more turns than no work says nothing."""
    gold = case(
        lambda item: [call("write_file", path="sum.json", content=json.dumps(item["answer"])), say("Done.")],
        judge=say('{"score": 10}'),
    )
    declared = cases([item_cases(where="*", gold=gold)])

    messages = [finding.message for finding in judged("HE708", env_class, declared).findings]

    assert [told in message for message in messages] == ([True] if told else [])


class SilentEvaluationEnv(SumEnv):
    """Each item of its evaluation fails without a word; what it logs is kept in a list called like items."""

    has_items: ClassVar[bool] = True

    async def setup(self) -> None:
        """Begin with an empty list."""
        await super().setup()
        self.eval_rows: list[float] = []
        self.held_out = self.held_out if self.has_items else []

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Swallow whatever comes."""
        for item in self.held_out:
            try:
                self.eval_rows.append(self.missing(item))  # type: ignore[attr-defined]
            except AttributeError:
                continue
        await self.evaluate_log({"eval/mean": 0.0})


class NothingHeldOutEnv(SilentEvaluationEnv):
    """Has no held-out items."""

    has_items = False


@pytest.mark.parametrize(("env_class", "told"), [(SilentEvaluationEnv, False), (NothingHeldOutEnv, True)])
def test_an_empty_list_is_blamed_where_there_are_no_items(env_class: type, told: bool) -> None:
    """An evaluation that never asked the model may have lost its items, or swallowed what stopped it."""
    (finding,) = judged("HE701", env_class).findings

    assert finding.message.startswith("evaluate() never called the model")
    assert ("empty after setup()" in finding.message, bool(finding.fix)) == (told, told)
