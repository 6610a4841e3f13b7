"""Calls, as `interpret` reads them: who is entered with what, what comes back, and what changes on self."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import ClassSource, External
from pytest_hermes_env.source.expressions import ExpressionReader
from pytest_hermes_env.source.flow import Call, Change
from pytest_hermes_env.source.functions import Function, last_name
from pytest_hermes_env.source.layer_names import (
    LAYER_AGENT_ROLLOUT,
    LAYER_EVALUATION,
    LAYER_NAMES,
    LAYER_RESULT,
    LAYER_ROLLOUT,
    LAYER_ROLLOUTS,
    RESULT_FIELDS,
)
from pytest_hermes_env.source.values import (
    ANYTHING,
    DICTS,
    EMPTY,
    FALSE,
    LISTS,
    NOTHING,
    RESULT,
    SELF,
    TRUE,
    Kind,
    Value,
    Values,
    has,
    inside,
    joined,
    many,
    members,
    one,
    only,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MUTATORS = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem",
        "popleft", "put", "put_nowait", "remove", "reverse", "rotate", "setdefault", "sort", "subtract", "update",
    }
)  # fmt: skip
_CHANGING = MUTATORS | {"setattr"}
_GROWING = frozenset({"add", "append", "appendleft", "extend", "insert", "update"})
_CHANGE_FIRST_ARGUMENT = frozenset({"heappush", "heappushpop", "insort", "insort_left", "insort_right", "shuffle"})
_SAME_AS_ARGUMENT = frozenset({"create_task", "ensure_future", "shield", "wait_for", "run", "tqdm", "partial", "nullcontext"})
_SERIES = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "frozenset", "as_completed", "deque"})
_GIVES_THEN_ARGUMENTS = frozenset(
    {"to_thread", "run_in_executor", "partial", "submit", "callback", "push_async_callback", "call_soon", "create_task"}
)
_BUILTIN_CLASSES = frozenset({"dict", "list", "tuple", "set", "str", "bytes", "int", "float", "bool", "Mapping"})
_CALLABLE = frozenset({Kind.METHOD, Kind.FUNCTION, Kind.LOCAL})


class CallReader(ExpressionReader):
    """Reads calls."""

    _calls: dict[ast.AST, int]

    def call(self, node: ast.Call) -> Values:
        """Return what a call may give, noting it and what it changes."""
        receiver: Values = NOTHING
        if isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value)
            self.note_read(node.func, receiver)
            callee = self.attribute(receiver, node.func.attr, node.func)
        elif isinstance(node.func, ast.Name) and node.func.id == "super" and "super" not in self.env:
            return self._super(node)
        else:
            callee = self.value(node.func)
        arguments = tuple([self.value(item) for item in node.args])
        keywords = {word.arg or "**": self.value(word.value) for word in node.keywords}
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        call = Call(node, callee, receiver, arguments, keywords, self.function, name)
        self._note_call(call)
        if name in _CHANGING or (arguments and arguments[0] != ANYTHING):
            self._note_change(call)
        self._enter_handed_over(call)
        return self._result(call)

    def change(self, attribute: str, how: str, node: ast.AST, value: Values = ANYTHING) -> None:
        """Note that something on self changes."""
        self.frame.changes.append(Change(attribute, how, node, value, self.function))

    def invoke(self, function: Function, given: dict[str, Values], node: ast.AST) -> Values:
        """Enter ``function`` and return what it gives."""
        frame = self.flow.frame(function, given)
        self.frame.edges.append((node, frame))
        if function.is_context_manager:
            return frame.yields or ANYTHING
        if frame.is_generator:
            return many(frame.yields)
        return frame.returns if frame.is_done else frame.returns or ANYTHING

    def reenter(self, local: Value, given: list[Values], keywords: dict[str, Values]) -> Values:
        """Read a nested function again with the arguments that it is given, and return what it gives."""
        raise NotImplementedError

    def _super(self, node: ast.Call) -> Values:
        owner = self.function.owner
        if node.args:
            values = self.value(node.args[0])
            owner = next((value.target for value in values if isinstance(value.target, ClassSource)), owner)
        return one(Kind.SUPER, target=owner)

    def _note_call(self, call: Call) -> None:
        index = self._calls.setdefault(call.node, len(self.frame.calls))
        if index == len(self.frame.calls):
            self.frame.calls.append(call)
            return
        before = self.frame.calls[index]
        self.frame.calls[index] = Call(
            call.node,
            before.callee | call.callee,
            before.receiver | call.receiver,
            tuple(old | new for old, new in zip(before.arguments, call.arguments, strict=True)),
            {name: before.keywords.get(name, NOTHING) | values for name, values in call.keywords.items()},
            call.function,
            call.name,
        )

    def _note_change(self, call: Call) -> None:
        name = call.name
        if name in MUTATORS and isinstance(call.node.func, ast.Attribute):
            for attribute in hung_on_self(call.receiver):
                self.change("*" if attribute == "__dict__" else attribute, name, call.node)
            target = call.node.func.value
            if name in _GROWING and isinstance(target, ast.Name) and _is_series(call.receiver):
                self.env[target.id] = many(members(call.receiver) | joined(call.arguments))
        later = any(
            value.kind is Kind.EXTERNAL and value.name == "setattr" for values in call.arguments[:1] for value in values
        )
        if name == "setattr" or later:
            self._note_setattr(call, first=int(later))
        if name in _CHANGE_FIRST_ARGUMENT and call.arguments:
            for attribute in hung_on_self(call.arguments[0]):
                self.change(attribute, name, call.node)

    def _note_setattr(self, call: Call, first: int) -> None:
        """Note ``setattr(self, name, value)``, also handed over: ``stack.callback(setattr, self, name, value)``."""
        given, nodes = call.arguments[first : first + 3], call.node.args[first:]
        if len(given) == 3 and has(given[0], Kind.SELF):  # noqa: PLR2004  # self, name, value
            word = nodes[1]
            known = word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else "*"
            self.change(known, "set", call.node, given[2])

    def _enter_handed_over(self, call: Call) -> None:
        """Enter functions that are handed to code that cannot be read: it may call them."""
        for values in (*call.arguments, *call.keywords.values()):
            if values is not ANYTHING and any(value.kind in _CALLABLE for value in values):
                break
        else:
            return
        if any(value.kind in _CALLABLE for value in call.callee):
            return
        follows = call.name in _GIVES_THEN_ARGUMENTS
        for index, values in enumerate(call.arguments):
            rest = list(call.arguments[index + 1 :]) if follows else []
            for value in values:
                if value.kind is Kind.LOCAL and rest:
                    self.reenter(value, rest, {})
                elif value.kind in {Kind.METHOD, Kind.FUNCTION} and isinstance(value.target, Function):
                    given = self._arguments(value, rest, {}) if rest else {}
                    self.invoke(value.target, given, call.node)
        for values in call.keywords.values():
            for value in values:
                if value.kind in {Kind.METHOD, Kind.FUNCTION} and isinstance(value.target, Function):
                    self.invoke(value.target, {}, call.node)

    def _result(self, call: Call) -> Values:
        if call.callee == ANYTHING and call.receiver in (ANYTHING, NOTHING):
            return ANYTHING
        if len(call.callee) == 1:
            return self._result_of(next(iter(call.callee)), call)
        return joined([self._result_of(value, call) for value in call.callee]) if call.callee else ANYTHING

    def _result_of(self, value: Value, call: Call) -> Values:
        kind = value.kind
        if kind in {Kind.METHOD, Kind.FUNCTION} and isinstance(value.target, Function):
            given = self._arguments(value, self._spread(call), dict(call.keywords))
            return self.invoke(value.target, given, call.node)
        if kind is Kind.LOCAL:
            return self.reenter(value, self._spread(call), dict(call.keywords))
        if kind is Kind.RUN:
            return RESULT
        if kind is Kind.CLASS and isinstance(value.target, ClassSource):
            known = [item.last for item in value.target.mro if isinstance(item, External) and item.last in LAYER_NAMES]
            name = known[0] if known else value.target.name
            return one(Kind.INSTANCE, name, node=call.node, target=value.target)
        if kind is Kind.BASE_METHOD:
            return self._of_base(value.name, call)
        if kind is Kind.EXTERNAL and value.target is None:
            return self._of_external(value.name, call)
        return self._of_receiver(call)

    def _of_base(self, name: str, call: Call) -> Values:
        """Enter the methods of the class that the layer's rollouts come back to; config_init is Atropos' own."""
        if name in LAYER_ROLLOUTS:
            methods = self.flow.source.methods
            inner = methods.get("collect_trajectory") if name == "collect_trajectories" else None
            target = inner or methods.get("compute_reward")
            if target is not None and target is not self.function:
                self.invoke(target, {}, call.node)
        if name == LAYER_AGENT_ROLLOUT:
            self._enter_methods(call, "format_prompt")
            return one(Kind.INSTANCE, LAYER_ROLLOUT, node=call.node)
        if name == LAYER_EVALUATION:
            self._enter_evaluation(call)
        if name == "config_init":
            servers = one(Kind.INSTANCE, "ServerBaseline", node=call.node)
            return frozenset({Value(Kind.TUPLE, items=(ANYTHING, servers))})
        return ANYTHING

    def _enter_evaluation(self, call: Call) -> None:
        """Enter what the layer's evaluation calls back: the held-out items, the prompt, and the score."""
        self._enter_methods(call, "get_eval_items", "format_prompt")
        scores = call.keywords.get("score", NOTHING)
        if not any(value.kind in _CALLABLE for value in scores):
            self._enter_methods(call, "compute_reward")
        rollout = one(Kind.INSTANCE, LAYER_ROLLOUT, node=call.node)
        for value in scores:
            if value.kind is Kind.LOCAL:
                self.reenter(value, [rollout], {})
            elif isinstance(value.target, Function):
                self.invoke(value.target, self._arguments(value, [rollout], {}), call.node)

    def _enter_methods(self, call: Call, *names: str) -> None:
        for name in names:
            target = self.flow.source.methods.get(name)
            if target is not None and target is not self.function:
                self.invoke(target, {}, call.node)

    def _of_receiver(self, call: Call) -> Values:
        found: Values = NOTHING
        if call.name == "enter_async_context":
            return joined(call.arguments[:1])
        if call.name == "__aenter__":
            return call.receiver
        if call.name in {"get", "pop"} and has(call.receiver, Kind.MESSAGE) and call.node.args:
            word = call.node.args[0]
            key = word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else "?"
            inner = joined(inside(value.name, key) for value in call.receiver if value.kind is Kind.MESSAGE)
            return inner | joined(call.arguments[1:2])
        if call.name in {"copy", "strip", "lower"} and only(call.receiver, Kind.MESSAGE):
            return call.receiver
        for attribute in hung_on_self(call.receiver):
            part = one(Kind.PART, attribute)
            if call.name in {"get", "setdefault", "pop", "popleft"}:
                found |= part
            elif call.name == "values":
                found |= many(part)
            elif call.name == "items":
                found |= many(frozenset({Value(Kind.TUPLE, items=(ANYTHING, part))}))
        if call.name == "pop" and _is_series(call.receiver):
            found |= members(call.receiver)
        return found or ANYTHING

    def _of_external(self, dotted: str, call: Call) -> Values:  # a table of names
        name = dotted.rpartition(".")[2]
        arguments = call.arguments
        first = arguments[0] if arguments else NOTHING
        if name == LAYER_RESULT:
            return RESULT
        if name == "gather":
            return many(joined(arguments))
        if name in {"to_thread", "run_in_executor"}:
            index = 0 if name == "to_thread" else 1
            called = arguments[index] if len(arguments) > index else NOTHING
            return self._called(called, list(arguments[index + 1 :]))
        if name in {"copy", "deepcopy", "replace"} and only(first, Kind.RESULT):
            return RESULT
        if name in _SAME_AS_ARGUMENT and dotted != "subprocess.run":
            return first or ANYTHING
        if name in _SERIES:
            return many(members(first)) if first and first != EMPTY else (ANYTHING if arguments else EMPTY)
        if name in {"dict", "Counter", "OrderedDict"} and not arguments and not call.keywords:
            return EMPTY
        if name == "defaultdict" and len(arguments) <= 1 and not call.keywords:
            return EMPTY
        if name == "enumerate":
            return many(frozenset({Value(Kind.TUPLE, items=(ANYTHING, members(first)))}))
        if name == "zip":
            return many(frozenset({Value(Kind.TUPLE, items=tuple(members(item) for item in arguments))}))
        if name == "map" and arguments:
            return many(self._called(first, [members(item) for item in arguments[1:]]))
        if name == "filter" and len(arguments) > 1:
            return many(members(arguments[1]))
        if name == "next":
            return members(first)
        if name == "vars" and only(first, Kind.SELF):
            return one(Kind.ATTRIBUTE, "__dict__")
        if name in {"getattr", "hasattr", "isinstance"} and len(arguments) > 1:
            return self._asked(name, call)
        if name[:1].isupper():
            return one(Kind.INSTANCE, name, node=call.node)
        return ANYTHING

    def _asked(self, name: str, call: Call) -> Values:
        first, word = call.arguments[0], call.node.args[1]
        if name == "isinstance":
            names = [last_name(item) for item in (word.elts if isinstance(word, ast.Tuple) else [word])]
            if only(first, Kind.RESULT):
                if LAYER_RESULT in names:
                    return TRUE
                return FALSE if set(names) <= _BUILTIN_CLASSES else ANYTHING
            if only(first, Kind.MESSAGE):
                return _is_message_of(first, names)
            return ANYTHING
        if not isinstance(word, ast.Constant) or not isinstance(word.value, str):
            return ANYTHING
        if name == "hasattr":
            if only(first, Kind.RESULT):
                return TRUE if word.value in RESULT_FIELDS else FALSE
            if only(first, Kind.MESSAGE) and all(value.name in DICTS for value in first):
                return TRUE if hasattr(dict, word.value) else FALSE
            return ANYTHING
        return self.attribute(first, word.value, call.node) | joined(call.arguments[2:])

    def _called(self, callee: Values, given: list[Values]) -> Values:
        found: Values = NOTHING
        for value in callee:
            if value.kind is Kind.LOCAL:
                found |= self.reenter(value, given, {})
            elif isinstance(value.target, Function):
                found |= self.flow.frame(value.target, self._arguments(value, given, {})).returns
            else:
                found |= ANYTHING
        return found or ANYTHING

    def _spread(self, call: Call) -> list[Values]:
        """Return the positional arguments; a starred one stands for as many as there may be."""
        found: list[Values] = []
        for item, values in zip(call.node.args, call.arguments, strict=True):
            if isinstance(item, ast.Starred):
                return found + [values | ANYTHING] * 12
            found.append(values)
        return found

    def _arguments(self, value: Value, given: list[Values], keywords: dict[str, Values]) -> dict[str, Values]:
        function = value.target
        assert isinstance(function, Function)  # the callers look first
        bound: list[Values] = []
        if value.kind is Kind.METHOD and not function.is_static:
            bound = [value.items[0] if value.items else SELF]
        elif function.is_classmethod:
            bound = [SELF]
        names = function.positional
        found = dict(zip(names, [*bound, *given], strict=False))
        every: Iterable[str] = (*names, *(item.arg for item in function.node.args.kwonlyargs))
        for name in every:
            if name in keywords:
                found[name] = keywords[name]
            elif name not in found:
                found[name] = _default(function.defaults.get(name)) if "**" not in keywords else ANYTHING
        return found


def _is_message_of(first: Values, names: list[str]) -> Values:
    """Return what isinstance says of parts of messages: only dicts and lists are known for certain."""
    kinds = {"dict" if value.name in DICTS else "list" if value.name in LISTS else "" for value in first}
    if "" in kinds or not set(names) <= _BUILTIN_CLASSES:
        return ANYTHING
    if kinds <= set(names) or (kinds == {"dict"} and "Mapping" in names):
        return TRUE
    return ANYTHING if kinds & set(names) else FALSE


def hung_on_self(values: Values) -> list[str]:
    """Return the attributes of self that ``values`` are, or are inside of."""
    return sorted({value.name for value in values if value.kind in {Kind.ATTRIBUTE, Kind.PART}})


def _is_series(values: Values) -> bool:
    return bool(values) and all(value.kind in {Kind.MANY, Kind.EMPTY} for value in values)


def _default(node: ast.expr | None) -> Values:
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NOTHING
        if isinstance(node.value, bool):
            return TRUE if node.value else FALSE
    return ANYTHING
