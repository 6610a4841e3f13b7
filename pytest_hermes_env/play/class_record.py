"""What a class is, as plain values: rules read this record, and never the class itself.

Place in the flow: `record_of` looks at the class in the process that plays it, after its rollouts, because they may change it.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.source import read_class

COMPUTED = "(computed)"
"""Stands for a name that is a property."""


@dataclass(frozen=True, kw_only=True)
class MethodRecord:
    """A method that the environment defines, or inherits from another one, above the layer's base.

    ``required`` are its parameters without a default, ``self`` left out. ``is_abstract``: it must be overridden.
    """

    place: Place
    is_callable: bool = True
    is_async: bool = False
    is_async_generator: bool = False
    is_abstract: bool = False
    required: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ConfigRecord:
    """A class of configurations: its name, those of its bases, and its fields with whether each is described."""

    name: str = ""
    bases: tuple[str, ...] = ()
    fields: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ServerRecord:
    """A server configuration: its type with its bases, and the settings that decide how a server is asked."""

    bases: tuple[str, ...] = ()
    base_url: Any = None
    server_type: Any = None
    health_check: Any = None


@dataclass(frozen=True, kw_only=True)
class ConfigInit:
    """What ``config_init`` returned, or the ``error`` that it raised.

    ``shape`` is its type, such as "tuple of 2". ``config`` is the type of the configuration, ``values`` its settings; ``servers``
    is None unless the second value is a list, whose type is ``servers_type``; ``single`` is a second value that is one server. ``dropped``
    are names that it gave to a configuration which has no such field, None where none was seen while it was made.
    """

    error: str = ""
    shape: str = ""
    config: ConfigRecord = field(default_factory=ConfigRecord)
    values: dict[str, Any] = field(default_factory=dict)
    servers_type: str = ""
    servers: tuple[ServerRecord, ...] | None = None
    single: ServerRecord | None = None
    dropped: tuple[str, ...] | None = None

    @property
    def is_pair(self) -> bool:
        """Whether it returned two values."""
        return self.shape == "tuple of 2"

    @property
    def server_list(self) -> tuple[ServerRecord, ...] | None:
        """The servers, also where a single one stands in place of a list; None where there are none."""
        return (self.single,) if self.single is not None else self.servers


@dataclass(frozen=True, kw_only=True)
class ClassRecord:
    """One environment class. ``title`` is its attribute ``name``, and ``base_title`` the layer's; None where they are computed.

    ``methods`` are those above the layer's base. ``replaced`` are methods of the layer that the environment's files replaced.
    ``toolsets`` are the names that hermes knew after its rollouts. ``written`` are the qualified names by which a file may define it: its
    own and, where a factory renamed it, those of its methods.
    """

    name: str
    module: str = ""
    place: Place = field(default_factory=Place)
    base: str = ""
    base_module: str = ""
    base_place: Place = field(default_factory=Place)
    title: Any = None
    base_title: Any = None
    methods: dict[str, MethodRecord] = field(default_factory=dict)
    config: ConfigRecord = field(default_factory=ConfigRecord)
    base_config: ConfigRecord = field(default_factory=ConfigRecord)
    replaced: tuple[tuple[str, Place], ...] = ()
    toolsets: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The class as ledgers name it."""
        return f"{self.module}:{self.name}"


def record_of(cls: type, layer: Layer) -> ClassRecord:
    """Return the record of a class."""
    owners: dict[str, type] = {}
    for above in cls.__mro__[: cls.__mro__.index(layer.base)]:
        for name in vars(above):
            owners.setdefault(name, above)
    title, base_title = getattr(cls, "name", None), getattr(layer.base, "name", None)
    return ClassRecord(
        name=cls.__qualname__,
        module=cls.__module__,
        place=place_of(cls),
        base=layer.base.__name__,
        base_module=layer.base.__module__,
        base_place=place_of(layer.base),
        title=COMPUTED if isinstance(title, property) else title,
        base_title=base_title,
        methods={
            name: method for name, owner in owners.items() if (method := _method(cls, name, vars(owner)[name])) is not None
        },
        config=_config(getattr(cls, "env_config_cls", None)),
        base_config=_config(getattr(layer.base, "env_config_cls", None)),
        replaced=tuple(replaced_methods(cls, layer)),
        toolsets=tuple(sorted(_toolsets())),
    )


def written_names(cls: type) -> tuple[str, ...]:
    """Return the qualified names by which a file may define a class."""
    codes = (getattr(inspect.unwrap(getattr(member, "__func__", member)), "__code__", None) for member in vars(cls).values())
    names = (code.co_qualname.rpartition(".") for code in codes if code is not None)
    holders = (holder for holder, _, name in names if holder and name in vars(cls))
    return tuple(dict.fromkeys([cls.__qualname__, *holders]))


