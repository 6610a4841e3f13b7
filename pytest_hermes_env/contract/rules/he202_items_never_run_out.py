"""HE202 items-never-run-out
`get_next_item` cycles: it returns an item however often it is called.

What: More calls of `get_next_item` than there are training items raise nothing. None is allowed as a pause: it tells
Atropos to wait. None at every further call, also after a rollout has ended, is an end.

Why: Atropos requests items as long as it trains, from several workers. An IndexError or StopIteration after the last
item ends the worker after one pass over the data.

Fix: `item = self.items[self.index % len(self.items)]; self.index += 1`.

Source: atroposlib 0.4.0, `envs/base.py`, `add_train_workers`: `item = await self.get_next_item()`; None pauses the
worker.
"""

from __future__ import annotations

import dataclasses
import re

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import Cause, ErrorKind, ItemsEnd

_ENDS = re.compile(r"IndexError|Stop(Async)?Iteration|RuntimeError: (coroutine|generator) raised Stop")
"""What a list or an iterator raises behind its last item."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what many calls of get_next_item gave."""
    scenario = evidence.scenario("items")
    if evidence.collection.nothing_to_train:
        return Verdict.not_applicable(evidence.collection.nothing_to_train)
    if not scenario.happened:
        without = (one.unavailable for one in evidence.collection.scenarios.values() if one.unavailable is not None)
        if (none := next((reason for reason in without if reason.cause is Cause.NO_ITEM), None)) is not None:
            return Verdict.failed([evidence.finding(str(none), "get_next_item", scenario="items")])
        return Verdict.not_exercised(scenario.unavailable)
    taken = len(scenario.items)
    if scenario.error_kind is ErrorKind.NOT_AWAITABLE and not scenario.error_place.line:
        return Verdict.not_exercised("what get_next_item gives cannot be awaited", "HE102")
    if scenario.error:
        when = f"at call {taken + 1}" if scenario.items_end is None else f"later, though {scenario.note}"
        message = f"get_next_item {scenario.failure} {when}"
        found = evidence.finding(message, "get_next_item", place=scenario.error_place, scenario="items")
        is_end = bool(taken and _ENDS.match(scenario.error))
        return Verdict.failed([dataclasses.replace(found, fix=RULE.section("Fix") if is_end else "")])
    if missing := evidence.without_items():
        return missing
    if scenario.items_end is ItemsEnd.NONE:
        message = f"{scenario.note}, even after a rollout had ended: training waits forever"
        return Verdict.failed([evidence.finding(message, "get_next_item", scenario="items")])
    if scenario.items_end is ItemsEnd.REPEATED:
        return Verdict.passed(f"{taken} items were taken: {scenario.note}")
    return Verdict.passed(f"{taken} items were taken, and none was the last one: {scenario.note}")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=("items",))
