"""HE207 items-vary
`get_next_item` gives all of its data, and not a few items for ever.

What: `get_next_item` is called until no new item comes. The collections of the class or the instance that hold the items which came
hold no more than as many others again, those left aside that evaluation holds out.

Why: An index that is taken modulo the wrong number, or a generator that is seeded anew in each call, trains on the same few items for the
whole run. Rewards rise quickly, as the policy learns them by heart.

Fix: Take the index modulo the number of training items, or seed one generator in `setup`. Items that are left out on purpose do not
belong into the collection that the others come from.

Source: `get_next_item` of atroposlib 0.4.0, `envs/base.py`, which is called once for each group.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import CASES, item_key


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the items that came with those beside them that never did."""
    if evidence.collection.nothing_to_train:
        return Verdict.not_applicable(evidence.collection.nothing_to_train)
    scenario = evidence.scenario(CASES)
    sweep = scenario.sweep
    if not sweep.drawn:
        return Verdict.not_exercised(scenario.unavailable or "no training item came", "HE206", "HE202", "HE412")
    held_out = {item_key(reward.item) for reward in evidence.scenario("evaluate").of(Reward)}
    held_out |= {item_key(item.value) for item in evidence.scenario("items").held_out}
    left = set(sweep.left) - held_out
    if sweep.is_whole and len(left) >= sweep.different:
        message = f"{sweep.drawn} calls of get_next_item gave {sweep.different} different items, and {len(left)} beside them never came"
        return Verdict.failed([evidence.finding(message, "get_next_item", scenario=CASES)])
    beside = f", and {len(left)} beside them did not come" if left else ""
    return Verdict.passed(f"{sweep.different} different items came in {sweep.drawn} calls{beside}")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(CASES, "evaluate", "items"))
