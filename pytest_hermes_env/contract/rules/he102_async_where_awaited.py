"""HE102 async-where-awaited
Methods that Atropos awaits are async, `format_prompt` is not, and `evaluate` can be called without arguments.

What: `setup`, `get_next_item`, `compute_reward`, `evaluate` and `wandb_log` are coroutine functions, or return an
awaitable. `format_prompt` is a plain function. Every parameter of `evaluate` has a default. No method of the class drops
the coroutine of an async function, reads an attribute of it, or takes it for a condition, where it meant the result.

Why: Python reports the mistake at the first await, with "object float can't be used in 'await' expression": after the
model answered and the reward was computed, in every rollout, and the base counts it as a failed reward of 0.0. An async
`format_prompt` sends the model "<coroutine object ...>" as its task.

Fix: Where a coroutine is dropped or used as a result, write `await` in front of the call. Otherwise write `async def`
for the five, `def` for `format_prompt`, and `evaluate(self, *args, **kwargs)` or `evaluate(self)`.

Source: atroposlib 0.4.0, `envs/base.py`: `await self.setup()`, `self.get_next_item()`, `self.evaluate()`,
`self.wandb_log()`; `environments.hermes_base_env`, `collect_trajectory`: `await self.compute_reward()`,
`self.format_prompt()`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Coroutine, Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import CASES, PROBES, Cause, ErrorKind
from pytest_hermes_env.source import Call, ClassKind, ClassSource, Function, finding_at, last_name, reach_of
from pytest_hermes_env.source.layer_names import LAYER_EVALUATION, LAYER_ROLLOUTS
from pytest_hermes_env.source.syntax import named_values

OF_ATROPOS = ("setup", "get_next_item", "evaluate", "wandb_log")
OF_LAYER = ("compute_reward", "format_prompt")
AWAITED = (*OF_ATROPOS, "compute_reward")
PLAYED = {"compute_reward": "happy", "evaluate": "evaluate", "wandb_log": "wandb_log"}
"""The scenarios that show whether a wrapped method can be awaited."""
SCENARIOS = ("items", "setup", *PLAYED.values(), PROBES)
_PLAIN_DECORATORS = frozenset(
    {"abstractmethod", "classmethod", "final", "no_type_check", "override", "retry", "staticmethod", "typechecked"}
)
_KEEPING = frozenset({"cache", "lru_cache"})
_COROUTINES = frozenset({"asyncio.sleep", "asyncio.to_thread", "asyncio.wait_for"})
REPORTED_ELSEWHERE = frozenset({"evaluate_log", "wandb_log"})
"""HE705 and HE801 report these."""
_NEVER_AWAITED = re.compile(r"coroutine '(?:\w+\.)*(\w+)' was never awaited")
_NEVER_AWAITABLE = (
    ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr, ast.Compare, ast.BinOp, ast.UnaryOp, ast.ListComp,
    ast.DictComp, ast.SetComp, ast.Subscript,
)  # fmt: skip
_PLAIN_FUNCTIONS = frozenset({"bool", "dict", "float", "int", "len", "list", "max", "min", "round", "set", "str", "sum"})
_OF_COROUTINES = frozenset({name for name in dir(Coroutine) if not name.startswith("_")} | {"__await__"})


def static(source: ClassSource) -> Verdict:
    """Look at how each of the six methods is defined, and for coroutines that nobody awaits.

    It complements the rollouts: a missing ``async`` or ``await`` is seen in one line, long before anything can be played.
    """
    findings: list[Finding] = []
    doubt = ""
    for name in (*OF_ATROPOS, *(() if source.class_kind is ClassKind.ATROPOS else OF_LAYER)):
        function = source.methods.get(name)
        if function is None or function.decorators - _PLAIN_DECORATORS - _KEEPING:
            is_elsewhere = function is not None or source.has(name) or bool(source.unreadable)
            doubt = doubt or (f"what {name} returns is known only at run time" if is_elsewhere else "")
        elif fault := _fault(function):
            findings.append(dataclasses.replace(finding_at(function, function.node, fault), fix=_fix(function, fault)))
        elif name == "evaluate" and (required := _required(function)):
            findings.append(finding_at(function, function.node, _demands(required)))
    findings += [finding for _, finding in forgotten(source)]
    return Verdict.of_source(findings, "methods that are awaited are async, and format_prompt is not", doubt=doubt)


def _fault(function: Function) -> str:
    """Return what is certainly wrong with a method."""
    name = function.name
    is_generator = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in function.own_nodes())
    if name == "format_prompt":
        if function.is_async:
            return "format_prompt is async, but its result is used without an await: the model receives '<coroutine object …>'"
        return "format_prompt is a generator; it must return the prompt" if is_generator else ""
    if is_generator:
        return f"{name} is {'an async' if function.is_async else 'a'} generator, which cannot be awaited"
    if function.is_async and (kept := sorted(function.decorators & _KEEPING)):
        return (
            f"{name} is a coroutine that @{kept[0]} keeps: it can be awaited once only, and items that are dicts cannot be keys"
        )
    nodes = list(function.own_nodes())
    bound: dict[str, list[ast.expr]] = {}
    for node in nodes:
        for bound_to, value in named_values(node) if isinstance(node, ast.stmt) else ():
            bound.setdefault(bound_to, []).append(value)
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    returned = [one for value in returned for one in bound.get(getattr(value, "id", ""), [value])]
    may_be = any(map(_may_be_awaitable, returned)) and not _is_annotated_otherwise(function)
    return "" if function.is_async or may_be else f"{name} is not async, but it is awaited"


def _fix(function: Function, fault: str) -> str:
    """Return what to write at a method of which something is wrong; empty where the rule's own text says it."""
    if "generator" in fault:
        return f"Return one {'prompt' if function.name == 'format_prompt' else 'result'} from {function.name}, in place of `yield`."
    if kept := sorted(function.decorators & _KEEPING):
        return f"Remove `@{kept[0]}` above {function.name}."
    return f"Write `async def {function.name}`." if fault.endswith("is not async, but it is awaited") else ""


