"""What to write where the environment's code raised, as far as the live exception shows it: a key, a name, a call that is missing."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import inspect
import json
import linecache
import os
import re
import sys
import traceback
from collections.abc import Mapping
from types import BuiltinFunctionType, CoroutineType, FrameType, FunctionType, ModuleType
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.advice_of_files import VERY_ALIKE, near_name, of_encoding, of_file, of_import, of_json
from pytest_hermes_env.play.journal import Place

MOST_NAMES = 6
_SIGNATURES = {
    "__init__": "self, config, server_configs, slurm=False, testing=False",
    "collect_trajectories": "self, item",
    "collect_trajectory": "self, item",
    "compute_reward": "self, item, result, ctx",
    "evaluate": "self, *args, **kwargs",
    "format_prompt": "self, item",
    "get_eval_items": "self",
    "get_next_item": "self",
    "prepare_sandbox": "self, item, ctx",
    "setup": "self",
    "wandb_log": "self, wandb_metrics=None",
}
"""What the layer and Atropos call methods of an environment with."""
_NO_NUMBER = re.compile("invalid literal for int|could not convert string to float")
_ARGUMENTS = re.compile(
    r"(?:[\w<>]+\.)*(\w+)\(\) (?:takes .*positional|missing .*positional|got an unexpected keyword) argument"
)
MOST_TEXT = 40
_OF_ONE_VALUE = frozenset({"string_type", "int_type", "float_type", "bool_type", "dict_type", "model_type", "literal_error"})
"""Pydantic's errors where one text, number, truth value or mapping was expected."""
_IN_PLACE = frozenset({"append", "clear", "extend", "insert", "remove", "reverse", "shuffle", "sort", "update"})
_GIVEN_OUT = frozenset({"gather", "create_task", "ensure_future", "wait", "wait_for", "shield", "run"})
"""Functions that await what they are given."""


def advice_for(error: BaseException, place: Place) -> str:
    """Return what to write at ``place``, the line of the environment that an error came from; empty where the error does not show it."""
    with contextlib.suppress(Exception):  # it is asked while an error is told, which must not be lost
        return _advice(error, place)
    return ""


