"""HE703 eval-is-greedy
`evaluate` samples at temperature 0.0.

What: Each `agent_rollout` and each `HermesAgentLoop` in `evaluate`, in helpers and inherited methods too, has
`temperature=0.0`, as a number or through a setting whose value is 0. Without it `agent_rollout` samples at
`agent_temperature`, the temperature of training, and a loop at its default, 1.0. `evaluate_items` is greedy unless it
is given another temperature. In a scenario, each loop that `evaluate` runs has temperature 0.

Why: At temperature 1.0 the same checkpoint scores differently at every evaluation: with 50 items the mean moves by
several points from noise alone. The best checkpoint of a run is then the luckiest one, and two runs cannot be compared.

Fix: `self.agent_rollout(item, temperature=0.0)`, `self.evaluate_items()`, or a setting for evaluation with the default
0.0.

Source: `environments.hermes_base_env`, `agent_rollout` and `evaluate_items`; `environments.agent_loop.HermesAgentLoop`
(`temperature=1.0` by default).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rollout_blocks import without_evaluate
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict, one_per_place
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.source import (
    LAYER_AGENT_ROLLOUT,
    LAYER_EVALUATION,
    LAYER_LOOP,
    LAYER_ROLLOUTS,
    UNKNOWN,
    Call,
    ClassSource,
    Frame,
    Kind,
    argument,
    calls_in,
    calls_layer,
    config_calls,
    config_class,
    config_fields,
    constant_value,
    constructs,
    data_flow,
    finding_at,
    keyword,
    may_be,
    may_be_unpacked,
    origins,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_POSITION = 5
_OF_TRAINING = "agent_temperature"
_DEFAULT = 1.0


def static(source: ClassSource) -> Verdict:
    """Look at the temperature of each loop that evaluate reaches."""
    start = data_flow(source).method("evaluate")
    if start is None:
        return without_evaluate(source)
    frames = data_flow(source).reached_without(start, "compute_reward")
    loops = [(call, frame) for frame in frames for call in frame.calls if _samples(call)]
    if not loops:
        if any(calls_layer(call, LAYER_ROLLOUTS) for call in calls_in(frames)):
            return Verdict.undecided(
                f"evaluate uses the rollouts of the base class, at the config.{_OF_TRAINING} of that moment"
            )
        return Verdict.not_applicable("no HermesAgentLoop found in evaluate (HE701)")
    told = [answer for call, frame in loops for answer in _check(source, call, frame, frames)]
    findings = [item for item in told if isinstance(item, Finding)]
    unsure = next((item for item in told if isinstance(item, str)), "")
    return Verdict.of_source(findings, "evaluate samples at temperature 0", doubt=unsure)


def _check(source: ClassSource, call: Call, frame: Frame, frames: tuple[Frame, ...]) -> Iterator[Finding | str]:
    """Yield what is wrong with the temperature of one loop, and why the source cannot tell."""
    line = call.node.lineno
    is_loop = constructs(call, LAYER_LOOP)
    written = argument(call.node, _POSITION, "temperature") if is_loop else keyword(call.node, "temperature")
    if not is_loop and (written is None or (isinstance(written, ast.Constant) and written.value is None)):
        is_silent = written is None and calls_layer(call, {LAYER_EVALUATION})
        if written is None and (may_be_unpacked(call, "temperature") or _is_partial(call, frames)):
            written = _from_stars(call)
            if written is None:
                yield f"line {line}: the temperature of the rollout may be set elsewhere"
                return
        else:
            if not is_silent and (value := _training_temperature(source)) is not UNKNOWN and not _is_zero(value):
                message = (
                    f"{call.function.name} calls {call.name} without a temperature: it samples at {_OF_TRAINING} = {value}"
                )
                yield finding_at(call.function, call.node, message)
            elif not is_silent and value is UNKNOWN:
                yield f"line {line}: without a temperature it samples at {_OF_TRAINING}, which is known only at run time"
            return
    if written is None:
        if may_be_unpacked(call, "temperature"):
            written = _from_stars(call)
            if written is None:
                yield f"line {line}: the loop's arguments are unpacked from a value that cannot be followed"
                return
        elif _is_prepared(call, frames):
            yield f"line {line}: the temperature of the loop may be set elsewhere"
            return
        else:
            message = (
                f"{call.function.name} builds a HermesAgentLoop without a temperature: it samples at its default, {_DEFAULT}"
            )
            yield finding_at(call.function, call.node, message)
            return
    for node, holder in origins(written, frame, frames):
        value = constant_value(node, holder.function.module, holder.function)
        if value is UNKNOWN:
            value = _setting(source, node)
        if value is UNKNOWN:
            yield f"line {line}: {ast.unparse(node)} is known only at run time"
        elif not _is_zero(value):
            yield finding_at(
                holder.function if holder is not frame else call.function,
                node if holder is not frame else call.node,
                f"evaluation samples at temperature {_shown(node, value)}, not greedily",
            )


def _samples(call: Call) -> bool:
    """Whether a call runs the agent at a temperature that it may be given."""
    return constructs(call, LAYER_LOOP) or calls_layer(call, {LAYER_AGENT_ROLLOUT, LAYER_EVALUATION})


def _is_partial(call: Call, frames: tuple[Frame, ...]) -> bool:
    """Whether ``call`` may call a partial of the layer's method, which has further arguments."""
    return call.name not in {LAYER_AGENT_ROLLOUT, LAYER_EVALUATION} and any(
        other.name == "partial" for other in calls_in(frames)
    )


