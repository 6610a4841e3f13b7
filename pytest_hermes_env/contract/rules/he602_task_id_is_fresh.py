"""HE602 task-id-is-fresh
Each rollout has a new `task_id`: one uuid per rollout.

What: No two rollouts of concurrent groups and of evaluations have the same `task_id`. A constant, an item's id, an index,
an attribute of self, or a uuid that was created once before the loop over the items is shared. `agent_rollout` creates
a new id for each rollout.

Why: hermes keeps one sandbox per `task_id`. Two rollouts with the same id work in the same directory: one finds the
other's files, is rewarded for them, and loses its sandbox when the other one cleans up. A group of 8 attempts at one
item with the item's id as `task_id` is one sandbox for all 8.

Fix: Use `self.agent_rollout(item)`, or `task_id = str(uuid.uuid4())` where the rollout begins, passed to both
`HermesAgentLoop` and `ToolContext`. A readable prefix is fine: `f"eval-{uuid.uuid4()}"`.

Source: `environments.hermes_base_env`, `agent_rollout`; hermes-agent 0.19, `tools.terminal_tool` (one environment per
`task_id`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in
from pytest_hermes_env.play.journal import ContextOpened, LoopStarted, Place

SCENARIOS = ("concurrent_groups", "evaluate", "evaluate_twice", "evaluate_during_training")


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the ids of all rollouts of concurrent groups and of evaluations."""
    ran = evidence.scenarios(*SCENARIOS)
    events = [event for scenario in ran for event in (*scenario.events, *scenario.training_events)]
    loops = [event for event in events if isinstance(event, LoopStarted)]
    if not loops:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS) or "no agent loop was run", "HE511", "HE701")
    of_loops = Counter(event.task_id for event in loops)
    contexts = [event for event in events if isinstance(event, ContextOpened) and event.task_id not in of_loops]
    of_contexts = Counter(event.task_id for event in contexts)
    shared = [event for event in loops if of_loops[event.task_id] > 1]
    shared_contexts = [event for event in contexts if of_contexts[event.task_id] > 1]
    findings = [
        *_findings(shared, of_loops, "rollouts had the task_id"),
        *_findings(shared_contexts, of_contexts, "ToolContexts were opened for the task_id"),
    ]
    return Verdict.of(findings, f"{len(loops)} rollouts had a task_id of their own")


def _findings(events: Iterable[LoopStarted | ContextOpened], count: Counter[str], what: str) -> Iterator[Finding]:
    """Yield one finding per place, for the id that was used there most often."""
    places: dict[Place, str] = {}
    for event in events:
        if count[event.task_id] > count[places.get(event.place, "")]:
            places[event.place] = event.task_id
    for place, task_id in places.items():
        yield finding_in("", place, f"{count[task_id]} {what} {task_id!r}")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
