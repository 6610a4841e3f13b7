"""HE406: a judge that fails still leaves a number."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.verdict import Outcome

BROKEN = {
    "no try at all": """
        async def compute_reward(self, item, result, ctx):
            answer = await self.server.chat_completion(messages=[{"role": "user", "content": "?"}])  # <- here
            return float(answer.choices[0].message.content)
    """,
    "the try is around the parsing alone": """
        async def compute_reward(self, item, result, ctx):
            answer = await self.server.chat_completion(messages=[])  # <- here
            try:
                return json.loads(answer.choices[0].message.content)["score"]
            except ValueError:
                return 0.0
    """,
    "handlers of parsing errors only": """
        async def compute_reward(self, item, result, ctx):
            try:
                answer = await self.server.chat_completion(messages=[])  # <- here
                return json.loads(answer.choices[0].message.content)["score"]
            except (json.JSONDecodeError, KeyError):
                return 0.0
    """,
    "a handler that raises on": """
        async def compute_reward(self, item, result, ctx):
            try:
                return float(await self.server.completion(prompt="?"))  # <- here
            except Exception:
                raise
    """,
    "in a helper, through an alias of the server": """
        async def compute_reward(self, item, result, ctx):
            return await self._judge(result)

        async def _judge(self, outcome):
            server = self.server
            return float(await server.chat_completion(messages=outcome.messages))  # <- here
    """,
    "a client of its own": """
        async def compute_reward(self, item, result, ctx):
            async with asyncio.timeout(10):
                answer = await self.judge.chat.completions.create(model="m", messages=[])  # <- here
            return float(answer.choices[0].message.content)
    """,
    "in a finally": """
        async def compute_reward(self, item, result, ctx):
            try:
                return 1.0
            finally:
                await self.server.chat_completion(messages=[])  # <- here
    """,
}

SOUND = {
    "question and parsing in one try": """
        async def compute_reward(self, item, result, ctx):
            try:
                answer = await self.server.chat_completion(messages=[])
                return float(json.loads(answer.choices[0].message.content)["score"])
            except Exception:
                return self._overlap(item, result)

        def _overlap(self, item, result):
            return 0.5
    """,
    "the try is in the caller": """
        async def compute_reward(self, item, result, ctx):
            try:
                return await self._judge(item)
            except (asyncio.TimeoutError, openai.OpenAIError, ValueError):
                return 0.0

        async def _judge(self, item):
            return float((await self.server.chat_completion(messages=[])).choices[0].message.content)
    """,
    "suppressed": """
        async def compute_reward(self, item, result, ctx):
            with contextlib.suppress(Exception):
                return float(await self.server.chat_completion(messages=[]))
            return 0.0
    """,
    "gathered with its exceptions": """
        async def compute_reward(self, item, result, ctx):
            answers = await asyncio.gather(self.server.chat_completion(messages=[]), return_exceptions=True)
            return float(isinstance(answers[0], str))
    """,
}


def source_of(body: str) -> str:
    return "class Env(HermesAgentBaseEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_question_without_a_way_out_is_found(judge, body):
    judgement = judge("HE406", source_of(body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_a_question_in_a_try_passes(judge, body):
    verdict = judge("HE406", source_of(body)).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.PASSED, "1 call of a judge is inside a try")


def test_a_reward_without_a_judge_is_not_concerned(judge):
    verdict = judge("HE406", source_of("async def compute_reward(self, item, result, ctx):\n    return 1.0\n")).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.NOT_APPLICABLE, "compute_reward calls no judge")


def test_a_judge_in_evaluate_alone_is_not_concerned(judge):
    verdict = judge(
        "HE406",
        source_of("""
        async def compute_reward(self, item, result, ctx):
            return 1.0

        async def evaluate(self):
            return await self.server.chat_completion(messages=[])
        """),
    ).verdict

    assert verdict.outcome is Outcome.NOT_APPLICABLE


def test_the_message_says_what_becomes_of_a_failure(judge):
    judgement = judge("HE406", source_of(BROKEN["no try at all"]))

    assert judgement.messages == (
        "compute_reward calls a judge without catching its errors: when it fails, compute_reward raises",
    )
