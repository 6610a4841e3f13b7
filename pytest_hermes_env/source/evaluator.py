"""Expressions: what each may hold, and which calls, reads and changes happen while it is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from pytest_hermes_env.source.calls import (
    MUTATORS,
    bind_arguments,
    is_sequence,
    record_changes,
    result_of_external,
    result_of_method,
    spread_arguments,
    text_of,
    value_of_literal,
)
from pytest_hermes_env.source.classes import ClassSource
from pytest_hermes_env.source.frames import Call, Comparison, Frame
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import (
    LAYER_AGENT_ROLLOUT,
    LAYER_EVALUATION,
    LAYER_NAMES,
    LAYER_RESULT,
    LAYER_ROLLOUT,
    LAYER_ROLLOUTS,
)
from pytest_hermes_env.source.lookup import value_of_attribute, value_of_name
from pytest_hermes_env.source.modules import Module
from pytest_hermes_env.source.syntax import FunctionNode, all_parameters, children, is_annotated_as, positional_parameters
from pytest_hermes_env.source.values import (
    ANYTHING,
    EMPTY,
    FALSE,
    NOTHING,
    RESULT,
    SELF,
    TRUE,
    Kind,
    Value,
    Values,
    elements,
    may_be,
    may_name_a_tool,
    message_part,
    must_be,
    sequence_of,
    single,
    union,
)

Env = dict[str, Values]
"""What each local name may hold."""

_GROWING = frozenset({"add", "append", "appendleft", "extend", "insert", "update"})
_PASS_ARGUMENTS_ON = frozenset(
    {"to_thread", "run_in_executor", "partial", "submit", "callback", "push_async_callback", "call_soon", "create_task"}
)
"""Functions that take a callable and call it with the arguments that follow."""

_MAX_NESTED = 6
"""How deep nested functions are followed."""

_SLICED = frozenset({Kind.MANY, Kind.EMPTY, Kind.MESSAGE})
_NEVER_NONE = frozenset({Kind.SELF, Kind.RESULT, Kind.INSTANCE, Kind.MANY, Kind.EMPTY, Kind.TUPLE, Kind.TRUE, Kind.FALSE})
_CALLABLE = frozenset({Kind.METHOD, Kind.FUNCTION, Kind.LOCAL})


class Evaluator:
    """Evaluates expressions in the environment ``env`` of one frame, and records in the frame what happens.

    ``enter`` returns the frame of another function. ``module_names`` caches what names of modules hold.
    """

    def __init__(
        self,
        source: ClassSource,
        frame: Frame,
        enter: Callable[[Function, Mapping[str, Values]], Frame],
        module_names: dict[tuple[Module, str], Values],
        execute: Callable[[list[ast.stmt]], Values],
    ) -> None:
        """Start with the values that the frame is entered with; ``execute`` returns what the body of a nested function returns."""
        self._source = source
        self.frame = frame
        self._function = frame.function
        self._module = frame.function.module
        self.env: Env = dict(frame.entry)
        self._enter = enter
        self._execute = execute
        self._module_names = module_names
        self._nesting = 0
        self._results: dict[tuple[object, ...], Values] = {}

    def value(self, node: ast.AST) -> Values:
        """Return what ``node`` may hold, and record what happens on the way."""
        visit = _VISITORS.get(node.__class__)
        if visit is not None:
            return visit(self, node)
        for child in children(node):
            self.value(child)
        return ANYTHING

    def bind(self, target: ast.expr, values: Values) -> None:
        """Assign ``values`` to ``target``."""
        match target:
            case ast.Name(id=name):
                self.env[name] = values
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, held in zip(parts, _unpacked(parts, values), strict=True):
                    self.bind(part, held)
            case ast.Starred(value=inner):
                self.bind(inner, sequence_of(elements(values)))
            case ast.Attribute() | ast.Subscript():
                self.change(target, target, values, of_self="set", inside="part")
            case _:
                self.value(target)

    def change(
        self, target: ast.Attribute | ast.Subscript, node: ast.AST, values: Values, *, of_self: str, inside: str
    ) -> None:
        """Record what ``node`` changes: an attribute of self itself, or something inside one; see `Change` for the two words."""
        base = self.value(target.value)
        if isinstance(target, ast.Subscript):
            self.value(target.slice)
            inside = "slice" if isinstance(target.slice, ast.Slice) else inside
        elif may_be(base, Kind.SELF):
            self.frame.add_change(target.attr, of_self, node, values)
        self.frame.add_changes_inside(base, inside, node, values)

    def define(self, node: FunctionNode | ast.Lambda) -> Values:
        """Return the value of a nested function or lambda; its body is evaluated with unknown arguments."""
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.value(default)
        returned = self._body(node, {}) if self._nesting < _MAX_NESTED else ANYTHING
        return frozenset({Value(Kind.LOCAL, node=node, items=(returned,))})

    def _visit_Name(self, node: ast.Name) -> Values:
        if node.id in self.env:
            return self.env[node.id]
        key = (self._module, node.id)
        if key not in self._module_names:
            self._module_names[key] = value_of_name(self._module, node.id)
        return self._module_names[key]

    def _visit_Constant(self, node: ast.Constant) -> Values:
        return value_of_literal(node)

    def _visit_Attribute(self, node: ast.Attribute) -> Values:
        base = self.value(node.value)
        self.frame.add_read(node, base)
        return self._attribute(base, node.attr, node)

    def _visit_Subscript(self, node: ast.Subscript) -> Values:
        base, key_values = self.value(node.value), self.value(node.slice)
        self.frame.add_read(node, base)
        if may_name_a_tool(base) and text_of(node.slice) is not None:  # a counter of names
            self.frame.comparisons.append(Comparison(node, (node.value, node.slice), (base, key_values)))
        if isinstance(node.slice, ast.Slice):
            return frozenset(value if value.kind in _SLICED else Value(Kind.ANYTHING) for value in base)
        key = text_of(node.slice)
        if key is not None and may_be(base, Kind.MESSAGE):
            return union(
                message_part(value.name, key) if value.kind is Kind.MESSAGE else elements(frozenset({value})) for value in base
            )
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and must_be(base, Kind.TUPLE):
            index = node.slice.value
            return union(value.items[index] for value in base if -len(value.items) <= index < len(value.items))
        return elements(base)

    def _visit_Await(self, node: ast.Await) -> Values:
        return self.value(node.value)

    def _visit_NamedExpr(self, node: ast.NamedExpr) -> Values:
        values = self.value(node.value)
        self.bind(node.target, values)
        return values

    def _visit_BoolOp(self, node: ast.BoolOp) -> Values:
        decisive = Kind.FALSE if isinstance(node.op, ast.And) else Kind.TRUE
        found: Values = NOTHING
        for part in node.values:
            values = self.value(part)
            found |= values
            if must_be(values, decisive):
                return values if decisive is Kind.FALSE else found
        return found

    def _visit_UnaryOp(self, node: ast.UnaryOp) -> Values:
        values = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            if must_be(values, Kind.TRUE):
                return FALSE
            if must_be(values, Kind.FALSE):
                return TRUE
        return ANYTHING

    def _visit_BinOp(self, node: ast.BinOp) -> Values:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, (ast.BitAnd, ast.Sub)) and (may_name_a_tool(left) or may_name_a_tool(right)):
            self.frame.comparisons.append(Comparison(node, (node.left, node.right), (left, right)))
        both = left | right
        if both and any(value.kind is Kind.MANY for value in both):
            return sequence_of(elements(frozenset(value for value in both if value.kind is not Kind.ANYTHING)))
        return EMPTY if left == right == EMPTY else ANYTHING

    def _visit_Compare(self, node: ast.Compare) -> Values:
        left = self.value(node.left)
        operands = (left, *[self.value(part) for part in node.comparators])
        if any(map(may_name_a_tool, operands)):
            self.frame.comparisons.append(Comparison(node, (node.left, *node.comparators), operands))
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None and len(node.ops) == 1:
            never_none = bool(left) and all(value.kind in _NEVER_NONE for value in left)
            if never_none and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return FALSE if isinstance(node.ops[0], ast.Is) else TRUE
        return ANYTHING

    def _visit_IfExp(self, node: ast.IfExp) -> Values:
        test = self.value(node.test)
        found: Values = NOTHING
        if not must_be(test, Kind.FALSE):
            found |= self.value(node.body)
        if not must_be(test, Kind.TRUE):
            found |= self.value(node.orelse)
        return found

    def _visit_Tuple(self, node: ast.Tuple) -> Values:
        if not node.elts:
            return EMPTY
        items = tuple(self.value(item) for item in node.elts)
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return sequence_of(union(items))
        return frozenset({Value(Kind.TUPLE, items=items)})

    def _visit_List(self, node: ast.List | ast.Set) -> Values:
        return sequence_of(union([self.value(item) for item in node.elts])) if node.elts else EMPTY

    _visit_Set = _visit_List

    def _visit_Dict(self, node: ast.Dict) -> Values:
        for child in children(node):
            self.value(child)
        return ANYTHING if node.values else EMPTY

    def _visit_Starred(self, node: ast.Starred) -> Values:
        return elements(self.value(node.value))

    def _visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Values:
        outer = self.env
        self.env = dict(outer)
        for item in node.generators:
            self.bind(item.target, elements(self.value(item.iter)))
            for test in item.ifs:
                self.value(test)
        if isinstance(node, ast.DictComp):
            self.value(node.key)
        element = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        self.env = outer
        return ANYTHING if isinstance(node, ast.DictComp) else sequence_of(element)

    _visit_SetComp = _visit_GeneratorExp = _visit_DictComp = _visit_ListComp

    def _visit_Lambda(self, node: ast.Lambda) -> Values:
        return self.define(node)

    def _visit_Yield(self, node: ast.Yield) -> Values:
        self.frame.is_generator = True
        self.frame.yields |= self.value(node.value) if node.value else NOTHING
        return ANYTHING

    def _visit_YieldFrom(self, node: ast.YieldFrom) -> Values:
        self.frame.is_generator = True
        self.frame.yields |= elements(self.value(node.value))
        return ANYTHING

    def _visit_Call(self, node: ast.Call) -> Values:
        receiver, func, name = NOTHING, node.func, ""
        if isinstance(func, ast.Attribute):
            name = func.attr
            receiver = self.value(func.value)
            self.frame.add_read(func, receiver)
            callee = self._attribute(receiver, name, func)
        elif isinstance(func, ast.Name) and func.id == "super" and "super" not in self.env:
            return self._super(node)
        else:
            name = func.id if isinstance(func, ast.Name) else ""
            callee = self.value(func)
        arguments = tuple([self.value(item) for item in node.args])
        keywords = {word.arg or "**": self.value(word.value) for word in node.keywords}
        call = Call(node, callee, receiver, arguments, keywords, self._function, name)
        self.frame.add_call(call)
        if name in MUTATORS or name == "setattr" or (arguments and arguments[0] != ANYTHING):
            record_changes(call, self.frame)
        if name in _GROWING and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and is_sequence(receiver):
            self.env[func.value.id] = sequence_of(elements(receiver) | union(arguments))
        self._enter_callbacks(call)
        return self._result(call)

    def _super(self, node: ast.Call) -> Values:
        owner = self._function.owner
        if node.args:
            given = (value.target for value in self.value(node.args[0]))
            owner = next((item.node for item in given if isinstance(item, ClassSource)), owner)
        return single(Kind.SUPER, target=owner)

    def _enter_callbacks(self, call: Call) -> None:
        """Enter the functions that are passed to code that cannot be read: it may call them."""
        every = (*call.arguments, *call.keywords.values())
        if not any(value.kind in _CALLABLE for values in every if values is not ANYTHING for value in values):
            return
        if any(value.kind in _CALLABLE for value in call.callee):
            return
        for index, values in enumerate(every):
            passed_on = list(call.arguments[index + 1 :]) if call.name in _PASS_ARGUMENTS_ON else []
            for value in values:
                if passed_on and value.kind in _CALLABLE:
                    self._run(value, passed_on, {}, call.node)
                elif isinstance(value.target, Function):
                    self._invoke(value.target, {}, call.node)

    def _result(self, call: Call) -> Values:
        if not call.callee or (call.callee == ANYTHING and call.receiver in (ANYTHING, NOTHING)):
            return ANYTHING
        return union([self._result_of(value, call) for value in call.callee])

    def _result_of(self, value: Value, call: Call) -> Values:
        kind, target = value.kind, value.target
        if kind in _CALLABLE:
            return self._run(value, spread_arguments(call), call.keywords, call.node)
        if kind is Kind.RUN:
            return RESULT
        if kind is Kind.CLASS and isinstance(target, ClassSource):
            known = [item.last for item in target.external if item.last in LAYER_NAMES]
            return single(Kind.INSTANCE, known[0] if known else target.name, node=call.node, target=target)
        if kind is Kind.BASE_METHOD:
            return self._result_of_base_method(value.name, call)
        if kind is Kind.EXTERNAL and target is None:
            if value.name.rpartition(".")[2] == "getattr" and len(call.arguments) > 1:
                return self._getattr(call)
            return result_of_external(value.name, call, self._apply)
        return result_of_method(call)

    def _result_of_base_method(self, name: str, call: Call) -> Values:
        """Enter the methods of the class that the layer's rollouts call back; config_init is Atropos' own."""
        if name in LAYER_ROLLOUTS:
            is_inner = name == "collect_trajectories" and "collect_trajectory" in self._source.methods
            self._enter_methods(call, "collect_trajectory" if is_inner else "compute_reward")
        if name == LAYER_AGENT_ROLLOUT:
            self._enter_methods(call, "format_prompt")
            return single(Kind.INSTANCE, LAYER_ROLLOUT, node=call.node)
        if name == LAYER_EVALUATION:
            self._enter_evaluation(call)
        if name == "config_init":
            servers = single(Kind.INSTANCE, "ServerBaseline", node=call.node)
            return frozenset({Value(Kind.TUPLE, items=(ANYTHING, servers))})
        return ANYTHING

    def _enter_evaluation(self, call: Call) -> None:
        """Enter what the layer's evaluation calls back: the held-out items, the prompt, and the score."""
        self._enter_methods(call, "get_eval_items", "format_prompt")
        scores = call.keywords.get("score", NOTHING)
        if not any(value.kind in _CALLABLE for value in scores):
            self._enter_methods(call, "compute_reward")
        rollout = single(Kind.INSTANCE, LAYER_ROLLOUT, node=call.node)
        for value in scores:
            if value.kind in _CALLABLE:
                self._run(value, [rollout], {}, call.node)

    def _enter_methods(self, call: Call, *names: str) -> None:
        for name in names:
            target = self._source.methods.get(name)
            if target is not None and target is not self._function:
                self._invoke(target, {}, call.node)

    def _getattr(self, call: Call) -> Values:
        name = text_of(call.node.args[1])
        if name is None:
            return ANYTHING
        return self._attribute(call.arguments[0], name, call.node) | union(call.arguments[2:])

    def _attribute(self, base: Values, name: str, node: ast.AST) -> Values:
        """Return what ``base.name`` may hold."""
        if base == ANYTHING:
            return ANYTHING

        def read_property(method: Function) -> Values:
            return self._invoke(method, {method.positional[0]: SELF} if method.positional else {}, node)

        return union([value_of_attribute(value, name, self._source, self._module, read_property) for value in base])

    def _apply(self, callee: Values, given: list[Values]) -> Values:
        """Return what ``callee`` returns when code that is not read calls it with ``given``."""
        found: Values = NOTHING
        for value in callee:
            if value.kind is Kind.LOCAL:
                found |= self._apply_local(value, given, {})
            elif isinstance(value.target, Function):
                found |= self._enter(value.target, bind_arguments(value, value.target, given, {})).returns
            else:
                found |= ANYTHING
        return found or ANYTHING

    def _run(self, value: Value, given: list[Values], keywords: Mapping[str, Values], node: ast.AST) -> Values:
        """Enter a function, or evaluate a nested one again, with these arguments; return what it returns."""
        if isinstance(value.target, Function):
            return self._invoke(value.target, bind_arguments(value, value.target, given, keywords), node)
        return self._apply_local(value, given, keywords)

    def _invoke(self, function: Function, given: Mapping[str, Values], node: ast.AST) -> Values:
        """Enter ``function`` and return what it returns."""
        frame = self._enter(function, given)
        self.frame.edges.append((node, frame))
        if function.is_context_manager:
            return frame.yields or ANYTHING
        if frame.is_generator:
            return sequence_of(frame.yields)
        return frame.returns if frame.is_done else frame.returns or ANYTHING

    def _apply_local(self, local: Value, given: list[Values], keywords: Mapping[str, Values]) -> Values:
        """Evaluate a nested function again with these arguments, and return what it returns."""
        node = local.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        names = [item.arg for item in positional_parameters(node.args)]
        bound = dict(zip(names, given, strict=False))
        bound.update((name, values) for name, values in keywords.items() if name != "**")
        key = (node, tuple(bound.items()))
        if key not in self._results and self._nesting < _MAX_NESTED:
            self._results[key] = NOTHING
            self._results[key] = self._body(node, bound)
        return self._results.get(key, ANYTHING)

    def _body(self, node: FunctionNode | ast.Lambda, bound: Env) -> Values:
        outer = self.env
        self.env = dict(outer)
        for item in all_parameters(node.args):
            unknown = RESULT if is_annotated_as(LAYER_RESULT, item.annotation) else NOTHING
            self.env[item.arg] = bound.get(item.arg, unknown)
        self._nesting += 1
        returned = self.value(node.body) if isinstance(node, ast.Lambda) else self._execute(node.body)
        self._nesting -= 1
        self.env = outer
        return returned


def _unpacked(parts: list[ast.expr], values: Values) -> list[Values]:
    """Return what each of ``parts`` gets when ``values`` is unpacked into them."""
    found = [NOTHING] * len(parts)
    starred = any(isinstance(part, ast.Starred) for part in parts)
    for value in values:
        if value.kind is Kind.TUPLE and len(value.items) == len(parts) and not starred:
            found = [held | item for held, item in zip(found, value.items, strict=True)]
        else:
            held_by_each = elements(frozenset({value}))
            found = [held | held_by_each for held in found]
    return found


_VISITORS: dict[type[ast.AST], Callable[[Evaluator, Any], Values]] = {
    getattr(ast, name.removeprefix("_visit_")): visit for name, visit in vars(Evaluator).items() if name.startswith("_visit_")
}
