"""HE605 loop-is-not-blocked
No code of an environment blocks the event loop.

What: Nothing that rollouts, evaluation or `wandb_log` reach calls a function that waits in its own thread
(`time.sleep`, `requests`, `urllib`, `subprocess.run`), unless it runs in a thread (`asyncio.to_thread`,
`run_in_executor`). In the scenarios, no line of the class keeps the event loop from running for 100 ms. `setup` may
block: nothing runs beside it.

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

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import Blocked, Place
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import Call, ClassSource, Frame, Kind, data_flow, finding_at, last_name, sorted_findings
from pytest_hermes_env.source.finding import Severity

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
    | {
        f"{module}.{name}"
        for module in ("requests", "httpx")
        for name in ("get", "post", "put", "delete", "head", "patch", "request")
    }
)  # fmt: skip
_THREADS = frozenset({"to_thread", "run_in_executor", "submit", "Thread", "map"})
_SHORT_S = 0.1


def static(source: ClassSource) -> Verdict:
    """Look for calls that wait, in what runs on the event loop."""
    starts = [frame for name in _STARTS if (frame := data_flow(source).method(name)) is not None]
    if not starts:
        return Verdict.not_applicable("no method that runs alongside rollouts can be read")
    findings = sorted_findings(
        finding_at(call.function, call.node, f"{name} blocks the event loop in {call.function.name}: every other rollout waits")
        for frame in _on_the_loop(starts)
        for call in frame.calls
        if (name := _blocks(call)) and not _is_handed_over(call)
    )
    return Verdict.of(findings, "nothing that rollouts reach is known to block the event loop")


def _on_the_loop(starts: list[Frame]) -> list[Frame]:
    """Return the frames that are reached without handing a function to a thread."""
    found: dict[int, Frame] = {}
    pending = list(starts)
    while pending:
        frame = pending.pop()
        if id(frame) not in found:
            found[id(frame)] = frame
            pending += [
                target for node, target in frame.edges if not (isinstance(node, ast.Call) and last_name(node.func) in _THREADS)
            ]
    return list(found.values())


def _blocks(call: Call) -> str:
    """Return the name of the function that a call waits in, or an empty string."""
    names = {value.name for value in call.callee if value.kind is Kind.EXTERNAL} & _BLOCKING
    given = call.node.args[0] if call.node.args else None
    is_short = isinstance(given, ast.Constant) and isinstance(given.value, int | float) and given.value < _SHORT_S
    return "" if "time.sleep" in names and is_short else next(iter(sorted(names)), "")


def _is_handed_over(call: Call) -> bool:
    """Tell whether a call stands in a nested plain function or lambda that nothing calls directly: a thread does."""
    scope = call.function.scope_of(call.node)
    if scope is call.function.node or isinstance(scope, ast.AsyncFunctionDef):
        return False
    name = getattr(scope, "name", "")
    nodes = ast.walk(call.function.node)
    return not any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name for node in nodes)


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
