"""What only the author knows of a change, as the ladder asks it."""

from __future__ import annotations

from pytest_hermes_env.contract.judge.around_gold import questions
from pytest_hermes_env.play.scenario import CaseRules, Rung, Worth


def test_a_question_says_where_the_same_change_earned_less():
    """Of two items, one pays for two parts exchanged."""
    golds = [Rung(name="gold", item=item, is_automatic=False, reward=1.0) for item in ("item 0", "item 9")]
    changed = {"is_automatic": True, "change": "two parts exchanged", "worth": Worth.UNKNOWN}
    others = [
        Rung(name="neighbour", item=gold.item, reward=reward, **changed)
        for gold, reward in zip(golds, (0.35, 1.0), strict=True)
    ]

    asked = questions([*golds, *others], CaseRules(order=(), gap=0.1, is_strict=True))

    assert [text.partition(":")[0] for text in asked] == ["gold (two parts exchanged) earned 1 (0.35 on item 0), gold itself 1"]
