"""A reward follows what its judge says of the work, whoever asks it, and pays nothing else for it."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.cases.judged import _best

from .test_around_gold import SumEnv, judged


class AskedEnv(SumEnv):
    """A judge marks the words, from 0 to 10."""

    prompts = "Explain {a} and {b}."
    asked: ClassVar[str] = "Mark this from 0 to 10: {text}"

    def score_in(self, text: str) -> float:
        """Read a JSON object."""
        try:
            return float(json.loads(text)["score"]) / 10
        except (ValueError, KeyError, TypeError):
            return 0.0

    async def ask(self, prompt: str) -> str:
        """Ask the environment's own server."""
        answer = await self.server.chat_completion(messages=[{"role": "user", "content": prompt}], n=1)
        return str(answer.choices[0].message.content)

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask."""
        try:
            return self.score_in(await self.ask(self.asked.format(text=result.messages[-1].get("content"))))
        except Exception:  # noqa: BLE001 - a judge that fails
            return 0.0


class SilentPaidEnv(AskedEnv):
    """Takes no score for a good one."""

    def score_in(self, text: str) -> float:
        """Use or."""
        try:
            return float(json.loads(text).get("score") or 10) / 10
        except (ValueError, TypeError):
            return 0.0


class FirstNumberEnv(AskedEnv):
    """Takes the first number."""

    def score_in(self, text: str) -> float:
        """Look for a digit."""
        return min(
            1.0, next((float(part) for part in text.replace('"', " ").replace("}", " ").split() if part.isdigit()), 0.0) / 10
        )


class GenerousEnv(AskedEnv):
    """Checks the words first, so that nothing that is wrong reaches the judge, and takes one that fails for a good one."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask about what has them."""
        text = str(result.messages[-1].get("content"))
        known = [str(item["a"]), str(item["b"])]
        if [word for word in text.split() if word not in {"and", "are", "numbers"}] != known:
            return 0.0
        try:
            return self.score_in(await self.ask(self.asked.format(text=text)))
        except Exception:  # noqa: BLE001 - a judge that fails
            return 0.9


class CarefulEnv(GenerousEnv):
    """Does so, and takes one that fails for nothing."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Pay what the judge says."""
        try:
            reward = await super().compute_reward(item, result, ctx)
            await self.ask(self.asked.format(text="Are you there?"))
        except Exception:  # noqa: BLE001 - a judge that fails
            return 0.0
        return reward


class FirstScoreEnv(AskedEnv):
    """Takes the first score, wherever it stands."""

    def score_in(self, text: str) -> float:
        """Look for its name."""
        found = re.search(r"SCORE: (\d+)", text)
        return min(1.0, int(found[1]) / 10) if found else 0.0


class LastScoreEnv(AskedEnv):
    """Takes the last line."""

    def score_in(self, text: str) -> float:
        """Look at nothing else."""
        found = re.fullmatch(r"SCORE: (\d+)", (text.strip().splitlines() or [""])[-1])
        return min(1.0, int(found[1]) / 10) if found else 0.0


class OneDigitEnv(AskedEnv):
    """Reads one digit."""

    def score_in(self, text: str) -> float:
        """Take the last one."""
        return float(text.rpartition('"score": ')[2][:1] or 0) / 10 if '"score": ' in text and text.endswith("}") else 0.0


class WordyEnv(AskedEnv):
    """Adds as much for words as the judge can give, up to the highest reward."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Count them."""
        text = str(result.messages[-1].get("content"))
        return min(1.0, await super().compute_reward(item, result, ctx) + len(text.split()) / 20)


class StuffedEnv(AskedEnv):
    """Pays words of the item, whatever the judge says."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for the numbers of its answer, too."""
        text = str(result.messages[-1].get("content"))
        has_all = all(str(value) in text for value in item["answer"].values())
        return 1.0 if has_all else await super().compute_reward(item, result, ctx)


class BlindEnv(AskedEnv):
    """Does not show the work."""

    asked = "Mark this from 0 to 10: the answer."


