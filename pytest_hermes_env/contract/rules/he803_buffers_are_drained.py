"""HE803 buffers-are-drained
`wandb_log` empties the buffers that it reports.

What: A series on self that training rollouts append to and that `wandb_log` reads does not hold the same entries after
`wandb_log` as before. A deque with maxlen is a sliding window and may keep them.

Why: Entries that are not removed are reported again at every step: the curve becomes the mean of the whole run, reacts
ever more slowly, and shows a collapse much too late. It also grows: a week of rewards and messages is a memory leak.

Fix: Compute the metrics, then `self.rewards.clear()` (or `self.rewards = []`), then `await super().wandb_log(metrics)`.

Source: The environment guide's pattern of `wandb_log`; atroposlib 0.4.0, `envs/base.py`, which calls it at every step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource, keyword, last_name, reach_of

SCENARIOS = ("happy", "silent", "wandb_log")


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the series that training adds to before and after wandb_log."""
    logging = evidence.scenario("wandb_log")
    if not evidence.is_own("wandb_log"):
        return Verdict.not_applicable("the class has no wandb_log of its own")
    if not logging.happened:
        return Verdict.not_exercised(logging.unavailable)
    if evidence.source is None:
        return Verdict.not_exercised("the class has no source file, so what wandb_log reads is unknown")
    if logging.error:
        return Verdict.not_exercised(f"wandb_log raised {logging.error}", "HE801")
    training = evidence.scenarios("happy", "silent")
    if not training:
        return Verdict.not_exercised(evidence.why_missing("happy", "silent"))
    grown = {
        path
        for scenario in training
        for path, held in _series(scenario.after)
        if held != dict(_series(scenario.before)).get(path, ())
    }
    reported = _read_by_wandb_log(evidence.source)
    buffers = sorted(path for path in grown if path[0] in reported)
    if not buffers:
        return Verdict.not_applicable("wandb_log reads no series that training rollouts add to")
    before, after = dict(_series(logging.before)), dict(_series(logging.after))
    kept = [path for path in buffers if before.get(path, (0,))[0] and before[path] == after.get(path)]
    findings = [
        evidence.finding(
            f"wandb_log reads {_shown(name)} and leaves its {before[name][0]} entries there, so they are reported again",
            "wandb_log",
            scenario="wandb_log",
        )
        for name in kept
    ]
    return Verdict.of(findings[:1], f"{', '.join(map(_shown, buffers))} no longer hold what wandb_log reported")


def _series(snapshot: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], tuple[int, Any]]]:
    """Yield the path of each series in a picture of the environment, with the number of its entries, and these."""
    pending: list[tuple[tuple[str, ...], Any]] = [((name,), held) for name, held in snapshot.items()]
    while pending:
        path, held = pending.pop()
        match held:
            case ("sequence", count, entries):
                yield path, (count, entries)
            case ("mapping", _, rows):
                pending += [((*path, key), value) for key, value in rows]
            case ("object", inner):
                pending.append((path, inner))


def _read_by_wandb_log(source: ClassSource) -> frozenset[str]:
    """Return the attributes of self that wandb_log reads, except sliding windows."""
    read = {
        node.attr
        for function in reach_of(source).functions("wandb_log")
        for node in function.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and function.is_self(node.value)
    }
    return frozenset(read - _windows(source))


def _windows(source: ClassSource) -> set[str]:
    """Return the attributes that hold a deque with maxlen."""
    found: set[str] = set()
    for owner in source.readable:
        for node in ast.walk(owner.node):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
                is_deque = last_name(node.value.func) == "deque"
                if is_deque and (keyword(node.value, "maxlen") is not None or len(node.value.args) > 1):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found.update(target.attr for target in targets if isinstance(target, ast.Attribute))
    return found


def _shown(path: tuple[str, ...]) -> str:
    return f"self.{path[0]}" + "".join(f"[{key}]" for key in path[1:])


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=SCENARIOS)
