"""The breakages that an environment can suffer: for each rule the edits that break it, where its source has what they need.

An operator yields nothing where it does not apply. Each gives at most `PLACES` breakages: the score shall say which kinds of
mistakes the tests notice, not how often one kind can be made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from pytest_hermes_env.contract.mutation.breakage import Breakage, inserted, replaced, replaced_block
from pytest_hermes_env.source import (
    LAYER_AGENT_ROLLOUT,
    LAYER_CONTEXT,
    LAYER_EVALUATION,
    LAYER_LOOP,
    ClassSource,
    Function,
    last_name,
    reach_of,
)

PLACES = 2
"""Breakages of one operator, at most."""

Operator = Callable[[ClassSource], Iterator[Breakage]]
_Node = TypeVar("_Node", bound=ast.AST)

TRAINING = ("compute_reward", "collect_trajectory", "collect_trajectories", "get_next_item", "score")
_ADDS = frozenset({"append", "extend", "appendleft", "add"})
_CONSTANT_TASK = '"the-rollout"'


def breakages(source: ClassSource) -> list[Breakage]:
    """Return every breakage that applies to a class, in the order of the rules; those whose file would not parse are left out."""
    found: dict[tuple[str, bytes], Breakage] = {}
    for operator in OPERATORS:
        for breakage in islice((item for item in operator(source) if item.is_valid), PLACES):
            found.setdefault((breakage.module.file, breakage.text), breakage)
    return sorted(found.values(), key=lambda item: (item.rule, item.module.path, item.line))


# ---------------------------------------------------------------------- where to look


def _functions(source: ClassSource, *methods: str) -> list[Function]:
    """Return the named methods and all functions that they reach, each once."""
    return list(reach_of(source).functions(*methods))


def _nodes(functions: list[Function], kind: type[_Node]) -> Iterator[tuple[Function, _Node]]:
    for function in functions:
        for node in ast.walk(function.node):
            if isinstance(node, kind):
                yield function, node


def _calls(functions: list[Function], name: str) -> Iterator[tuple[Function, ast.Call]]:
    for function, node in _nodes(functions, ast.Call):
        if last_name(node.func) == name:
            yield function, node


@dataclass(frozen=True, kw_only=True)
class _Change:
    """A change of an attribute of self: ``how`` is the method that makes it, or ``set`` or ``part`` for an assignment."""

    attribute: str
    how: str
    node: ast.AST
    function: Function

    @property
    def statement(self) -> ast.stmt:
        """The statement that makes it."""
        return self.function.statement_of(self.node)


def _changes(functions: list[Function]) -> Iterator[_Change]:
    for function in functions:
        for node in function.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Attribute(value=holder, attr=name), attr=how)):
                    pass
                case ast.Attribute(value=holder, attr=name, ctx=ast.Store()):
                    how = "set"
                case ast.Subscript(value=ast.Attribute(value=holder, attr=name), ctx=ast.Store() | ast.Del()):
                    how = "part"
                case _:
                    continue
            if function.is_self(holder):
                yield _Change(attribute=name, how=how, node=node, function=function)


def _made(rule: str, name: str, function: Function, node: ast.AST, text: str) -> Breakage:
    module = function.module
    line, _ = module.place(node)
    return Breakage(rule=rule, name=name, module=module, line=line, edits=(replaced(module, node, text),))


def _without(rule: str, name: str, function: Function, statement: ast.stmt) -> Breakage:
    return _made(rule, name, function, statement, "pass")


def _raised(rule: str, name: str, function: Function, handler: ast.ExceptHandler) -> Breakage:
    """Return the breakage that lets an exception through."""
    edit = replaced_block(function.module, handler.body, "raise")
    return Breakage(rule=rule, name=name, module=function.module, line=handler.lineno, edits=(edit,))


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _first_statement(function: Function) -> ast.stmt:
    body = function.node.body
    is_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1] if is_docstring else body[0]


def _begun_with(rule: str, name: str, function: Function, line: str) -> Breakage:
    """Return the breakage that puts one more statement at the beginning of a function."""
    first = _first_statement(function)
    edit = inserted(function.module, first, f"{line}\n{' ' * first.col_offset}")
    return Breakage(rule=rule, name=name, module=function.module, line=first.lineno, edits=(edit,))


def _method(source: ClassSource, name: str) -> Function | None:
    return source.methods.get(name)


# ---------------------------------------------------------------------- class, items, results


def config_without_a_list(source: ClassSource) -> Iterator[Breakage]:
    """HE105: config_init gives one server configuration and no list."""
    for function, node in _nodes(_functions(source, "config_init"), ast.Return):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:  # noqa: PLR2004
            servers = node.value.elts[1]
            text = _text(servers.elts[0]) if isinstance(servers, ast.List) and servers.elts else f"({_text(servers)})[0]"
            yield _made("HE105", "config_init returns one server instead of a list", function, servers, text)


def items_that_run_out(source: ClassSource) -> Iterator[Breakage]:
    """HE202: get_next_item counts on forever."""
    for function, node in _nodes(_functions(source, "get_next_item"), ast.BinOp):
        if isinstance(node.op, ast.Mod):
            yield _made("HE202", "get_next_item runs out of items", function, node, _text(node.left))


def answer_read_from_the_result(source: ClassSource) -> Iterator[Breakage]:
    """HE301: the reward reads a field that AgentResult does not have."""
    for function, node in _nodes(_functions(source, "compute_reward"), ast.Attribute):
        if node.attr == "messages" and isinstance(node.ctx, ast.Load):
            text = f"{_text(node.value)}.final_response"
            yield _made("HE301", "the reward reads final_response instead of messages", function, node, text)


# ---------------------------------------------------------------------- rewards


def reward_of_none(source: ClassSource) -> Iterator[Breakage]:
    """HE401: compute_reward returns None where it returned 0.0."""
    for function, node in _nodes(_functions(source, "compute_reward"), ast.Return):
        value = node.value
        if isinstance(value, ast.Constant) and value.value == 0 and function.name == "compute_reward":
            yield _made("HE401", "compute_reward returns None instead of 0.0", function, node, "return None")


def reward_without_limits(source: ClassSource) -> Iterator[Breakage]:
    """HE402: the clamp is gone, and rewards are ten times as large."""
    function = _method(source, "compute_reward")
    if function is not None:
        for _, node in _nodes([function], ast.Return):
            value = node.value
            if value is not None and not (isinstance(value, ast.Constant) and not value.value):
                yield _made("HE402", "the reward leaves [0, 1]", function, node, f"return 10.0 * float({_text(value)})")


def reward_that_is_constant(source: ClassSource) -> Iterator[Breakage]:
    """HE405: every rollout gets the same reward."""
    function = _method(source, "compute_reward")
    if function is not None:
        for number in ("1.0", "0.0"):
            yield _begun_with("HE405", f"every rollout gets the reward {number}", function, f"return {number}")


def judge_without_a_fallback(source: ClassSource) -> Iterator[Breakage]:
    """HE406: what the judge raises goes through."""
    functions = _functions(source, "compute_reward")
    for function, node in _nodes(functions, ast.Try):
        asks = any(isinstance(part, ast.Call) and last_name(part.func) == "chat_completion" for part in ast.walk(node))
        if asks and node.handlers:
            yield _raised("HE406", "a failing judge makes compute_reward raise", function, node.handlers[0])


def item_that_is_changed(source: ClassSource) -> Iterator[Breakage]:
    """HE408: the reward changes the conversation that is trained on."""
    function = _method(source, "compute_reward")
    if function is not None and len(function.positional) > 2:  # noqa: PLR2004 - self, item, result
        result = function.positional[2]
        line = f"{result}.messages.append({{'role': 'user', 'content': 'graded'}})"
        yield _begun_with("HE408", "the reward adds to the messages", function, line)


def shell_value_unquoted(source: ClassSource) -> Iterator[Breakage]:
    """HE409: a value goes into a command as it is."""
    for function, node in _calls(_functions(source, "compute_reward"), "quote"):
        if node.args:
            yield _made("HE409", "a value goes into a shell command unquoted", function, node, f"str({_text(node.args[0])})")


def cleanup_in_the_reward(source: ClassSource) -> Iterator[Breakage]:
    """HE411: the reward releases the sandbox that the base cleans up."""
    function = _method(source, "compute_reward")
    if function is not None and len(function.positional) > 3:  # noqa: PLR2004 - self, item, result, ctx
        yield _begun_with("HE411", "the reward cleans up the sandbox", function, f"{function.positional[3]}.cleanup()")


# ---------------------------------------------------------------------- sandboxes


def sandbox_that_leaks(source: ClassSource) -> Iterator[Breakage]:
    """HE601: cleanup() is not called."""
    for function, node in _calls(_functions(source, "evaluate"), "cleanup"):
        statement = function.statement_of(node)
        if isinstance(statement, ast.Expr):
            yield _without("HE601", "evaluation leaks its sandboxes", function, statement)


def task_id_that_is_shared(source: ClassSource) -> Iterator[Breakage]:
    """HE602: all rollouts of evaluation have one task id."""
    for function, node in _calls(_functions(source, "evaluate"), LAYER_CONTEXT):
        if node.args:
            yield _made("HE602", "all rollouts of evaluation share a task id", function, node.args[0], _CONSTANT_TASK)


# ---------------------------------------------------------------------- evaluation


def evaluation_without_tools(source: ClassSource) -> Iterator[Breakage]:
    """HE701: the loop of evaluation offers no tool."""
    for function, node in _calls(_functions(source, "evaluate"), LAYER_LOOP):
        for word in node.keywords:
            if word.arg == "tool_schemas":
                yield _made("HE701", "evaluation offers the model no tools", function, word.value, "[]")
    for function, node in _calls(_functions(source, "evaluate"), LAYER_EVALUATION):
        logs = "self.evaluate_log(metrics={'eval/mean_reward': 1.0}, samples=[{'score': 1.0}])"
        yield _made("HE701", "evaluation runs no agent", function, node, logs)


def buffers_that_evaluation_fills(source: ClassSource) -> Iterator[Breakage]:
    """HE702: evaluation writes to what training keeps, or no longer puts it back."""
    shared = _functions(source, *TRAINING)
    training = [change for change in _changes(shared) if change.how in {*_ADDS, "part"}]
    kept = {change.attribute for change in training}
    restored = False
    for change in _changes([function for function in _functions(source, "evaluate") if function not in shared]):
        if change.attribute in kept and change.function.finally_of(change.node) is not None:
            restored = True
            yield _without("HE702", f"evaluation does not restore self.{change.attribute}", change.function, change.statement)
    function = _method(source, "evaluate")
    if function is None or restored:
        return
    for change in training:
        if isinstance(change.node, ast.Call) and _is_of_self(change.node.func):
            line = f"{_text(change.node.func)}({'[0.0]' if change.how == 'extend' else '0.0'})"
            yield _begun_with("HE702", f"evaluation adds to self.{change.attribute}", function, line)


def _is_of_self(node: ast.AST) -> bool:
    """Whether an expression names nothing but self, so that it means the same in another method."""
    return all(part.id == "self" for part in ast.walk(node) if isinstance(part, ast.Name))


def evaluation_with_chance(source: ClassSource) -> Iterator[Breakage]:
    """HE703: evaluation samples."""
    for function, node in _calls(_functions(source, "evaluate"), LAYER_LOOP):
        for word in node.keywords:
            if word.arg == "temperature":
                yield _made("HE703", "evaluation samples at temperature 1.0", function, word.value, "1.0")
    for function, node in _rollouts_of_evaluation(source):
        yield _made("HE703", "evaluation samples at temperature 1.0", function, node, _given(node, "temperature", "1.0"))


def setting_that_evaluation_loses(source: ClassSource) -> Iterator[Breakage]:
    """HE704: a setting does not reach the loop of evaluation."""
    for function, node in _calls(_functions(source, "evaluate"), LAYER_LOOP):
        for word in node.keywords:
            if word.arg in {"max_tokens", "max_turns", "extra_body"}:
                text = "1" if word.arg == "max_turns" else "None"
                yield _made("HE704", f"evaluation does not apply {word.arg}", function, word.value, text)
    for function, node in _rollouts_of_evaluation(source):
        yield _made("HE704", "evaluation does not apply max_turns", function, node, _given(node, "max_turns", "1"))


def _rollouts_of_evaluation(source: ClassSource) -> Iterator[tuple[Function, ast.Call]]:
    """Yield the calls through which evaluate runs the layer's rollouts."""
    functions = _functions(source, "evaluate")
    for name in (LAYER_AGENT_ROLLOUT, LAYER_EVALUATION):
        yield from _calls(functions, name)


