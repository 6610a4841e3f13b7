"""HE409 shell-values-are-quoted
Values in a command of the tool context are quoted, or are the author's own.

What: What an f-string, `%`, `format`, `+` or `join` puts into a command for `ctx.terminal` (or `call_tool("terminal",
...)`) in `compute_reward`, or in what it calls, went through `shlex.quote` or `shlex.join`, or is a constant, a number, a
setting or an attribute of self. A value that is a command itself (its name contains cmd, command, script or shell) and a command that is one
value as a whole are not reported, nor, in a run, a field of the item for the name of a function, a class or a module that is an
identifier in each item.

Why: A file named `it's.txt` ends the reward in a syntax error, which reads as a failed test, and a model that may
choose a file name writes `x; echo 1 > /tmp/score`. The verifier runs with the right to decide what is correct: a model
that controls its shell grades itself.

Fix: `ctx.terminal(f"cat {shlex.quote(path)}")`, `shlex.join([...])` for whole commands, or the file tools, which take
paths as they are: `ctx.read_file(path)`.

Source: Python's `shlex.quote`; `environments.tool_context.ToolContext.terminal` (bash receives the command unchanged).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.buffers import fields_of
from pytest_hermes_env.source import (
    UNKNOWN,
    Call,
    ClassSource,
    Function,
    argument,
    constant_value,
    finding_at,
    last_name,
    reach_of,
)

_TERMINAL = "terminal"
_NUMBERS = frozenset({"abs", "bool", "enumerate", "float", "int", "len", "range", "round", "sum", "time", "turns_used"})
_PLAIN = frozenset({"b64encode", "hex", "hexdigest", "task_id", "token_hex", "uuid4"})
"""What has no letters that a shell knows."""
_CHECKS = frozenset({"fullmatch", "match", "isalnum", "isdigit", "isidentifier"})
_COMMAND = re.compile(r"cmd|command|script|shell", re.IGNORECASE)
_OF_THE_AGENT = re.compile(r"\b(?:ls|find|cat|grep|head|tail|for-each-ref|branch|ls-files|name-only|tag -l|log)\b")
"""Commands whose output holds names or texts that the agent chose."""
_OF_CODE = re.compile(r"func|entry_?point|symbol|class|module|method", re.IGNORECASE)
_DEEPEST = 6


def static(source: ClassSource) -> Verdict:
    """Look at every command that compute_reward leads to."""
    return _verdict(source)


def dynamic(evidence: Evidence) -> Verdict:
    """Say the same, but for names of functions and the like in the item, where those of all known items are identifiers: they need no quotes."""
    if evidence.source is None:
        return Verdict.not_exercised("its source cannot be read")
    items = evidence.scenario("items")
    known = [fields_of(item.value) for item in (*items.items, *items.held_out)]
    names = {name for fields in known for name in fields if _OF_CODE.search(name)}
    plain = {name for name in names if all(re.fullmatch(r"[A-Za-z_][\w.]*", str(fields.get(name))) for fields in known)}
    return _verdict(evidence.source, plain)


def _verdict(source: ClassSource, plain: Collection[str] = ()) -> Verdict:
    if not source.has("compute_reward") and source.unreadable:
        return Verdict.undecided(f"compute_reward may come from {source.unreadable[0]}, which cannot be read")
    commands = [(call, command) for call in reach_of(source).calls("compute_reward") for command in _commands(call)]
    if not commands:
        return Verdict.not_applicable("compute_reward runs no terminal command")
    findings = [
        finding_at(call.function, call.node, f"{call.function.name} puts {ast.unparse(part)} into a command without quoting it")
        for call, command in commands
        for part in _inserted(call.function, command)
        if not _is_harmless(source, call.function, part) and not _is_of_fields(source, call.function, part, plain)
    ]
    places = len(commands)
    return Verdict.of_source(findings, f"{places} {'command is' if places == 1 else 'commands are'} quoted or the author's own")


def _commands(call: Call) -> Iterator[ast.expr]:
    """Yield the expressions that a call passes to the terminal of a tool context, also by way of a thread."""
    given: ast.expr | None = None
    if call.name == _TERMINAL and isinstance(call.node.func, ast.Attribute):
        given = argument(call.node, 0, "command")
    elif (
        call.name == "call_tool"
        and isinstance(tool := argument(call.node, 0, "name"), ast.Constant)
        and tool.value == _TERMINAL
    ):
        words = argument(call.node, 1, "arguments")
        pairs = zip(words.keys, words.values, strict=True) if isinstance(words, ast.Dict) else ()
        given = next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "command"), None)
    else:
        named = [item.attr if isinstance(item, ast.Attribute) else "" for item in call.node.args[:-1]]
        given = call.node.args[named.index(_TERMINAL) + 1] if _TERMINAL in named else None
    if given is not None:
        yield given


def _inserted(function: Function, command: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a command that are not written out; nothing for a command that is one value."""
    match command:
        case ast.Name(id=name) if len(values := function.values_of(name)) == 1 and values[0] is not None:
            yield from _inserted(function, values[0])
        case ast.JoinedStr(values=values):
            for part in values:
                if isinstance(part, ast.FormattedValue) and not _is_format_of_number(part):
                    yield from _inside(function, part.value)
        case ast.BinOp(op=ast.Mod(), right=ast.Tuple(elts=parts)):
            yield from parts
        case ast.BinOp(op=ast.Mod(), right=part):
            yield part
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from (*_inside(function, left), *_inside(function, right))
        case ast.Call(func=ast.Attribute(attr="format"), args=parts, keywords=words):
            yield from (*parts, *(word.value for word in words))
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]
        ):
            for part in parts:
                yield from _inside(function, part)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[part]):
            yield part


