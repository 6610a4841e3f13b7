"""HE401: the reward is a finite number, also where a tool that it uses fails."""

from __future__ import annotations

from pytest_hermes_env.contract.playing import contract_of
from pytest_hermes_env.contract.rules.he401_reward_is_a_finite_number import RULE
from pytest_hermes_env.contract.verdict import Outcome
from tests.unit.play.small_env import SmallEnv


class NoneWhenACommandFails(SmallEnv):
    """Returns nothing where its check could not run."""

    async def compute_reward(self, item, result, ctx):
        answer = ctx.terminal("echo ok")
        if answer["exit_code"]:
            return None
        return float(answer["output"].strip() == "ok")


def judged(env_class):
    contract = contract_of(env_class, (RULE,))
    return contract.result(RULE)


def test_a_reward_that_is_none_where_a_command_fails_is_found():
    result = judged(NoneWhenACommandFails)

    assert (result.outcome, [finding.message for finding in result.findings]) == (
        Outcome.FAILED,
        ["compute_reward returned NoneType None, not a number"],
    )
    assert result.findings[0].scenario == "tool_error"


def test_a_number_is_accepted():
    assert judged(SmallEnv).outcome is Outcome.PASSED
