"""Plays many rollouts of which a share meets a fault: is each of them scored as it earned, or not at all, and is nothing left?

``python -m benchmarks fault_soak [ROLLOUTS] [AT_ONCE] [SHARE]``, by default 2000 rollouts, 100 at once, 5 % faults: model requests
that are refused, reset, cut, answered with 429, 500 or broken JSON, and tools that raise or find no space. Prints what happened, and
ends with exit code 1 at the first sum that does not add up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import time
from collections import Counter
from typing import Any

GROUP_SIZE = 4
IGNORED = -100
"""The label of a token that is not trained."""
MODEL = ("refused", "reset", "cut", "server_error", "rate_limited", "broken_json")
TOOLS = ("raises", "disk_full", "broken_json")


def environment() -> type:
    """Return the environment that the soak plays."""
    from environments.hermes_base_env import HermesAgentBaseEnv

    class SoakEnv(HermesAgentBaseEnv):
        """The reward is what the rollout's own command printed; no two rollouts print the same."""

        name = "soak"

        async def setup(self) -> None:
            """Nothing to load."""

        async def get_next_item(self) -> Any:
            return None

        def format_prompt(self, item: Any) -> str:
            return f"Item {item}."

        async def compute_reward(self, _item: Any, _result: Any, ctx: Any) -> float:
            answer = json.loads(ctx.terminal("cat number.txt")["output"] or "-1")
            return float(answer)

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            """Not evaluated."""

    return SoakEnv


def script(conversation: Any) -> Any:
    """Write the item's number into a file, then answer."""
    from pytest_hermes_env import call, say

    number = conversation.first_user.removeprefix("Item ").removesuffix(".")
    return say("done") if conversation.turn else call("terminal", command=f"echo {number} > number.txt")


async def soak(env: Any, plan: Any, *, rollouts: int, at_once: int) -> list[str]:
    """Run the groups; return the sums that do not add up."""
    free, before = asyncio.Semaphore(max(1, at_once // GROUP_SIZE)), _held()
    scores: dict[int, Any] = {}
    raised: list[Exception] = []

    async def one(item: int) -> None:
        async with free:
            try:
                group, _ = await env.collect_trajectories(item)
            except Exception as error:  # noqa: BLE001 - a rollout raised; Atropos' worker logs it, and the group is counted
                raised.append(error)
                group = None
            scores[item] = None if group is None else list(zip(group["scores"], group["masks"], strict=True))

    await asyncio.gather(*(one(item) for item in range(rollouts // GROUP_SIZE)))
    return [*_wrong(env, plan, scores, rollouts, cancelled=(GROUP_SIZE - 1) * len(raised)), *_left(before)]


def _wrong(env: Any, plan: Any, scores: dict[int, Any], rollouts: int, *, cancelled: int) -> Any:
    """Yield the sums that do not add up. At most ``cancelled`` rollouts have no end: another one of their group raised."""
    counts = Counter({name.removeprefix("train/"): number for name, number in env._counts.items()})
    struck = Counter(strike.fault.place for strike in plan.strikes)
    attempts = sum(number for name, number in counts.items() if name.startswith("rollouts_") and name != "rollouts_retried")
    if not 0 <= rollouts + counts["rollouts_retried"] - attempts <= cancelled:
        yield f"{attempts} ends of {rollouts} rollouts and {counts['rollouts_retried']} retries"
    if not 0 <= struck["model"] - counts["rollouts_model_failed"] <= cancelled:
        yield f"{struck['model']} faults of the model, {counts['rollouts_model_failed']} rollouts that it failed"
    trained = {
        item: rows for item, rows in scores.items() if rows and any(label != IGNORED for _, row in rows for label in row)
    }
    if len(scores) - len(trained) != counts["groups_dropped"]:
        yield f"{len(scores) - len(trained)} groups are missing, {counts['groups_dropped']} are counted"
    if unearned := {item: rows for item, rows in trained.items() if {score for score, _ in rows} - {float(item), -1.0}}:
        yield f"{len(unearned)} groups have scores that they did not earn"
    unscored = sum(score == -1.0 for rows in trained.values() for score, _ in rows)
    if unscored > struck["sandbox"]:
        yield f"{unscored} rollouts without their file, {struck['sandbox']} faults of tools"


def _held() -> set[str]:
    """Return the ids of all rollouts that hold something of a sandbox now."""
    from environments.sandbox import isolation

    return set(isolation._sandboxes)


def _left(before: set[str]) -> Any:
    """Yield what the soak leaves behind."""
    if left := _held() - before:
        yield f"{len(left)} sandboxes are left"
    if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        yield f"{len(tasks)} tasks are left"


def planned(plan: Any, share: float) -> Any:
    """Plan faults of the model and of the tools that strike about ``share`` of the rollouts."""
    for kind in MODEL:  # a rollout makes two requests and two tool calls
        plan.on("model", kind, rate=share / len(MODEL) / 4)
    for kind in TOOLS:
        plan.on("sandbox", kind, rate=share / len(TOOLS) / 4, where="number.txt")
    return plan


def main(words: list[str]) -> int:
    """Run the soak on a mock model and in-memory sandboxes."""
    from pytest_hermes_env import FakeSandbox, FaultPlan, ToolSeam
    from pytest_hermes_env.play.builder import EnvironmentBuilder

    given = [float(word) for word in words]
    rollouts, at_once, share = [*given, *(2000, 100, 0.05)[len(given) :]]
    logging.disable(logging.CRITICAL)  # thousands of expected errors
    plan = planned(FaultPlan(allow_leftovers=True), share)
    sandbox = FakeSandbox()
    with ToolSeam(sandbox, faults=plan) as seam:
        builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam, faults=plan)
        env = builder.build(environment(), script=script, enabled_toolsets=["terminal"], group_size=GROUP_SIZE)
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wrong = asyncio.run(soak(env, plan, rollouts=int(rollouts), at_once=int(at_once)))
        seconds = time.monotonic() - started
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        builder.close()
    struck = Counter(f"{strike.fault.place} {strike.fault.kind}" for strike in plan.strikes)
    print(
        f"{int(rollouts)} rollouts in {seconds:.1f} s ({rollouts / seconds:.0f} per second), {grown / 1024:.0f} MB more memory"
    )
    print(f"faults: {sum(struck.values())}: {dict(sorted(struck.items()))}")
    print(f"counted: {dict(sorted(env._counts.items()))}")
    print("\n".join(f"WRONG: {text}" for text in wrong) or "every sum adds up")
    return bool(wrong)