def _given(call: ast.Call, name: str, value: str) -> str:
    """Return a call in which the keyword argument ``name`` has another value."""
    keywords = [word for word in call.keywords if word.arg != name]
    keywords.append(ast.keyword(arg=name, value=ast.parse(value, mode="eval").body))
    return ast.unparse(ast.Call(func=call.func, args=call.args, keywords=keywords))


def evaluation_that_is_not_logged(source: ClassSource) -> Iterator[Breakage]:
    """HE705: evaluate_log is not called."""
    for function, node in _calls(_functions(source, "evaluate"), "evaluate_log"):
        statement = function.statement_of(node)
        if isinstance(statement, ast.Expr):
            yield _without("HE705", "evaluation is not logged", function, statement)


def evaluation_that_one_item_ends(source: ClassSource) -> Iterator[Breakage]:
    """HE707: the exception of one item goes through."""
    shared = set(_functions(source, "compute_reward"))
    for function, node in _nodes([item for item in _functions(source, "evaluate") if item not in shared], ast.ExceptHandler):
        yield _raised("HE707", "one failing item ends the evaluation", function, node)


# ---------------------------------------------------------------------- logging


def base_log_not_awaited(source: ClassSource) -> Iterator[Breakage]:
    """HE801: super().wandb_log is not awaited, or not called."""
    for function, node in _calls(_functions(source, "wandb_log"), "wandb_log"):
        if isinstance(node.func, ast.Attribute) and _text(node.func.value).startswith("super("):
            yield _without("HE801", "wandb_log does not call super().wandb_log", function, function.statement_of(node))


