"""HE206 setup-ends-with-items
The environment can be built, `setup` returns, and there are items.

What: The constructor and `setup` finish: they do not raise, exit, skip a test or wait forever. After `setup`,
`get_next_item` has an item, unless the class is an evaluation by its own code: `get_next_item` or
`collect_trajectories` returns nothing, whatever the data, or because a setting says so. A set-up that works alone and
fails while another instance is alive, such as one with a fixed port, is a warning.

Why: A run in which nothing was set up, or in which a loader left an empty list, has shown nothing about the
environment. Atropos pauses a worker that gets None and asks again, so that training on an empty list waits forever,
without an error.

Fix: Make `setup` end with items, from built-in samples if the data cannot be loaded, and raise an error that names the
path or filter if nothing is left. In an evaluation, let `get_next_item` return None and `collect_trajectories`
return `(None, [])`, and nothing else.

Source: atroposlib 0.4.0, `envs/base.py`, `env_manager` (awaits `setup`) and `add_train_workers` (None pauses the
worker).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import Cause, ItemsEnd, Unavailable

SCENARIOS = ("setup", "items")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at how the first set-up ended, and whether there were items."""
    missing = evidence.why_missing(*SCENARIOS)
    if missing is not None and missing.cause is Cause.CANNOT_BUILD and evidence.lacked_methods:
        return Verdict.not_exercised("the class lacks required methods, which HE101 reports", "HE101")
    if missing is not None and missing.cause in {Cause.CANNOT_BUILD, Cause.SETUP_FAILED}:
        return _of_setup(evidence, missing)
    if missing is not None:
        return Verdict.not_exercised(missing)
    if (crowded := evidence.collection.fails_beside_another) is not None:
        message = f"setup fails while another instance of the class is alive in this process, and works alone: {crowded.detail}"
        finding = evidence.finding(message, "setup", place=crowded.place, scenario="setup", severity=Severity.WARNING)
        return Verdict.failed([finding])
    if evidence.collection.nothing_to_train:
        return Verdict.passed(f"setup returned; {evidence.collection.nothing_to_train}")
    items = evidence.scenario("items")
    if items.items_end is ItemsEnd.STUB:
        return Verdict.passed(f"setup returned; {items.note}")
    if items.items:
        return Verdict.passed(f"setup returned, and {len(items.items)} training items were taken")
    if items.error:
        return Verdict.not_exercised(f"get_next_item raised {items.error}, which HE202 reports", "HE202", "HE102")
    message = "setup returned, and there is no training item: get_next_item returns None at every call"
    return Verdict.failed([evidence.finding(message, "get_next_item", "setup", scenario="items")])


def _of_setup(evidence: Evidence, missing: Unavailable) -> Verdict:
    if missing.cause is Cause.CANNOT_BUILD:
        message, methods = str(missing), ("__init__",)
    else:
        message, methods = f"setup failed: {missing.detail}", ("setup",)
    return Verdict.failed([evidence.finding(message, *methods, place=missing.place, scenario="setup")])


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
