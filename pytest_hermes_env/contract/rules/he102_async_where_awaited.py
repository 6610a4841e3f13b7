"""HE102 async-where-awaited
Methods that Atropos awaits are async, `format_prompt` is not, and `evaluate` can be called without arguments.

What: `setup`, `get_next_item`, `compute_reward`, `evaluate` and `wandb_log` are coroutine functions, or return an
awaitable. `format_prompt` is a plain function. Every parameter of `evaluate` has a default. No method of the class drops
the coroutine of an async function, or reads an attribute of it, where it meant the result.

Why: Python reports the mistake at the first await, with "object float can't be used in 'await' expression": after the
model answered and the reward was computed, in every rollout, and the base counts it as a failed reward of 0.0. An async
`format_prompt` sends the model "<coroutine object ...>" as its task.

Fix: Write `async def` for the five, `def` for `format_prompt`, and `evaluate(self, *args, **kwargs)` or
`evaluate(self)`.

Source: atroposlib 0.4.0, `envs/base.py`: `await self.setup()`, `self.get_next_item()`, `self.evaluate()`,
`self.wandb_log()`; `environments.hermes_base_env`, `collect_trajectory`: `await self.compute_reward()`,
`self.format_prompt()`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.awaited_calls import used_unawaited
from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import CASES, PROBES
from pytest_hermes_env.play.unavailable import Cause, ErrorKind
from pytest_hermes_env.source import (
    ClassKind,
    ClassSource,
    External,
    Function,
    Kind,
    Value,
    data_flow,
    finding_at,
    last_name,
    resolve,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_ATROPOS = ("setup", "get_next_item", "evaluate", "wandb_log")
OF_LAYER = ("compute_reward", "format_prompt")
AWAITED = (*OF_ATROPOS, "compute_reward")
PLAYED = {"compute_reward": "happy", "evaluate": "evaluate", "wandb_log": "wandb_log"}
"""The scenarios that show whether a wrapped method can be awaited."""
SCENARIOS = ("items", "setup", *PLAYED.values(), PROBES)
_PLAIN_DECORATORS = frozenset(
    {"abstractmethod", "classmethod", "final", "no_type_check", "override", "retry", "staticmethod", "typechecked"}
)
_AWAITABLE = frozenset(
    {"create_task", "ensure_future", "gather", "run_in_executor", "shield", "sleep", "to_thread", "wait_for"}
)
_COROUTINES = frozenset({"asyncio.sleep", "asyncio.to_thread", "asyncio.wait_for"})
REPORTED_ELSEWHERE = frozenset({"evaluate_log", "wandb_log"})
"""HE705 and HE801 report these."""
_NEVER_AWAITED = re.compile(r"coroutine '(?:\w+\.)*(\w+)' was never awaited")
_NEVER_AWAITABLE = (
    ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr, ast.Compare, ast.BinOp, ast.UnaryOp, ast.ListComp,
    ast.DictComp, ast.SetComp, ast.Subscript,
)  # fmt: skip


def static(source: ClassSource) -> Verdict:
    """Look at how each of the six methods is defined, wherever the class has it from."""
    findings: list[Finding] = []
    doubts: list[str] = []
    of_layer = () if source.class_kind is ClassKind.ATROPOS else OF_LAYER
    for name in (*OF_ATROPOS, *of_layer):
        function, reason = _given(source, name)
        if function is None:
            doubts += [reason] if reason else []
            continue
        fault, doubt = _fault(source, name, function)
        if fault:
            findings.append(finding_at(function, function.node, fault))
        elif doubt:
            doubts.append(doubt)
        if name == "evaluate" and not fault and (demanded := _demanded(function)):
            findings.append(finding_at(function, function.node, _demands(demanded)))
    findings += [finding for _, finding in _forgotten(source)]
    return Verdict.of_source(
        findings, "methods that are awaited are async, and format_prompt is not", doubt=next(iter(doubts), "")
    )


def _forgotten(source: ClassSource) -> Iterator[tuple[str, Finding]]:
    """Yield calls of async functions in the class's own methods whose result is used, or dropped, without an await, by name."""
    for item in source.readable:
        for function in item.own_methods.values():
            for call in data_flow(source).entry(function).calls:
                is_certain = bool(call.callee) and all(_is_coroutine_function(value) for value in call.callee)
                if call.function is function and is_certain and (how := used_unawaited(function, call.node)):
                    name = call.name or "a call"
                    message = f"{function.name} calls {name} without await: the coroutine {how}"
                    yield name, finding_at(function, call.node, message)