def _training_temperature(source: ClassSource) -> object:
    node = ast.parse(f"self.config.{_OF_TRAINING}", mode="eval").body
    return _setting(source, node)


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _shown(node: ast.expr, value: object) -> str:
    return f"{value}" if isinstance(node, ast.Constant) else f"{ast.unparse(node)} = {value}"


def _from_stars(call: Call) -> ast.expr | None:
    """Return the temperature in a dict that is unpacked into ``call``, where it is written down once."""
    for word in call.node.keywords:
        if word.arg is None and isinstance(word.value, ast.Name):
            function = call.function
            for node in ast.walk(function.node):
                if isinstance(node, ast.Dict):
                    pairs = zip(node.keys, node.values, strict=True)
                    found = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "temperature"]
                    around = function.parents.get(node)
                    names = ast.walk(around) if isinstance(around, (ast.Assign, ast.AnnAssign)) else ()
                    if found and any(isinstance(item, ast.Name) and item.id == word.value.id for item in names):
                        return found[0]
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
                    around = function.parents.get(node)
                    targets = around.targets if isinstance(around, ast.Assign) else ()
                    given = keyword(node, "temperature")
                    if given is not None and any(isinstance(item, ast.Name) and item.id == word.value.id for item in targets):
                        return given
    return None


def _is_prepared(call: Call, frames: tuple[Frame, ...]) -> bool:
    """Whether the loop is a class of its own, or a partial of one, that may fix the temperature."""
    if any(value.kind is Kind.CLASS for value in call.callee):
        return True
    return any(
        other.name == "partial" and other.arguments and may_be(other.arguments[0], Kind.EXTERNAL)
        for other in calls_in(frames)
        if any(value.name.rpartition(".")[2] == LAYER_LOOP for values in other.arguments[:1] for value in values)
    )


def _setting(source: ClassSource, node: ast.expr) -> object:
    """Return the value of ``self.config.name`` as config_init or the default of the field gives it, else UNKNOWN."""
    if not isinstance(node, ast.Attribute) or not ast.unparse(node.value).endswith("config"):
        return UNKNOWN
    start = data_flow(source).method("config_init")
    frames = data_flow(source).reached_from(start) if start is not None else ()
    for call in config_calls(frames):
        given = keyword(call.node, node.attr)
        if given is not None:
            return constant_value(given, call.function.module, call.function)
    if node.attr == _OF_TRAINING:
        return _DEFAULT
    config = config_class(source)
    for field in config_fields(config) if isinstance(config, ClassSource) else ():
        if field.name == node.attr and field.node.value is not None:
            default = field.node.value
            if isinstance(default, ast.Call):
                found = keyword(default, "default") or next(iter(default.args), None)
                return constant_value(found, field.owner.module) if found is not None else UNKNOWN
            return constant_value(default, field.owner.module)
    return UNKNOWN


SCENARIOS = ("evaluate",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the temperature of each loop that evaluate() ran."""
    evaluation = evidence.scenario("evaluate")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    loops = evaluation.of(LoopStarted)
    if not loops:
        return Verdict.not_exercised("evaluate() ran no agent loop (HE701)", "HE701", "HE705")
    asked = next(
        (value for request in evaluation.requests if request.get("tools") and (value := request.get("temperature"))), 0
    )
    sampled = [(loop, asked if loop.temperature is None else loop.temperature) for loop in loops]  # a fork's may not keep it
    findings = one_per_place(
        evidence.recorded_finding(
            f"an agent loop of evaluate() sampled at temperature {temperature}", loop.place, "evaluate", scenario="evaluate"
        )
        for loop, temperature in sampled
        if temperature != 0
    )
    return Verdict.of(findings, f"evaluate() sampled at temperature 0 in {len(loops)} rollouts")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, scenarios=SCENARIOS)