def _inside(function: Function, part: ast.expr) -> Iterator[ast.expr]:
    """Yield what is inserted in a part that is put together itself, else the part."""
    inner = list(_inserted(function, part)) if not isinstance(part, ast.Name) else []
    yield from inner or [part]


def _is_format_of_number(part: ast.FormattedValue) -> bool:
    last = part.format_spec.values[-1:] if isinstance(part.format_spec, ast.JoinedStr) else []
    return any(isinstance(item, ast.Constant) and str(item.value)[-1:] in tuple("bdeEfFgGnxX%") for item in last)


def _is_harmless(source: ClassSource, function: Function, part: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value is quoted, plain, checked, the author's own, or made of such values; also where none of it can be seen."""
    text = part.slice.value if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) else last_name(part)
    if any(map(_is_quote, ast.walk(part))) or _COMMAND.search(str(text)) or text in _NUMBERS or _is_own(function, part):
        return True
    if _is_constant(function, part) or depth > _DEEPEST:
        return True
    if not isinstance(part, ast.Name) and (inner := list(_inserted(function, part))):
        return all(_is_harmless(source, function, item, depth) for item in inner)
    match part:
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return all(_is_harmless(source, function, item, depth) for item in (left, right))
        case ast.BoolOp(values=values):
            return all(_is_harmless(source, function, item, depth) for item in values)
        case ast.Name(id=name):
            given = [*_values(function, name), *reach_of(source).given_to(function, name, "compute_reward")]
            if any(any(map(_is_quote, ast.walk(value))) for _, value in given) or _is_checked(function, name):
                return True
            given = [one for one in given if one[0] is not function or not _names(one[1], name)] or given[:1]
            is_unseen = not given and name not in function.positional
            return is_unseen or (bool(given) and all(_is_harmless(source, holder, value, depth + 1) for holder, value in given))
        case ast.Call(func=ast.Attribute(attr=("read_file" | "search" | "terminal") as name)):
            asked = " ".join(ast.unparse(one) for one in [*part.args[:1], *(word.value for word in part.keywords)])
            return name == _TERMINAL and _OF_THE_AGENT.search(asked) is None
        case ast.Call(func=func):
            target = reach_of(source).target(function, func)
            if isinstance(target, Function) and any(map(_is_quote, target.nodes)):
                return True
            made_of = [
                *part.args,
                *(word.value for word in part.keywords),
                *([func.value] if isinstance(func, ast.Attribute) else []),
            ]
            return all(_is_harmless(source, function, item, depth + 1) for item in made_of)
        case ast.Subscript(value=holder):
            return _is_constant(function, holder) or _is_harmless(source, function, holder, depth + 1)
        case ast.Attribute(value=holder):
            return _is_harmless(source, function, holder, depth + 1)
    return False