def _may_be_awaitable(value: ast.expr) -> bool:
    is_plain = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _PLAIN_FUNCTIONS
    return not is_plain and not isinstance(value, _NEVER_AWAITABLE)


def _is_annotated_otherwise(function: Function) -> bool:
    """Whether a method says that it returns what cannot be awaited."""
    given = function.node.returns
    return given is not None and (
        (isinstance(given, ast.Constant) and given.value is None) or last_name(given) in _PLAIN_FUNCTIONS
    )


def _required(function: Function) -> list[str]:
    every = [*function.positional_without_self, *(item.arg for item in function.node.args.kwonlyargs)]
    return [name for name in every if name not in function.defaults]


def _demands(names: list[str]) -> str:
    return f"evaluate requires {', '.join(names)}, but Atropos calls evaluate() without arguments"


def forgotten(source: ClassSource) -> Iterator[tuple[str, Finding]]:
    """Yield calls of async functions in the class's methods whose result is used, or dropped, without an await, by name."""
    for item in source.readable:
        for function in item.own_methods.values():
            for call in reach_of(source).calls_in(function):
                if _gives_a_coroutine(call) and (how := _used_unawaited(function, call.node)):
                    message = f"{function.name} calls {call.name} without await: the coroutine {how}"
                    found = finding_at(function, call.node, message)
                    yield call.name, dataclasses.replace(found, fix=f"Write `await {ast.unparse(call.node)}`.")


def _gives_a_coroutine(call: Call) -> bool:
    target = call.target
    if not isinstance(target, Function):
        return call.dotted in _COROUTINES or call.is_of_base(LAYER_ROLLOUTS | {LAYER_EVALUATION})
    is_plain = target.is_async and not target.decorators - _PLAIN_DECORATORS and target.name not in REPORTED_ELSEWHERE
    return is_plain and not any(isinstance(node, ast.Yield) for node in target.own_nodes())


def _used_unawaited(function: Function, node: ast.AST) -> str:
    """Return how a coroutine is used as if it were its result, or nothing: it is dropped, or an attribute or item of it is read."""
    parent = function.parents[node]
    if isinstance(parent, ast.Expr):
        return "is dropped: nothing of it runs"
    is_condition = isinstance(parent, ast.UnaryOp) or (
        isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assert) and parent.test is node
    )
    if is_condition or (isinstance(parent, ast.BoolOp) and parent.values[-1] is not node):
        return "is not a result: it is always true"
    reads = [_read_of(function, node)]
    name = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if isinstance(name, ast.Tuple | ast.List):
        return "is not a result: it cannot be unpacked"
    if isinstance(name, ast.Name):
        uses = [other for other in function.nodes if isinstance(other, ast.Name) and other.id == name.id and other is not name]
        reads = [_read_of(function, use) for use in uses if isinstance(use.ctx, ast.Load)]
    first = reads[0] if reads and None not in reads else None  # else somebody else gets it
    return f"is not a result: {ast.unparse(first)} raises" if first is not None else ""


def _read_of(function: Function, node: ast.AST) -> ast.expr | None:
    parent = function.parents[node]
    if isinstance(parent, ast.Attribute) and parent.value is node and parent.attr not in _OF_COROUTINES:
        return parent
    return parent if isinstance(parent, ast.Subscript) and parent.value is node else None


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
    shown = dict(forgotten(evidence.source)) if evidence.source is not None else {}
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
        function = evidence.source.methods.get(name) if evidence.source is not None else None
        yield (_fault(function) if function is not None else "") or f"{name} is not async, but it is awaited"
    elif name == "evaluate" and method.required:
        yield _demands(list(method.required))
    elif name == "evaluate" and (played := evidence.scenario("evaluate")).error_kind is ErrorKind.EVALUATE_NEEDS_ARGUMENTS:
        yield f"Atropos calls evaluate() without arguments, which raised {played.error}"  # a decorator hides what it requires


def _may_be_awaited(evidence: Evidence, name: str) -> bool:
    """Whether a plain function hands on something that can be awaited, as far as its source tells."""
    function = evidence.source.methods.get(name) if evidence.source is not None else None
    return function is None or bool(function.decorators - _PLAIN_DECORATORS - _KEEPING) or not _fault(function)


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=(*SCENARIOS, CASES),
    holds_for_base_env=True,
)