def metrics_taken_for_granted(source: ClassSource) -> Iterator[Breakage]:
    """HE802: wandb_log does not accept None."""
    for function, node in _nodes(_functions(source, "wandb_log"), ast.expr):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and isinstance(node.values[-1], ast.Dict):
            yield _made("HE802", "wandb_log does not accept None", function, node, _text(node.values[0]))
        elif isinstance(node, ast.IfExp) and any(isinstance(part, ast.Dict) for part in (node.body, node.orelse)):
            kept = node.orelse if isinstance(node.body, ast.Dict) else node.body
            yield _made("HE802", "wandb_log does not accept None", function, node, _text(kept))


def buffers_that_grow(source: ClassSource) -> Iterator[Breakage]:
    """HE803: what was reported stays in its buffer."""
    for change in _changes(_functions(source, "wandb_log")):
        statement = change.statement
        is_assignment = isinstance(statement, ast.Assign) and [*map(type, statement.targets)] == [ast.Attribute]
        empties = change.how == "clear" or (change.how == "set" and is_assignment)
        if empties and (isinstance(statement, ast.Expr) or is_assignment):
            yield _without("HE803", f"self.{change.attribute} is reported and never emptied", change.function, statement)


OPERATORS: tuple[Operator, ...] = (
    config_without_a_list,
    items_that_run_out,
    answer_read_from_the_result,
    reward_of_none,
    reward_without_limits,
    reward_that_is_constant,
    judge_without_a_fallback,
    item_that_is_changed,
    shell_value_unquoted,
    cleanup_in_the_reward,
    sandbox_that_leaks,
    task_id_that_is_shared,
    evaluation_without_tools,
    buffers_that_evaluation_fills,
    evaluation_with_chance,
    setting_that_evaluation_loses,
    evaluation_that_is_not_logged,
    evaluation_that_one_item_ends,
    base_log_not_awaited,
    metrics_taken_for_granted,
    buffers_that_grow,
)
