"""HE705: evaluation is logged, with metrics and samples, under eval/ names."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """Methods of an environment; the line of a violation ends with the mark."""

    name: str
    source: str
    message: str = ""


BROKEN = (
    Case(
        name="nothing is logged",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):  # <- here
                print(self.scores)
        """,
        message="evaluate logs nothing: it never awaits evaluate_log",
    ),
    Case(
        name="not awaited",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                self.evaluate_log({"eval/mean": 1.0}, samples=self.rows)  # <- here
        """,
        message="evaluate calls evaluate_log without awaiting it: nothing is logged",
    ),
    Case(
        name="without samples, in a helper",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await self._report([1.0])

            async def _report(self, scores):
                await self.evaluate_log(metrics={"eval/mean": sum(scores)}, start_time=1, end_time=2)  # <- here
        """,
        message="_report calls evaluate_log without samples: nobody can see what was answered",
    ),
    Case(
        name="an empty list of samples",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await self.evaluate_log({"eval/mean": 1.0}, samples=[])  # <- here
        """,
        message="evaluate gives evaluate_log samples=[]: no sample is kept",
    ),
    Case(
        name="a name of training",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                metrics = {"eval/mean": 1.0, "pass_rate": 0.5}
                await self.evaluate_log(metrics, samples=self.rows)  # <- here
        """,
        message="the metric 'pass_rate' of evaluate does not begin with 'eval/'",
    ),
    Case(
        name="a name that is put in later",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                metrics = {}
                for key in self.keys:
                    metrics[f"train/{key}"] = 1.0
                await self.evaluate_log(metrics, samples=self.rows)  # <- here
        """,
    ),
    Case(
        name="keywords of dict",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await self.evaluate_log(dict(mean=1.0), samples=self.rows)  # <- here
        """,
    ),
    Case(
        name="a comprehension",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await self.evaluate_log({"test/" + key: 1.0 for key in self.keys}, samples=self.rows)  # <- here
        """,
    ),
)

SOUND = (
    Case(
        name="inherited, in a nested function, by position",
        source="""
        class Middle(HermesAgentBaseEnv):
            async def evaluate(self, *args, **kwargs):
                async def report(rows):
                    metrics = {f"eval/{key}": 1.0 for key in self.keys} | {"eval/mean": 1.0}
                    await self.evaluate_log(metrics, None, None, 1.0, 2.0, None, rows)

                await report(self.rows)

        class Env(Middle):
            pass
        """,
    ),
    Case(
        name="a task that is awaited, names that are computed",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                rows = [row async for row in self.rows()]
                metrics = self.measure(rows)
                logging_task = asyncio.create_task(self.evaluate_log(metrics=metrics, samples=rows))
                await logging_task
        """,
    ),
    Case(
        name="unpacked",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                report = {"metrics": {"eval/x": 1.0}, "samples": self.rows}
                return await self.evaluate_log(**report)
        """,
    ),
    Case(
        name="a prefix that is a constant",
        source="""
        PREFIX = "eval"

        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await self.evaluate_log({f"{PREFIX}/mean": 1.0}, samples=(self.rows or None))
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_an_evaluation_that_leaves_no_record_is_found(judge, case):
    judgement = judge("HE705", case.source)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)
    if case.message:
        assert judgement.messages == (case.message,)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_logged_evaluation_passes(judge, case):
    assert judge("HE705", case.source).outcome is Outcome.PASSED, judge("HE705", case.source)


def test_an_evaluation_in_code_that_cannot_be_read_is_undecided(judge):
    judgement = judge(
        "HE705",
        """
        from somewhere import drive

        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                await drive(self)
        """,
    )

    assert judgement.outcome is Outcome.UNDECIDED