def _is_coroutine_function(value: Value) -> bool:
    if isinstance(value.target, Function):
        is_plain = value.target.is_async and not value.target.decorators - _PLAIN_DECORATORS
        is_plain &= not any(isinstance(node, ast.Yield) for node in value.target.own_nodes())
        return is_plain and value.target.name not in REPORTED_ELSEWHERE
    return value.kind is Kind.EXTERNAL and value.name in _COROUTINES


def _demands(names: list[str]) -> str:
    return f"evaluate requires {', '.join(names)}, but Atropos calls evaluate() without arguments"


def _given(source: ClassSource, name: str) -> tuple[Function | None, str]:
    """Return the method, or why it cannot be told what it is; neither where the class simply has none (that is HE101's)."""
    function = source.methods.get(name)
    given = source.attribute(name)
    before = [item.node for item in source.readable[: source.readable.index(given[0])]] if given is not None else []
    if given is not None and (function is None or function.owner not in before):
        owner, node = given
        inside = owner.own_methods.get(node.id) if isinstance(node, ast.Name) else None
        target = inside or resolve(owner.module, node)
        if isinstance(target, Function):
            return target, ""
        return None, f"{name} is a class-level value computed at run time"
    if function is None and source.unreadable:
        return None, f"{name} may come from {source.unreadable[0]}, which cannot be read"
    return function, ""


def _fault(source: ClassSource, name: str, function: Function) -> tuple[str, str]:
    """Return what is certainly wrong with a method, and what cannot be known of it."""
    if strange := sorted(function.decorators - _PLAIN_DECORATORS):
        fault = next((fault for node in function.node.decorator_list if (fault := _of_wrapper(name, function, node))), "")
        return fault, "" if fault else f"the decorator @{strange[0]} may change what {name} returns"
    frame = data_flow(source).entry(function)
    if name == "format_prompt":
        if function.is_async:
            return (
                "format_prompt is async, but its result is used without an await: the model receives '<coroutine object …>'",
                "",
            )
        return ("format_prompt is a generator; it must return the prompt", "") if frame.is_generator else ("", "")
    if function.is_async:
        return (f"{name} is an async generator, which cannot be awaited", "") if frame.is_generator else ("", "")
    if frame.is_generator:
        return f"{name} is a generator, but it is awaited: write `async def`", ""
    returns = [node for node in function.own_nodes() if isinstance(node, ast.Return)]
    kinds = {_is_awaitable(source, function, node.value) for node in returns} or {False}
    if False in kinds:
        return f"{name} is not async, but it is awaited", ""
    return "", f"{name} is not async, and what it returns comes from code that cannot be read" if None in kinds else ""


def _of_wrapper(name: str, function: Function, decorator: ast.expr) -> str:
    """Return what is certainly wrong with a method because its decorator returns a nested function that is not async."""
    wrapping = resolve(function.module, decorator)
    if not isinstance(wrapping, Function) or wrapping.is_async or name == "format_prompt":
        return ""
    returned = [node.value for node in wrapping.own_nodes() if isinstance(node, ast.Return)]
    inner = {node.name: node for node in wrapping.node.body if isinstance(node, ast.FunctionDef)}
    for value in returned:
        wrapper = inner.get(value.id) if isinstance(value, ast.Name) else None
        if len(returned) == 1 and wrapper is not None and not _may_return(wrapper):
            return f"the decorator @{last_name(decorator)} makes {name} a function that returns nothing, but it is awaited"
    return ""


def _may_return(node: ast.FunctionDef) -> bool:
    """Whether a function returns a value of any kind."""
    return any(isinstance(item, (ast.Return, ast.Yield, ast.YieldFrom)) and item.value is not None for item in ast.walk(node))


def _is_awaitable(source: ClassSource, function: Function, node: ast.expr | None) -> bool | None:
    """Whether an expression certainly can, certainly cannot, or may be awaited (None)."""
    if node is None or isinstance(node, _NEVER_AWAITABLE):
        return False
    if not isinstance(node, ast.Call):
        return None
    frame = data_flow(source).entry(function)
    callees = [value for call in frame.calls if call.node is node for value in call.callee]
    answers = {_gives_awaitable(value) for value in callees}
    return answers.pop() if len(answers) == 1 else None


