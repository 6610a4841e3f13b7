"""HE605 loop-is-not-blocked
No code of an environment blocks the event loop.

What: Nothing that rollouts, evaluation or `wandb_log` reach calls a function that waits in its own thread
(`time.sleep`, `requests`, `urllib`, `subprocess.run`), unless it runs in a thread (`asyncio.to_thread`,
`run_in_executor`). In the scenarios, no line of the class keeps the event loop from running for 100 ms. `setup` may
block: nothing else runs meanwhile.

Why: All rollouts of a process share one event loop. While one of them sleeps for a second or waits for a web server,
the other 63 wait too: their model calls time out, heartbeats are missed, and one slow line makes a training step take
minutes. Calls of the `ToolContext` in `compute_reward`, and in the `score` function of `evaluate_items`, do not count:
the base class bridges them.

Fix: Use `await asyncio.sleep(...)`, an async client, `asyncio.create_subprocess_exec`, or `await
asyncio.to_thread(function, ...)`.

Source: Python's asyncio, "Running Blocking Code"; `environments.sandbox.nonblocking_calls` for `ToolContext` in
`compute_reward`.
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, finding_in
from pytest_hermes_env.play.journal import Blocked, Place
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import Call, ClassSource, finding_at, reach_of

_STARTS = (
    "get_next_item",
    "collect_trajectories",
    "collect_trajectory",
    "format_prompt",
    "compute_reward",
    "evaluate",
    "wandb_log",
)
_BLOCKING = frozenset(
    {
        "time.sleep", "os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call",
        "subprocess.check_output", "subprocess.getoutput", "urllib.request.urlopen", "urllib.request.urlretrieve",
        "socket.create_connection",
    }
    | {f"{module}.{name}" for module in ("requests", "httpx") for name in ("get", "post", "put", "delete", "head", "request")}
)  # fmt: skip
_SHORT_S = 0.1


def static(source: ClassSource) -> Verdict:
    """Look for calls that wait, in what runs on the event loop.

    It complements the rollouts, which wait for nothing slow, since mocks answer at once, and never run some lines.
    """
    findings = [
        finding_at(
            call.function, call.node, f"{call.dotted} blocks the event loop in {call.function.name}: every other rollout waits"
        )
        for call in reach_of(source).calls_where(_is_on_the_loop, *_STARTS)
        if call.dotted in _BLOCKING and not _is_short(call)
    ]
    return Verdict.of_source(findings, "nothing that rollouts lead to is known to block the event loop")


def _is_short(call: Call) -> bool:
    given = call.node.args[0] if call.dotted == "time.sleep" and call.node.args else None
    return isinstance(given, ast.Constant) and isinstance(given.value, int | float) and given.value < _SHORT_S


def _is_on_the_loop(call: Call) -> bool:
    """Whether a method makes a call itself: what is handed to a thread is named, and not called."""
    scope = call.function.scope_of(call.node)
    return scope is call.function.node or isinstance(scope, ast.AsyncFunctionDef)


SCENARIOS = ("happy", "silent", "concurrent_groups", "evaluate", "evaluate_twice", "wandb_log")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the steps of the event loop that stood in the environment for too long."""
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    longest: dict[Place, tuple[float, str]] = {}
    for scenario in ran:
        for event in scenario.of(Blocked):
            longest[event.place] = max(longest.get(event.place, (0.0, "")), (event.seconds, scenario.name))
    findings = [
        finding_in(
            name, place, f"the event loop was blocked for {seconds:.1f} s in {place.function}: every other rollout waited"
        )
        for place, (seconds, name) in longest.items()
    ]
    return Verdict.of(findings, f"the event loop was never blocked for 100 ms in {len(ran)} scenarios")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
