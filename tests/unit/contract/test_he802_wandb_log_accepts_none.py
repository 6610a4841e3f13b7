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
        name="spread",
        source="""
        class Env(HermesAgentBaseEnv):
            async def wandb_log(self, wandb_metrics=None):
                await super().wandb_log({**wandb_metrics, "x": 1.0})  # <- here
        """,
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

OVERRIDE = "class Env(HermesAgentBaseEnv):\n    async def wandb_log(self, m=None):\n"
SOUND = (
    "        if m is None:\n            m = {}\n        m['x'] = 1\n",
    "        if not m:\n            m = dict()\n        m.update(x=1)\n",
    "        if m is None:\n            return await self.x()\n        m['x'] = 1\n",
    "        m = m or {}\n        m['x'] = 1\n",
    "        metrics = dict(m or {})\n        metrics['x'] = 1\n",
    "        metrics = {} if m is None else m\n        metrics['x'] = 1\n        {**metrics}\n",
    "        metrics = {**(m or {}), 'x': 1}\n        metrics['y'] = 2\n",
    "        m = {'x': 1} | (m or {})\n        m['y'] = 2\n",
    "        await super().wandb_log(m)\n",
)
LEFT_TO_THE_CALL = (
    "        metrics = m\n        if self.rewards:\n            metrics.update(x=1.0)\n",
    "        if m is None:\n            for name in m:\n                print(name)\n",
    "        if self.rewards:\n            m = m or {}\n        if 'x' in m:\n            print('x')\n",
    "        self._add('x', into=m)\n\n    def _add(self, name, into):\n        into[name] = 1.0\n",
    "        self.x(m['x'] if m else 0)\n",
    "        if m is not None and 'x' in m:\n            m['x'] = 1\n",
    "        if m is not None:\n            m = {}\n        m['x'] = 1\n",
    "        metrics = m if m is None else {}\n        metrics['x'] = 1\n",
    "        if m:\n            pass\n        else:\n            m = {}\n        m['x'] = 1\n",
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_metrics_that_must_be_given_are_found(judge, case):
    judgement = judge("HE802", case.source)

    assert (judgement.lines, judgement.messages) == (judgement.marked, (case.message,))


@pytest.mark.parametrize("body", SOUND)
def test_a_replacement_in_a_usual_form_passes(judge, body):
    assert judge("HE802", OVERRIDE + body).outcome is Outcome.PASSED


@pytest.mark.parametrize("body", LEFT_TO_THE_CALL)
def test_what_depends_on_the_path_is_left_to_the_call(judge, body):
    assert judge("HE802", OVERRIDE + body).outcome is Outcome.UNDECIDED


def test_star_arguments_take_nothing_too(judge):
    source = (
        "class Env(HermesAgentBaseEnv):\n    async def wandb_log(self, *args, **kwargs):\n"
        "        await super().wandb_log(*args, **kwargs)\n"
    )

    assert judge("HE802", source).outcome is Outcome.PASSED