class FileEnv(AskedEnv):
    """A judge marks the file that was asked for."""

    prompts = "Explain {a} and {b} in notes.md."

    def shown(self, result: AgentResult, ctx: ToolContext) -> str:
        """Return the file."""
        return str(ctx.read_file("notes.md").get("content") or "")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask about it."""
        try:
            return self.score_in(await self.ask(self.asked.format(text=self.shown(result, ctx))))
        except Exception:  # noqa: BLE001 - a judge that fails
            return 0.0


class ChatEnv(FileEnv):
    """Shows the conversation, in which the file does not stand."""

    def shown(self, result: AgentResult, ctx: ToolContext) -> str:
        """Return what was said, and what the tools answered."""
        return "\n".join(str(message.get("content")) for message in result.messages if message["role"] in {"assistant", "tool"})


class WiredEnv(AskedEnv):
    """Asks another machine by a client of its own."""

    async def ask(self, prompt: str) -> str:
        """Use httpx."""
        import httpx

        async with httpx.AsyncClient() as client:
            body = {"model": "judge", "messages": [{"role": "user", "content": prompt}]}
            answer = await client.post("https://judge.invalid/v1/chat/completions", json=body)
        return str(answer.json()["choices"][0]["message"]["content"])


JUDGED = cases(
    [
        item_cases(
            where="*",
            gold=case(
                lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge='{"reason": "all is there", "score": 9}'
            ),
        )
    ]
)


IN_A_FILE = cases(
    [
        item_cases(
            where="*",
            gold=case(
                lambda item: [
                    call("write_file", path="notes.md", content=f"{item['a']} and {item['b']} are numbers."),
                    say("It is written."),
                ],
                judge='{"reason": "all is there", "score": 9}',
            ),
        )
    ]
)


@pytest.mark.parametrize(("env_class", "told"), [(FileEnv, ""), (ChatEnv, "was not shown /workspace/notes.md")])
def test_the_judge_is_shown_the_file_that_is_the_work(env_class: type, told: str) -> None:
    """Where the last words are the same for each item, they are not the work."""
    verdict = judged("HE406", env_class, IN_A_FILE)

    assert verdict.outcome is (Outcome.FAILED if told else Outcome.PASSED), verdict
    assert any(told in finding.message for finding in verdict.findings) is bool(told), verdict.findings


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (AskedEnv, ""),
        (WiredEnv, ""),
        (SilentPaidEnv, "the judge gave 0 for score: gold earned 1, and 0.9 with the declared verdict"),
        (FirstNumberEnv, "after a reason with numbers"),
        (OneDigitEnv, "the judge gave 10: gold earned 0.1, and 0.9 with the lower verdict"),
        (WordyEnv, "gave its worst to much wrong work"),
        (StuffedEnv, "the judge gave its worst to the item's own words: that earned 1, and gold 0.9"),
        (BlindEnv, "it was asked the same about other work"),
        (GenerousEnv, "the judge failed, asked about the item's own words alone: that earned 0.9"),
        (CarefulEnv, ""),
    ],
)
def test_the_reward_follows_its_judge(env_class: type, told: str) -> None:
    """Whoever asks it, and wherever it is."""
    verdict = judged("HE406", env_class, JUDGED)

    assert verdict.outcome is (Outcome.FAILED if told else Outcome.PASSED), verdict
    assert any(told in finding.message for finding in verdict.findings) is bool(told), verdict.findings


@pytest.mark.parametrize(("env_class", "is_told"), [(LastScoreEnv, False), (FirstScoreEnv, True)])
def test_a_quoted_score_is_none(env_class: type, is_told: bool) -> None:
    """A judge that gives its reasons first may quote what the agent wrote."""
    gold = case(lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge="All is there.\nSCORE: 9")
    verdict = judged("HE406", env_class, cases([item_cases(where="*", gold=gold)]))

    assert any("gave 0 after a quote of the answer" in finding.message for finding in verdict.findings) is is_told, verdict


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ('{"result": "fine", "score": 9}', ['{"result": "fine", "score": 10}']),
        ('{"verdict": "good", "score": 9}', []),
        ('{"score": "9"}', []),
        ("Score: 9/10", ["Score: 10/10"]),
        ("Score: 10/10", []),
        ("CORRECT", []),
        ("", []),
    ],
)
def test_the_best_of_a_scale_is_given_where_its_score_is_known(declared: str, expected: list[str]) -> None:
    """Words beside the score are no score, and the best is no better than itself."""
    assert [text for _, text, _ in _best((declared,), "Give a score from 0 to 10.")] == expected
    assert [*_best((declared,), "Give a score.")] == []
