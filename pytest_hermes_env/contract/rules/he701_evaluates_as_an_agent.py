"""HE701 evaluates-as-an-agent
`evaluate` runs the agent with tools on its items.

What: `evaluate`, through helpers and inherited methods, uses the rollouts of the base class (`evaluate_items`,
`agent_rollout`, `collect_trajectory`, `collect_trajectories`), or builds a `HermesAgentLoop` with tool schemas and
awaits its run. A bare `chat_completion`, a stub, a constant or a loop without tools is a violation.

Why: The model is trained to work in turns with tools. One chat completion without tools measures something else: the
curve that selects the checkpoint does not show the skill that was trained, and the API money of every evaluation buys
the wrong number.

Fix: Set `self.eval_items` in `setup()` and `await self.evaluate_items()`, or score `rollout.result` in
`async with self.agent_rollout(item, temperature=0.0) as rollout:` for each item.

Source: `environments.hermes_base_env`, `evaluate_items` and `agent_rollout`; `environments.agent_loop.HermesAgentLoop`;
atroposlib 0.4.0, `envs/base.py`, `BaseEnv.evaluate`.
"""

from __future__ import annotations

import ast
import re

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.play.scenario import ErrorKind
from pytest_hermes_env.source import LAYER_LOOP, LAYER_RUNS, ClassSource, finding_at, last_name, reach_of

_HELD_OUT = re.compile(
    r"(?:^|_)(?:eval|evaluation|held_?out|test|val|valid|validation)(?:_(?:items?|set|rows?|data|tasks?|cases?|examples?|prompts?|problems?|questions?|split))?$"
)
"""Attributes that hold what is evaluated."""
_LOGS = frozenset({"critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning"})
_COMPLETIONS = frozenset({"chat_completion", "completion"})


def static(source: ClassSource) -> Verdict:
    """Look for the agent in what evaluate leads to, and for a chat completion or nothing at all in its place.

    It complements the rollouts: the most common mistake of all is written in one line.
    """
    evaluate = source.methods.get("evaluate")
    if evaluate is None:
        is_elsewhere = source.unreadable or source.has("evaluate")
        reason = "evaluate is not in code that can be read" if is_elsewhere else "there is no evaluate (HE101)"
        return Verdict.undecided(reason) if is_elsewhere else Verdict.not_applicable(reason)
    calls = list(reach_of(source).calls("evaluate", without={"compute_reward"}))
    if any(call.is_of_base(LAYER_RUNS) for call in calls):
        return Verdict.passed("evaluate uses the rollouts of the base class")
    if any(call.makes(LAYER_LOOP) for call in calls):
        return Verdict.passed("evaluate builds a HermesAgentLoop")
    if all(map(_is_idle, evaluate.node.body)):
        return Verdict.failed([finding_at(evaluate, evaluate.node, "evaluate is a stub: it evaluates nothing")])
    for call in calls:
        if call.target is None and any(call.function.is_self(item) for item in call.node.args):
            return Verdict.undecided(f"line {call.node.lineno}: {call.name}(...) is given the environment, and cannot be read")
    for call in calls:
        if call.name in _COMPLETIONS or ast.unparse(call.node.func).endswith("chat.completions.create"):
            message = f"evaluate calls the model through {call.name}, one turn without tools, and runs no HermesAgentLoop"
            return Verdict.failed([finding_at(call.function, call.node, message)])
    return Verdict.undecided("how evaluate runs the agent is known only at run time")


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement only passes, returns or raises something constant, or logs."""
    if isinstance(statement, (ast.Pass, ast.Raise)):
        return True
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        return last_name(value.func) in _LOGS
    if not isinstance(statement, (ast.Return, ast.Expr, ast.Assign)):
        return False
    return value is None or not any(isinstance(node, (ast.Call, ast.Await)) for node in ast.walk(value))


SCENARIOS = ("evaluate", "happy")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what evaluate() asked of the model, and how."""
    evaluation = evidence.scenario("evaluate")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    loops = evaluation.of(LoopStarted)
    with_tools = [loop for loop in loops if loop.tools]
    if with_tools:
        return Verdict.passed(
            f"evaluate() ran {len(with_tools)} agent loops, each with up to {max(len(loop.tools) for loop in with_tools)} tools"
        )
    path, line = evidence.at_method("evaluate")
    fix = ""
    if loops:
        path, line = loops[0].place.path, loops[0].place.line
        message = f"evaluate() ran {len(loops)} agent loops without any tools"
    elif evaluation.requests:
        message = f"evaluate() called the model {len(evaluation.requests)} times, never through the agent loop"
        shown = static(evidence.source).findings if evidence.source is not None else ()
        path, line = next(((finding.path, finding.line) for finding in shown), (path, line))  # that call is in the source
    else:
        if evaluation.error_kind is ErrorKind.EVALUATE_NEEDS_ARGUMENTS:
            return Verdict.not_exercised("evaluate cannot be called without arguments, which HE102 reports", "HE102")
        if evaluation.error:
            return Verdict.not_exercised(f"evaluate() {evaluation.failure}, which HE705 reports", "HE705")
        training = evidence.scenario("happy")
        if training.happened and not (training.of(LoopStarted) or training.requests):
            return Verdict.not_exercised("no rollout reached the agent, in training either", "HE412", "HE511")
        message = "evaluate() never called the model"
        held = {
            f"self.{name}": seen for name, seen in evaluation.before.items() if _HELD_OUT.search(name) and _is_collection(seen)
        }
        if (empty := [name for name, seen in held.items() if _is_empty(seen)]) and len(empty) == len(held):
            message += f": {' and '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty after setup()"
            fix = f"Let setup() put items into {empty[0]}: as it chooses them, none is left."
    if evaluation.error:
        message += f"; it raised {evaluation.error}"
    return Verdict.failed([Finding(message=message, path=path, line=line, scenario="evaluate", fix=fix)])


def _is_collection(picture: object) -> bool:
    """Tell whether what `buffers.snapshot` pictures is a collection."""
    return isinstance(picture, tuple) and picture[:1] in (("sequence",), ("mapping",), ("set",))


def _is_empty(picture: object) -> bool:
    """Tell whether what `buffers.snapshot` pictures is an empty collection."""
    return isinstance(picture, tuple) and picture[1:2] == (0,)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
