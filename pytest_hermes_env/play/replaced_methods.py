"""Methods of the layer that an environment's own files have replaced, so that what runs is not the layer's."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.source import read_class


def replaced_methods(env_class: type, layer: Layer) -> Iterator[tuple[str, Place]]:
    """Yield the dotted name of each replaced method, and where its replacement is written. One that calls the original does not count."""
    own = env_class.__mro__[: env_class.__mro__.index(layer.base)]
    folders = tuple(os.path.dirname(file) + os.sep for cls in own if (file := _file_of(cls)))
    for cls in (layer.base, layer.loop_class, layer.context_class):
        file = _file_of(cls)
        functions = {name: function for name, member in vars(cls).items() if (function := _function(member)) is not None}
        foreign = {name: function for name, function in functions.items() if function.__code__.co_filename.startswith(folders)}
        written = read_class(file, cls.__qualname__) if file and foreign else None
        for name, function in foreign.items():
            code = function.__code__
            is_added = written is None or name not in written.own_methods
            if not is_added and code.co_filename != file and not _leads_to(file, function, cls, name):
                yield f"{cls.__name__}.{name}", Place(path=code.co_filename, line=code.co_firstlineno, function=name)


def _function(member: Any) -> FunctionType | None:
    found = getattr(member, "__func__", getattr(member, "fget", member))
    return found if isinstance(found, FunctionType) else None


def _leads_to(file: str, function: FunctionType, cls: type, name: str) -> bool:
    """Whether a function holds, or names, the method of that name that is written in the layer's file."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if not _is_empty(cell)]
    words = dict.fromkeys(word for code in _codes(function.__code__) for word in code.co_names)
    named = [function.__globals__.get(word, getattr(cls, word, None)) for word in words]
    held = [*cells, *named, *(function.__defaults__ or ()), getattr(function, "__wrapped__", None)]
    codes = (getattr(_function(member), "__code__", None) for member in held)
    return any(code is not None and (code.co_filename, code.co_name) == (file, name) for code in codes)


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _file_of(cls: type) -> str:
    try:
        return inspect.getsourcefile(cls) or ""
    except TypeError:
        return ""
