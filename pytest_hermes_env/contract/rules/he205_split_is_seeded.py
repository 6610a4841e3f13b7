"""HE205 split-is-seeded
Shuffles are seeded, and module-level lists are not shuffled in place.

What: In `setup`, in the constructor and in code that they call, whatever shuffles or samples has a seed:
`random.Random(42)`, `numpy.random.default_rng(42)`, `dataset.shuffle(seed=42)`, `train_test_split(random_state=42)`. A
list that the module defines is copied before it is shuffled. Another process, with another hash seed, gets the same items in the same order.

Why: Without a seed the evaluation items differ in every run and in every worker: scores cannot be compared, and after a
restart the environment trains on the items that it is evaluated on. Shuffling a module-level list in place reorders it
for all other code in the process, and for the second environment of a test.

Fix: `rows = list(ROWS); random.Random(42).shuffle(rows)`.

Source: Python's documentation, "random": the module's functions share one generator, seeded from the system's clock or
entropy; `datasets.Dataset.shuffle(seed=None)`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import ELSEWHERE, ItemSeen
from pytest_hermes_env.source import Call, ClassSource, finding_at, keyword, reach_of

_SHARED = ("random", "numpy.random")
"""The modules whose functions share one generator."""
_DRAWS = frozenset({"shuffle", "sample", "permutation"})
_SPLITS = frozenset({"train_test_split", "random_split", "KFold", "ShuffleSplit"})
_GENERATORS = frozenset({f"{module}.{name}" for module in _SHARED for name in ("Random", "RandomState", "default_rng")})
_SEEDS = frozenset({"seed", "set_seed", "manual_seed", "seed_everything"})
_SEED_WORDS = ("seed", "random_state", "generator", "rng")


def static(source: ClassSource) -> Verdict:
    """Look at every shuffle that setup and the constructor lead to.

    It complements the rollouts: these compare training items, which a benchmark has none of.
    """
    if "setup" not in source.methods:
        return Verdict.undecided("there is no setup to read")
    calls = list(reach_of(source).calls("__init__", "setup"))
    is_seeded = any(call.name in _SEEDS for call in calls) or any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _SEEDS
        for module in source.modules
        for node in ast.walk(
            ast.Module(body=[item for item in module.tree.body if isinstance(item, ast.Expr)], type_ignores=[])
        )
    )
    findings = [
        finding_at(call.function, call.node, f"{call.dotted or call.name}() has no fixed seed: the split differs in every run")
        for call in calls
        if not is_seeded and _is_unseeded(call)
    ]
    return Verdict.of_source(findings, "nothing is shuffled without a seed")


def _is_unseeded(call: Call) -> bool:
    module, _, name = call.dotted.rpartition(".")
    if module in _SHARED and name in _DRAWS:
        return True
    is_given = any(keyword(call.node, word) is not None for word in _SEED_WORDS) or any(
        word.arg is None for word in call.node.keywords
    )
    if call.dotted in _GENERATORS:
        return not (call.node.args or is_given)
    if call.name == "shuffle" and not call.dotted:
        return not (call.node.args or is_given)  # that of a data set
    off = keyword(call.node, "shuffle")
    return name in _SPLITS and not is_given and not (isinstance(off, ast.Constant) and off.value is False)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at whether a second setup gave the same items in the same order."""
    scenario = evidence.scenario("setup_again")
    if not scenario.happened:
        return Verdict.not_exercised(scenario.unavailable)
    if scenario.error and not scenario.items:
        reason = f"the second setup, or get_next_item after it, failed: {scenario.error}"
        return Verdict.not_exercised(reason, "HE202")
    if missing := evidence.without_items():
        return missing
    first = evidence.scenario("items").items[: len(scenario.items)]
    again = scenario.items[: len(first)]
    if not again:
        return Verdict.not_exercised("get_next_item returned None after the second setup", "HE202")
    is_told = _tell_apart(item.prompt for item in (*first, *again))
    differs = any(one.prompt != two.prompt if is_told else one.key != two.key for one, two in zip(first, again, strict=True))
    message = "a second setup returned different training items, or a different order"
    findings = [evidence.finding(message, "setup", scenario="setup_again")] if differs else []
    elsewhere = evidence.scenario(ELSEWHERE).items if not findings else ()
    here, there = _prompts(evidence.scenario("items").items), _prompts(elsewhere)
    most = min(len(here), len(there))
    is_one_pool = len({*here} & {*there}) * 2 >= len(there) > 0  # else what differs is the day, or a directory
    if is_told and is_one_pool and here[:most] != there[:most]:
        message = "setup returned the training items in a different order in a process with another hash seed"
        found = evidence.finding(message, "setup", scenario=ELSEWHERE)
        fix = "Order by what the items hold, such as an id, and not by `hash()` or the order of a set: both differ in each process."
        findings = [dataclasses.replace(found, fix=fix)]
    return Verdict.of(findings, f"two setups returned the same {len(first)} items in the same order")


def _prompts(items: Iterable[ItemSeen]) -> list[object]:
    return list(dict.fromkeys(item.prompt for item in items if isinstance(item.prompt, str)))


def _tell_apart(prompts: Iterable[object]) -> bool:
    """Return whether prompts distinguish items: then an id that an item gets anew each time does not count."""
    every = list(prompts)
    return all(isinstance(prompt, str) for prompt in every) and len(set(every)) > 1


RULE = Rule(
    doc=__doc__,
    severity=Severity.WARNING,
    static=static,
    dynamic=dynamic,
    scenarios=("items", "setup_again", ELSEWHERE),
    holds_for_base_env=True,
)