def config_init_record(returned: Any, error: str, dropped: tuple[str, ...] | None = None) -> ConfigInit:
    """Return the record of what config_init returned, or raised."""
    size = f" of {len(returned)}" if isinstance(returned, tuple) else ""
    first, second = (*returned, None, None)[:2] if isinstance(returned, tuple) else (None, None)
    fields = getattr(type(first), "model_fields", {})
    return ConfigInit(
        error=error,
        dropped=dropped,
        shape=f"{type(returned).__name__}{size}",
        config=_config(type(first)),
        values={name: getattr(first, name, None) for name in fields},
        servers_type=type(second).__name__,
        servers=tuple(map(_server, second)) if isinstance(second, list) else None,
        single=_server(second) if hasattr(second, "base_url") else None,
    )


def place_of(thing: Any) -> Place:
    """Return the place of a class or function, without its decorators; an empty one where there is no source."""
    try:
        path = inspect.getsourcefile(thing) or ""
        linecache.checkcache(path)
        lines = linecache.getlines(path)
        start = _line_of_class(thing, lines) if inspect.isclass(thing) else None
        if start is None:
            with no_garbage_collection():
                lines, start = inspect.findsource(thing)
    except (OSError, TypeError):
        return Place()
    if lines[start].lstrip().startswith("@"):
        start = next((at for at in range(start, len(lines)) if lines[at].lstrip().startswith(_STATEMENTS)), start)
    return Place(path=path, line=start + 1, function=getattr(thing, "__name__", ""))


_STATEMENTS = ("class ", "def ", "async def ")


def _line_of_class(cls: type, lines: list[str]) -> int | None:
    """Return the index of the line that begins a class, where one alone does; inspect parses the whole file for each class."""
    words = re.compile(rf"\s*class\s+{re.escape(cls.__name__)}\s*[(:\[]")
    found = [at for at, line in enumerate(lines) if words.match(line)]
    return found[0] if len(found) == 1 else None


def _method(cls: type, name: str, member: Any) -> MethodRecord | None:
    """Return the record of a member of a class; None for one that nobody calls."""
    function = getattr(member, "__func__", member)
    if isinstance(member, property) or (name.startswith("__") and name != "__init__"):
        return None
    if not callable(function):
        return MethodRecord(place=Place(), is_callable=False)
    plain = inspect.unwrap(function)
    return MethodRecord(
        place=place_of(plain),
        is_async=inspect.iscoroutinefunction(function),
        is_async_generator=inspect.isasyncgenfunction(function),
        is_abstract=bool(getattr(function, "__isabstractmethod__", False)),
        required=tuple(_required(getattr(cls, name))),
    )


def _required(function: Any) -> Iterable[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()
    collecting = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    required = [item.name for item in parameters if item.default is item.empty and item.kind not in collecting]
    return required[1:] if required and required[0] == parameters[0].name else required


def _config(config: Any) -> ConfigRecord:
    if not isinstance(config, type):
        return ConfigRecord(name=repr(config))
    fields = getattr(config, "model_fields", {})
    return ConfigRecord(
        name=config.__name__,
        bases=tuple(above.__name__ for above in config.__mro__),
        fields={name: bool(getattr(item, "description", None)) for name, item in fields.items()},
    )


def _server(server: Any) -> ServerRecord:
    bases = tuple(above.__name__ for above in type(server).__mro__)
    settings = {name: getattr(server, name, None) for name in ("base_url", "server_type", "health_check")}
    return ServerRecord(bases=bases, **settings)


def _toolsets() -> frozenset[str]:
    """Return the names of toolsets that hermes knows in this process, those that environments registered included."""
    loaded = getattr(sys.modules.get("toolsets"), "TOOLSETS", None)
    registry = getattr(sys.modules.get("tools.registry"), "registry", None)
    names = registry.get_registered_toolset_names() if registry is not None else ()
    return frozenset(loaded or ()) | frozenset(names)


def replaced_methods(env_class: type, layer: Layer) -> Iterator[tuple[str, Place]]:
    """Yield the dotted name of each replaced method, and where its replacement is written. One that calls the original does not count."""
    own = env_class.__mro__[: env_class.__mro__.index(layer.base)]
    folders = tuple(os.path.dirname(file) + os.sep for cls in own if (file := file_of(cls)))
    for cls in (layer.base, layer.agent_loop.HermesAgentLoop, layer.tool_context.ToolContext):
        file = file_of(cls)
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


def file_of(cls: type) -> str:
    """Return the source file of a class; empty where there is none."""
    try:
        return inspect.getsourcefile(cls) or ""
    except TypeError:
        return ""