def _gives_awaitable(value: Value) -> bool | None:
    if isinstance(value.target, Function):
        return True if value.target.is_async else None if value.target.decorators - _PLAIN_DECORATORS else False
    if value.kind is Kind.LOCAL:
        return isinstance(value.node, ast.AsyncFunctionDef)
    if value.kind is Kind.BASE_METHOD:
        return value.name in {*AWAITED, "collect_trajectory", "collect_trajectories", "evaluate_log"} or None
    if value.kind is Kind.EXTERNAL:
        dotted = External(dotted=value.name)
        if dotted.last in _AWAITABLE:
            return True
        return False if dotted.is_known else None
    return None


def _demanded(function: Function) -> list[str]:
    """Return the parameters without a default, self left out."""
    arguments = function.node.args
    positional = function.positional[0 if function.is_static and function.owner is not None else 1 :]
    every = [*positional, *(item.arg for item in arguments.kwonlyargs)]
    return [name for name in every if name not in function.defaults]


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the functions that the class really has."""
    own = [
        name
        for name in (*AWAITED, "format_prompt")
        if (method := evidence.cls.methods.get(name)) is not None and method.is_callable
    ]
    if not own:
        return Verdict.not_exercised("the class has none of these methods", "HE101")
    findings = [evidence.finding(message, name) for name in own for message in _seen(evidence, name)]
    items = evidence.scenario("items")
    findings += [finding for name in own if not findings and (finding := _not_awaited(evidence, name)) is not None]
    if items.happened and items.error_kind is ErrorKind.NOT_AWAITABLE and not items.error_place.line and not findings:
        message = "get_next_item is not async, but it is awaited"
        findings = [evidence.finding(message, "get_next_item", seen=items.error, scenario="items")]
    missing = evidence.why_missing("setup")
    if missing is not None and missing.cause is Cause.SETUP_NOT_ASYNC and not findings:
        findings = [evidence.finding("setup is not async, but it is awaited", "setup", seen=missing.detail, scenario="setup")]
    findings = findings or list(_never_awaited(evidence))
    return Verdict.of(findings, f"{', '.join(own)} are async or plain as required")


def _never_awaited(evidence: Evidence) -> Iterator[Finding]:
    """Yield the coroutines that Python said nobody awaited, where the class has them, or the source shows who dropped them."""
    shown = dict(_forgotten(evidence.source)) if evidence.source is not None else {}
    for scenario in [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]:
        for name in dict.fromkeys(name for warning in scenario.warnings for name in _NEVER_AWAITED.findall(warning)):
            if name in shown:
                yield dataclasses.replace(shown[name], scenario=scenario.name)
            elif name not in REPORTED_ELSEWHERE and evidence.is_own(name):
                yield evidence.finding(f"the coroutine of {name} was never awaited", name, scenario=scenario.name)


def _not_awaited(evidence: Evidence, name: str) -> Finding | None:
    """Return a finding where a rollout got something from a wrapped method that cannot be awaited."""
    if name not in PLAYED or (name in evidence.cls.methods and evidence.cls.methods[name].is_async):
        return None
    scenario = evidence.scenario(PLAYED[name])
    rewards = [reward for reward in scenario.of(Reward) if reward.is_plain]
    is_seen = (
        rewards
        if name == "compute_reward"
        else scenario.error_kind is ErrorKind.NOT_AWAITABLE and not scenario.error_place.line
    )
    if not is_seen:
        return None
    seen = scenario.error or f"it returned {rewards[0].value!r}"
    return evidence.finding(f"{name} is not async, but it is awaited", name, seen=seen, scenario=scenario.name)


def _seen(evidence: Evidence, name: str) -> Iterator[str]:
    method = evidence.cls.methods[name]
    is_async = method.is_async
    if name == "format_prompt":
        if is_async or method.is_async_generator:
            yield "format_prompt is async, but its result is used without an await: the model receives '<coroutine object …>'"
        return
    if not is_async and not _may_be_awaited(evidence, name):
        yield f"{name} is not async, but it is awaited"
    elif name == "evaluate" and method.required:
        yield _demands(list(method.required))


def _may_be_awaited(evidence: Evidence, name: str) -> bool:
    """Whether a plain function hands on something that can be awaited, as far as its source tells."""
    if evidence.source is None:
        return True
    function, _ = _given(evidence.source, name)
    return function is None or not _fault(evidence.source, name, function)[0]


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=(*SCENARIOS, CASES),
    holds_for_base_env=True,
)