def _is_of_fields(source: ClassSource, function: Function, part: ast.expr, plain: Collection[str], depth: int = 0) -> bool:
    """Tell whether all that needs quotes in a value are fields of the item which are plain words."""
    match part:
        case (
            ast.Subscript(value=ast.Name(id=holder), slice=ast.Constant(value=str(key)))
            | ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr="get"), args=[ast.Constant(value=str(key)), *_])
            | ast.Attribute(value=ast.Name(id=holder), attr=key)
        ) if key in plain and holder in function.positional and holder in _names_of_item(source):
            return True
        case ast.Name(id=name) if plain and depth <= _DEEPEST:
            given = [*_values(function, name), *reach_of(source).given_to(function, name, "compute_reward")]
            inside = [(holder, one) for holder, value in given for one in (list(_inserted(holder, value)) or [value])]
        case _:
            inside = [(function, one) for one in _inserted(function, part)] if depth <= _DEEPEST else []
    return bool(inside) and all(
        _is_harmless(source, holder, one) or _is_of_fields(source, holder, one, plain, depth + 1) for holder, one in inside
    )


def _names_of_item(source: ClassSource) -> set[str]:
    """Return what the item is called: by the reward, and as everybody does."""
    reward = source.methods.get("compute_reward")
    return {"item", *(reward.positional_without_self[:1] if reward is not None else ())}


def _names(part: ast.expr, name: str) -> bool:
    """Whether an expression is made of a name, which it is then bound to."""
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(part))


def _is_constant(function: Function, part: ast.expr) -> bool:
    known = constant_value(part, function.module, function)
    return known is not UNKNOWN and UNKNOWN not in (known if isinstance(known, list) else [known])


def _is_checked(function: Function, name: str) -> bool:
    """Tell whether the function asks what a value looks like, or whether it is one of a few."""
    asks = [
        node
        for node in function.nodes
        if (isinstance(node, ast.Call) and last_name(node.func) in _CHECKS)
        or (isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)))
    ]
    return any(isinstance(item, ast.Name) and item.id == name for node in asks for item in ast.walk(node))


def _is_quote(node: ast.AST) -> bool:
    """Tell whether a node names what quotes, or makes plain letters: ``shlex.quote``, ``shlex.join``, ``uuid4().hex``."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    is_join = isinstance(node, ast.Attribute) and node.attr == "join" and last_name(node.value) == "shlex"
    return is_join or last_name(node) == "quote" or last_name(node) in _PLAIN


def _is_own(function: Function, part: ast.expr) -> bool:
    """Tell whether a value is a setting, or another attribute of self."""
    root = part
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(part, ast.Attribute) and (function.is_self(root) or "config" in ast.unparse(part).split(".")[:-1])


def _values(function: Function, name: str) -> Iterator[tuple[Function, ast.expr]]:
    """Yield what a name is bound to in its function: what is assigned or unpacked, and what a loop goes through."""
    for node in function.nodes:
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets, value = [node.target], node.iter
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets, value = node.targets if isinstance(node, ast.Assign) else [node.target], node.value
        else:
            continue
        if any(isinstance(part, ast.Name) and part.id == name for target in targets for part in ast.walk(target)):
            yield function, value


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=("items", "happy"))