def _advice(error: BaseException, place: Place) -> str:
    if isinstance(error, ImportError):
        return of_import(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return of_file(error.filename, os.path.dirname(place.path), is_of_a_rollout=_is_of_a_rollout(error))
    if isinstance(error, json.JSONDecodeError):
        return "" if _is_of_a_rollout(error) else of_json(error)
    if (checked := getattr(error, "errors", None)) is not None and type(error).__name__ == "ValidationError":
        first = checked()[0]  # pydantic's: a field of a configuration
        given = first.get("input")
        if isinstance(given, tuple) and len(given) == 1 and first.get("type") in _OF_ONE_VALUE:
            return f"`{'.'.join(map(str, first['loc']))}` is a tuple of one value: take away the comma behind it."
        return f"Correct `{'.'.join(map(str, first['loc']))}`: {first['msg'][:1].lower()}{first['msg'][1:]}."
    line = linecache.getline(place.path, place.line)
    if told := _of_a_declaration(str(error), line) or _of_a_line(error, line):
        return told
    if isinstance(error, UnicodeDecodeError):
        return of_encoding(error)
    if (
        isinstance(error, KeyError)
        and (variable := re.search(r"\bos\.environ\[(['\"])(\w+)\1\]", line))
        and error.args == (variable[2],)
    ):
        return f"Set the variable {variable[2]} where this runs, or write `os.environ.get({variable[2]!r}, …)`."
    if set_ := re.match(r"property '(\w+)' of '(\w+)' object has no setter", str(error)):
        return f"Call the attribute otherwise: `{set_[1]}` is a property of {set_[2]}, which nothing can be set to."
    frame, segment = _where(error)
    is_of_place = frame is not None and frame.f_code.co_filename == place.path
    if isinstance(error, TypeError) and not is_of_place and (method := _ARGUMENTS.match(str(error))):
        return f"Write `{method[1]}({_SIGNATURES[method[1]]})` where it is defined." if method[1] in _SIGNATURES else ""
    if isinstance(error, AttributeError) and error.name:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""
        is_setting_up = any(one.f_code.co_name == "setup" for one, _ in traceback.walk_tb(error.__traceback__))
        is_near = is_of_place and place.function != "setup"
        is_foreign = frame is not None and frame.f_globals.get("__name__") != getattr(error.obj, "__module__", "")
        if is_near and is_foreign and (import_ := _of_import_of(error.obj, error.name, segment.strip())):
            return import_
        return _of_attribute(error.obj, error.name, segment, line, is_of_place=is_near, is_setting_up=is_setting_up)
    if frame is None or not is_of_place:
        return ""
    if isinstance(error, KeyError) and error.args:
        return _of_key(error.args[0], frame, segment, is_data=_is_of_a_rollout(error))
    if isinstance(error, NameError) and error.name:
        return _of_name(error.name, frame)
    if isinstance(error, ZeroDivisionError):
        node = _parsed(segment)
        return f"`{ast.unparse(node.right)}` is 0 here: divide only where it is not." if isinstance(node, ast.BinOp) else ""
    if _is_of_a_rollout(error) and "item" not in segment:
        if isinstance(error, ValueError) and _NO_NUMBER.match(str(error)):
            return f"Give 0.0 where `{segment.strip()}` raises ValueError: the agent may write anything."
        if isinstance(error, IndexError) and isinstance(node := _parsed(segment), ast.Subscript):
            return f"Look at the length of `{ast.unparse(node.value)}` first: the agent may write anything."
    return _of_type(str(error), frame, segment) if isinstance(error, TypeError) else ""


def _of_a_line(error: BaseException, line: str) -> str:
    """Return what to write in place of a line that starts what runs already, or that runs too early."""
    if isinstance(error, SystemExit) and re.search(r"\.cli\(", line):
        return f'Put `{line.strip()}` below `if __name__ == "__main__":`.'
    ran = re.search(r"(?:asyncio\.run|\.run_until_complete)\((.+)\)", line)
    if ran and isinstance(error, RuntimeError) and "running" in str(error):
        calls = (one for one in ast.walk(_statement(line)) if _called(one) in {"run", "run_until_complete"})
        call = next((one for one in calls if isinstance(one, ast.Call) and one.args), None)
        return f"Write `await {ast.unparse(call.args[0])}`: a loop runs already." if call is not None else ""
    return ""


def _of_a_declaration(text: str, line: str) -> str:
    """Return how a field of a dataclass, or of a pydantic model, is written that was refused; ``line`` raised."""
    if (lone := re.match(r"A non-annotated attribute was detected: `(\w+) = ", text)) is not None:
        bases = (re.match(r"\s*class \w+\((.+)\):", line) or ["", ""])[1].split(",")
        config = next((base.strip() for base in bases if base.strip().endswith("Config")), "")
        if config and len(bases) > 1:
            return f"Take {config} out of the bases, and write `env_config_cls = {config}` in the class."
        return f"Write its type: `{lone[1]}: TYPE = …`."
    if (field := re.match(r"mutable default <class '(\w+)'> for field (\w+) is not allowed", text)) is not None:
        return f"Write `{field[2]}: {field[1]} = field(default_factory={field[1]})`."
    if (named := re.search(r"reads self\.(eval_items), and the items are in self\.(\w+)$", text)) is not None:
        return f"Call it self.{named[1]} in `setup()`, not self.{named[2]}."
    if (
        field := re.match(r"Field '(\w+)' defined on a base class was overridden by a non-annotated attribute", text)
    ) is not None:
        return f"Write its type: `{field[1]}: TYPE = …`. Or set it in `config_init`."
    return ""


def _is_of_a_rollout(error: BaseException) -> bool:
    """Tell whether an error came up in a reward, where texts and their parts are the agent's, and no mistake of the author."""
    return any(frame.f_code.co_name == "compute_reward" for frame, _ in traceback.walk_tb(error.__traceback__))


def _where(error: BaseException) -> tuple[FrameType | None, str]:
    """Return the frame that raised, and the source of the expression in it that did."""
    stack = [*traceback.walk_tb(error.__traceback__)]
    if not stack:
        return None, ""
    frame = stack[-1][0]
    part = traceback.TracebackException(type(error), error, error.__traceback__).stack[-1]
    if part.lineno is None or part.lineno != part.end_lineno or part.colno is None:
        return frame, ""
    line = linecache.getline(part.filename, part.lineno).encode()
    return frame, line[part.colno : part.end_colno].decode(errors="replace")


def _of_key(key: object, frame: FrameType, segment: str, *, is_data: bool) -> str:
    node = _parsed(segment)
    held = _value(node.value, frame) if isinstance(node, ast.Subscript) else None
    if is_data and isinstance(node, ast.Subscript) and "exit_code" in {*(held or ()), *_given_by_context(node.value)}:
        return "The result of `ctx.terminal` has 'output' and 'exit_code'."
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "format" and not str(key).isidentifier():
        return f"Double the braces that stay, in the text that is formatted: `{{{{` and `}}}}` around {shorten(str(key), MOST_TEXT)}."
    if not isinstance(held, Mapping):
        return ""
    name = ast.unparse(node.value)
    near = near_name(str(key), (known for known in held if isinstance(known, str)))
    if near:
        return f"Write {name}[{near!r}]: it has no {key!r}."
    if is_data and name != "item":
        return ""
    known = ", ".join(repr(one) for one in list(held)[:MOST_NAMES])
    return f"{name} has no {key!r}; it has {known}." if known else f"{name} is empty here."


def _given_by_context(node: ast.expr) -> tuple[str, ...]:
    """Return the keys that a call of a tool context gives."""
    is_terminal = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "terminal"
    return ("output", "exit_code") if is_terminal else ()


def _parsed(segment: str) -> Any:
    try:
        return ast.parse(segment.strip(), mode="eval").body
    except SyntaxError:
        return None


def _statement(line: str) -> ast.AST:
    """Return the statement that a line is, or begins; an empty one for a part of one."""
    for rest in ("", " pass"):
        with contextlib.suppress(SyntaxError):
            return ast.parse(f"{line.strip()}{rest}")
    return ast.Pass()


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return what a name, or an attribute of one, holds in a frame, without running anything of the class."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), "__dict__", {}).get(node.attr)
    return None


def _of_attribute(owner: object, name: str, segment: str, line: str, *, is_of_place: bool, is_setting_up: bool) -> str:
    if isinstance(owner, CoroutineType) and is_of_place:
        return f"Await the call first: `(await {owner.__name__}(…)).{name}`."
    if isinstance(owner, Mapping) and name in owner and is_of_place:
        return f"It is a dict: write {segment.strip().removesuffix('.' + name)}[{name!r}]."
    held = getattr(owner, "__dict__", {})
    for cls in type(owner).__mro__[1:]:
        names = _set_by(vars(cls).get("__init__"))
        if name in names and 2 * len(names & held.keys()) < len(names):
            return f"Call `super().__init__(…)` first in `__init__`: it sets self.{name}, and had not run."
    if name in getattr(held.get("config"), "__dict__", {}) and is_of_place:
        return f"Write `.config.{name}`: it is a field of the configuration."
    is_called = f".{name}(" in line
    near = "" if is_called else near_name(name, [one for one in held if not callable(held[one])])
    begun = [one for one in dir(owner) if one.startswith(f"{name}_")]
    near = near or near_name(name, dir(owner), VERY_ALIKE) or (begun[0] if len(begun) == 1 else "")
    if isinstance(owner, type) and name in _set_by(getattr(owner, "setup", None)) and is_of_place:
        return f"Remove `@classmethod`, and write `self.{name}`: `setup` sets it on the environment, and not on its class."
    set_up = _set_by(getattr(type(owner), "setup", None))
    begun_with = frozenset().union(*(_set_by(vars(cls).get("__init__")) for cls in type(owner).__mro__))
    if name in set_up and not is_setting_up and not (set_up - begun_with) & held.keys():
        return f"Await `setup()` first: it sets {name}, and had not run."
    if near or not is_of_place:
        return f"Write `.{near}`: {type(owner).__name__} has no {name}." if near and is_of_place else ""
    is_own = segment.strip() == f"self.{name}" and not is_called
    return f"Set self.{name} in `setup()`: nothing has set it." if is_own else ""


def _of_import_of(owner: Any, name: str, segment: str) -> str:
    """Return what to write where a module was meant and one of its names was imported, or the other way round; else empty."""
    said = segment.removesuffix(f".{name}")
    called = getattr(owner, "__name__", "")
    module = owner if isinstance(owner, ModuleType) else sys.modules.get(getattr(owner, "__module__", None) or "")
    if not segment.endswith(f".{name}") or module is None or not called:
        return ""
    if isinstance(owner, ModuleType):
        inner = called.rpartition(".")[2]
        return f"Write `{said}.{inner}.{name}`: `{said}` is the module." if hasattr(getattr(owner, inner, None), name) else ""
    if not hasattr(module, name) or not isinstance(owner, type | FunctionType | BuiltinFunctionType):
        return ""
    of = f"`{said}` is {module.__name__}.{called} here, by `from {module.__name__} import {called}`"
    return f"Write `{said}` alone: {of}." if getattr(module, name) is owner else f"Write `import {module.__name__}`: {of}."


def _set_by(method: object) -> frozenset[str]:
    """Return the attributes that a constructor, or another method, sets."""
    code = getattr(method, "__code__", None)
    return frozenset(one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR") if code else frozenset()


def _of_name(name: str, frame: FrameType) -> str:
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if name in sys.stdlib_module_names and re.search(rf"\b{name}\.", line):
        return f"Add `import {name}` at the top of the file."
    near = near_name(name, [*frame.f_locals, *frame.f_globals, *dir(builtins)])
    return f"Write `{near}`: no name `{name}` is defined." if near else ""


def _of_type(text: str, frame: FrameType, segment: str) -> str:
    said = segment.strip()
    if "NoneType" in text and (setting := _set_to_nothing(frame, _parsed(segment))):
        return setting
    if "can't be used in 'await' expression" in text:
        return f"Leave out the `await`{f' in `{said}`' if said else ''}: what it waits for is not async."
    if (kind := re.match(r"(\w+) indices must be integers", text)) and isinstance(node := _parsed(segment), ast.Subscript):
        name = ast.unparse(node.value)
        parts, key = _value(node.value, frame), getattr(node.slice, "value", None)
        inside = [place for place, part in enumerate(parts or ()) if isinstance(part, Mapping) and key in part]
        code = frame.f_code
        if inside and name == "item" and name in code.co_varnames[: code.co_argcount]:
            return (
                f"Return the item alone in `get_next_item`: `item` is a {kind[1]} here, and its part {inside[0]} has {key!r}."
            )
        if inside:
            return f"Write `{name}[{inside[0]}][{key!r}]`: `{name}` is a {kind[1]} here."
        return f"`{name}` is a {kind[1]} here, and has no keys: make it a dict, or take a number."
    if (alone := re.match(r"'(?:\w+\.)*(\w+)' object is not subscriptable", text)) and isinstance(
        node := _parsed(segment), ast.Subscript
    ):
        name, key = ast.unparse(node.value), getattr(node.slice, "value", None)
        if isinstance(key, str) and hasattr(_value(node.value, frame), key):
            return f"Write `{name}.{key}`: `{name}` is a {alone[1]}, and no dict."
    if "coroutine" in text:
        line, call = _not_awaited(frame)
        return f"Write `await {call}` in line {line}." if call else "Await the call that made the coroutine."
    return ""


def _source_of(frame: FrameType) -> tuple[ast.AST, int]:
    """Return the code of a frame's function, and the number of its first line; an empty module where it cannot be read alone."""
    try:
        source, first = inspect.getsourcelines(frame.f_code)
        text = "".join(source)
        is_inside = text[:1].isspace()  # of a class or function: its texts may begin before its code
        return ast.parse(f"if True:\n{text}" if is_inside else text), first - is_inside
    except (OSError, SyntaxError, TypeError, ValueError):
        return ast.Module(body=[], type_ignores=[]), 0


def _set_to_nothing(frame: FrameType, node: ast.AST) -> str:
    """Return which line set what is None here to what a method returned that changes its object in place; empty where none did."""
    tree, first = _source_of(frame)
    used = (
        {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)}
        if node is not None
        else set()
    )
    for one in ast.walk(tree):
        match one:
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(attr=name))) if (
                ast.unparse(target) in used and name in _IN_PLACE
            ):
                return f"Line {first + one.lineno - 1} sets {ast.unparse(target)} to what {name}() returns, which is None: it changes its object in place."
    return ""


def _not_awaited(frame: FrameType) -> tuple[int, str]:
    """Return the first call of an async method of self in a function that nothing awaits, with its line."""
    tree, first = _source_of(frame)
    awaiting = [node for node in ast.walk(tree) if isinstance(node, ast.Await) or _called(node) in _GIVEN_OUT]
    taken = {id(part) for node in awaiting for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if id(node) not in taken:
                if inspect.iscoroutinefunction(getattr(type(frame.f_locals.get("self")), name, None)):
                    return first + node.lineno - 1, ast.unparse(node)
    return 0, ""


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", "") or getattr(function, "id", "")
