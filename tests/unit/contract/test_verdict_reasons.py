"""Reasons of verdicts are values: the words of their texts decide nothing."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.play.scenario import Cause, ErrorKind, Unavailable, kind_of

from ..play.small_env import SmallEnv  # noqa: TID252 - the room beside it has the small environment


@pytest.mark.parametrize("cause", Cause)
def test_some_causes_say_that_a_rule_does_not_concern_the_class(cause):
    verdict = Verdict.not_exercised(Unavailable(cause, "a detail"))

    irrelevant = {Cause.NOTHING_TO_TRAIN, Cause.NO_ANSWER, Cause.NO_GOLD, Cause.NO_JUDGE, Cause.CHAT_MODE}
    expected = Outcome.NOT_APPLICABLE if cause in irrelevant else Outcome.NOT_EXERCISED
    assert (verdict.outcome, verdict.note) == (expected, cause.value.format("a detail"))


def test_an_error_text_with_the_words_of_a_cause_is_not_that_cause():
    text = str(Unavailable(Cause.NOTHING_TO_TRAIN))

    assert Verdict.not_exercised(Unavailable(Cause.SETUP_FAILED, text)).outcome is Outcome.NOT_EXERCISED
    assert Verdict.not_exercised(text).outcome is Outcome.NOT_EXERCISED
    assert Verdict.not_exercised(None).note == ""


def test_errors_of_calls_are_told_apart_where_they_are_caught():
    async def waits():
        await 1

    def evaluate(steps):
        """Require an argument."""

    with pytest.raises(TypeError) as awaited:
        waits().send(None)
    with pytest.raises(TypeError) as called:
        evaluate()

    assert kind_of(awaited.value) is ErrorKind.NOT_AWAITABLE
    assert kind_of(called.value) is ErrorKind.EVALUATE_NEEDS_ARGUMENTS
    assert kind_of(ValueError("evaluate() missing")) is ErrorKind.OTHER

    for owner, kind in (("Env", ErrorKind.EVALUATE_NEEDS_ARGUMENTS), ("Judge", ErrorKind.OTHER)):
        error = TypeError(f"{owner}.evaluate() missing 1 required positional argument: 'step'")
        assert kind_of(error, ["Env", "object"]) is kind


class MisspeltEnv(SmallEnv):
    """Offers tools that hermes does not have."""

    @classmethod
    def config_init(cls):
        config, servers = super().config_init()
        return config.model_copy(update={"enabled_toolsets": ["files"]}), servers


def test_a_misspelt_toolset_is_told_once():
    """HE108 reports it; rules about the reward, which no rollout reaches, are excused by it."""
    rules = [find_rule(rule) for rule in ("HE302", "HE403", "HE404", "HE408", "HE411")]
    contract = contract_of(MisspeltEnv, rules)
    results = {rule.id: contract.result(rule) for rule in rules}

    assert {result.outcome for result in results.values()} == {Outcome.NOT_EXERCISED}
    assert [rule for rule, result in results.items() if "HE108" not in result.blocked_by] == []
