"""HE801: wandb_log awaits super().wandb_log(metrics)."""

from __future__ import annotations

import pytest

from .rule_cases import broken, check, other, sound

NEVER = "wandb_log never calls super().wandb_log: nothing reaches wandb"
SENT = "wandb_log never calls super().wandb_log: the base's own metrics are lost"

CASES = (
    broken(
        "never called",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                wandb_metrics = wandb_metrics or {}
                wandb_metrics["train/x"] = 1.0
        """,
        NEVER,
    ),
    broken(
        "another method of super is called",
        """
        import wandb

        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                await super().add_rollouts_for_wandb(wandb_metrics)
                wandb.log(wandb_metrics)
        """,
        SENT,
    ),
    broken(
        "not awaited",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                super().wandb_log(wandb_metrics)  # <- here
        """,
        "super().wandb_log(...) is not awaited: it never runs",
    ),
    broken(
        "returned without an await",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                return super().wandb_log(wandb_metrics)  # <- here
        """,
        "super().wandb_log(...) is not awaited: it never runs",
    ),
    broken(
        "what update returns",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = (wandb_metrics or {}).update({"train/x": 1.0})
                await super().wandb_log(metrics)  # <- here
        """,
        "super().wandb_log is given what `(wandb_metrics or {}).update({'train/x': 1.0})` returns, which is None: the metrics are lost",
    ),
    sound(
        "an update of its own that returns them",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = self.meter.update(wandb_metrics or {})
                await super().wandb_log(metrics)
        """,
    ),
    broken(
        "without the metrics",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = dict(wandb_metrics or {}, x=1.0)
                await HermesAgentBaseEnv.wandb_log(self)  # <- here
        """,
        "super().wandb_log() is called without the metrics: they are lost",
    ),
    broken(
        "in a parent of the same tree",
        """
        class Parent(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):  # <- here
                self.rewards.clear()

        class Env(Parent):
            async def wandb_log(self, wandb_metrics=None):
                await super().wandb_log(wandb_metrics)
        """,
        NEVER,
    ),
    sound(
        "last",
        """
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
    sound(
        "returned, with both branches",
        """
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
    sound(
        "in a finally",
        """
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
    sound(
        "through a helper, with a failing service caught",
        """
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
    sound(
        "by the name of the base, under a timeout",
        """
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                async with asyncio.timeout(60):
                    await asyncio.wait_for(HermesAgentBaseEnv.wandb_log(self, wandb_metrics), 30)
        """,
    ),
    other("not overridden", "class Env(HermesAgentBaseEnv):\n    pass\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_that_is_missing_or_not_awaited_is_found(judge, case):
    check(judge, "HE801", case)
