"""HE801: wandb_log awaits super().wandb_log(metrics)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str
    message: str = ""


NEVER = "wandb_log never calls super().wandb_log: nothing reaches wandb"
SENT = "wandb_log never calls super().wandb_log: the base's own metrics are lost"

BROKEN = (
    Case(
        name="never called",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                wandb_metrics = wandb_metrics or {}
                wandb_metrics["train/x"] = 1.0
        """,
        message=NEVER,
    ),
    Case(
        name="another method of super is called",
        source="""
        import wandb

        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                await super().add_rollouts_for_wandb(wandb_metrics)
                wandb.log(wandb_metrics)
        """,
        message=SENT,
    ),
    Case(
        name="not awaited",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                super().wandb_log(wandb_metrics)  # <- here
        """,
        message="super().wandb_log(...) is not awaited: it never runs",
    ),
    Case(
        name="returned without an await",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                return super().wandb_log(wandb_metrics)  # <- here
        """,
        message="super().wandb_log(...) is not awaited: it never runs",
    ),
    Case(
        name="without the metrics",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = dict(wandb_metrics or {}, x=1.0)
                await HermesAgentBaseEnv.wandb_log(self)  # <- here
        """,
        message="super().wandb_log() is called without the metrics: they are lost",
    ),
    Case(
        name="in a parent of the same tree",
        source="""
        class Parent(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                self.rewards.clear()

        class Env(Parent):
            async def wandb_log(self, wandb_metrics=None):
                await super().wandb_log(wandb_metrics)
        """,
        message=NEVER,
    ),
)

SOUND = (
    Case(
        name="last",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = {} if wandb_metrics is None else wandb_metrics
                if self.rewards:
                    metrics["train/x"] = sum(self.rewards)
                await super().wandb_log(metrics)
                self.rewards.clear()
                self.by_kind["x"] = []
        """,
    ),
    Case(
        name="returned, with both branches",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                if not self.rewards:
                    return await super().wandb_log(wandb_metrics)
                elif self.strict:
                    raise RuntimeError("strict")
                else:
                    return await super(Env, self).wandb_log({**(wandb_metrics or {}), "x": 1})
        """,
    ),
    Case(
        name="in a finally",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = wandb_metrics or {}
                try:
                    metrics["train/x"] = sum(self.rewards) / len(self.rewards)
                except ZeroDivisionError:
                    pass
                finally:
                    await super().wandb_log(metrics)
        """,
    ),
    Case(
        name="through a helper, with a failing service caught",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                await self._send(dict(wandb_metrics or {}))

            async def _send(self, metrics):
                try:
                    await super().wandb_log(metrics)
                except OSError:
                    logger.exception("wandb is away")
        """,
    ),
    Case(
        name="by the name of the base, under a timeout",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                async with asyncio.timeout(60):
                    await asyncio.wait_for(HermesAgentBaseEnv.wandb_log(self, wandb_metrics), 30)
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_call_that_is_missing_or_not_awaited_is_found(judge, case):
    judgement = judge("HE801", case.source)

    assert (judgement.lines, judgement.messages) == (judgement.marked, (case.message,))


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_an_awaited_call_passes(judge, case):
    assert judge("HE801", case.source).outcome is Outcome.PASSED


def test_a_class_that_does_not_override_it_is_not_concerned(judge):
    verdict = judge("HE801", "class Env(HermesAgentBaseEnv):\n    pass\n").verdict

    assert (verdict.outcome, verdict.note) == (Outcome.NOT_APPLICABLE, "wandb_log is not overridden")
