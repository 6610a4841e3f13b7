"""HE802: wandb_log works when it is given no metrics."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """The text of a class body and what the rule makes of it."""

    name: str
    source: str
    message: str = "wandb_log uses the metrics before it replaces None with a dict"


BROKEN = (
    Case(
        name="no default",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, metrics):  # <- here
                await super().wandb_log(metrics or {})
        """,
        message="wandb_log requires metrics; wandb_log() without an argument fails",
    ),
    Case(
        name="stored into",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                wandb_metrics["train/x"] = 1.0  # <- here
                await super().wandb_log(wandb_metrics)
        """,
    ),
    Case(
        name="updated, through an alias",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                metrics = wandb_metrics
                if self.rewards:
                    metrics.update(x=1.0)  # <- here
                await super().wandb_log(metrics)
        """,
    ),
    Case(
        name="spread",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                await super().wandb_log({**wandb_metrics, "x": 1.0})  # <- here
        """,
    ),
    Case(
        name="iterated, in the guard's wrong branch",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                if wandb_metrics is None:
                    for name in wandb_metrics:  # <- here
                        print(name)
                await super().wandb_log(wandb_metrics)
        """,
    ),
    Case(
        name="asked with in, after a guard that covers one path",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                if self.rewards:
                    wandb_metrics = wandb_metrics or {}
                if "x" in wandb_metrics:  # <- here
                    print("x")
                await super().wandb_log(wandb_metrics)
        """,
    ),
    Case(
        name="in a helper",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                self._add("x", into=wandb_metrics)
                await super().wandb_log(wandb_metrics)

            def _add(self, name, into):
                into[name] = 1.0  # <- here
        """,
        message="_add uses the metrics before it replaces None with a dict",
    ),
    Case(
        name="no parameter at all",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self):  # <- here
                await super().wandb_log({})
        """,
        message="wandb_log has no metrics parameter, but the base class passes one",
    ),
)

SOUND = tuple(
    Case(name=name, source=f"class Env(HermesAgentBaseEnv):\n    async def wandb_log(self, m=None):\n{body}")
    for name, body in {
        "is None": "        if m is None:\n            m = {}\n        m['x'] = 1\n",
        "not": "        if not m:\n            m = dict()\n        m.update(x=1)\n",
        "or": "        m = m or {}\n        m['x'] = 1\n",
        "a new dict": "        metrics = dict(m or {})\n        metrics['x'] = 1\n",
        "a conditional": "        metrics = {} if m is None else m\n        metrics['x'] = 1\n        {**metrics}\n",
        "only when given": "        if m is not None and 'x' in m:\n            m['x'] = 1\n",
        "a walrus": "        (m := m or {})['x'] = 1\n        m['y'] = 1\n",
        "spread with or": "        metrics = {**(m or {}), 'x': 1}\n        metrics['y'] = 2\n",
        "handed on": "        await super().wandb_log(m)\n",
        "an early return": "        if m is None:\n            return await self.x()\n        m['x'] = 1\n",
        "merged": "        m = {'x': 1} | (m or {})\n        m['y'] = 2\n",
        "both branches": "        if m:\n            pass\n        else:\n            m = {}\n        m['x'] = 1\n",
        "another name in a helper": "        m = self._with(m)\n        m['x'] = 1\n\n    def _with(self, given):\n"
        "        given = given or {}\n        given['y'] = 1\n        return given\n",
    }.items()
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_metrics_that_must_be_given_are_found(judge, case):
    judgement = judge("HE802", case.source)

    assert (judgement.lines, judgement.messages) == (judgement.marked, (case.message,))


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_guard_of_any_form_passes(judge, case):
    assert judge("HE802", case.source).outcome is Outcome.PASSED


def test_star_arguments_take_nothing_too(judge):
    source = (
        "class Env(HermesAgentBaseEnv):\n    async def wandb_log(self, *args, **kwargs):\n"
        "        await super().wandb_log(*args, **kwargs)\n"
    )

    assert judge("HE802", source).outcome is Outcome.PASSED
