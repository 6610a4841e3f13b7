"""Files: each parsed once, with the names that it binds and the position of every node.

A file that cannot be read or parsed becomes a `FileProblem`; no content of a file raises an exception.
"""

from __future__ import annotations

import ast
import collections
import errno
import os
import re
import stat
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.redaction.shown_text import shown
from pytest_hermes_env.source.installed import folders_of
from pytest_hermes_env.source.layer_names import LAYER_FILES, LAYER_PACKAGE
from pytest_hermes_env.source.syntax import flat_statements, named_values

_T = TypeVar("_T")

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Directories that are never a root of absolute imports: installed packages are not part of a project."""

_BELOW_THE_LAYER = 2
"""Number of parts in the shortest dotted name of a module in the layer's package."""

LARGEST = 4_000_000
"""Bytes of the largest file that is parsed; a syntax tree takes about a hundred times as many."""

_CLASS = re.compile(rb"^[ \t]*class[ \t]", re.MULTILINE)

MAX_PARENTS = 8
"""How many directories above a file are tried as the root of its absolute imports."""


@dataclass(frozen=True, kw_only=True)
class FileProblem:
    """A file that cannot be judged because it cannot be read or parsed."""

    path: str
    line: int = 1
    column: int = 1
    message: str
    id: str = "HE111"
    name: str = "file-parses"

    def __post_init__(self) -> None:
        """Redact the message, which may quote the file."""
        object.__setattr__(self, "message", shown(self.message))


@dataclass(frozen=True, kw_only=True)
class Binding:
    """The target to which a module-level statement binds a name: an import, a class, a function or an expression."""

    node: ast.AST
    module: str = ""
    """Dotted name of the imported module, relative dots included."""
    attribute: str = ""
    """The name taken from ``module``, or empty where the module itself is bound."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """One parsed file. ``path`` is as the user wrote it, ``file`` is absolute."""

    path: str
    file: str
    tree: ast.Module
    text: bytes
    reader: SourceTree

    @cached_property
    def names(self) -> Mapping[str, tuple[Binding, ...]]:
        """Every module-level binding by name, in the order of the file."""
        found: dict[str, tuple[Binding, ...]] = {}
        for statement in flat_statements(self.tree.body):
            for name, binding in _bindings_of(statement):
                found[name] = (*found.get(name, ()), binding)
        return found

    @cached_property
    def stars(self) -> tuple[str, ...]:
        """Dotted names of the modules that the file imports with a star."""
        return tuple(
            "." * statement.level + (statement.module or "")
            for statement in flat_statements(self.tree.body)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"
        )

    @cached_property
    def handlers(self) -> tuple[ast.ExceptHandler, ...]:
        """Every ``except`` of the file."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.ExceptHandler))

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of the file, as bytes: the parser counts columns in bytes."""
        return self.text.splitlines()

    @cached_property
    def _memo(self) -> dict[tuple[type, ast.AST], Any]:
        return {}

    def once(self, kind: type[_T], node: ast.AST, make: Callable[[], _T]) -> _T:
        """Return the one object of ``kind`` for a statement of this file; ``make`` is called on first use."""
        key = kind, node
        if key not in self._memo:
            self._memo[key] = make()
        found: _T = self._memo[key]
        return found

    def place(self, node: ast.AST) -> tuple[int, int]:
        """Return line and column of ``node``, both from 1, the column in characters."""
        line = getattr(node, "lineno", 1)
        offset = getattr(node, "col_offset", 0)
        if offset and line <= len(self.lines):
            offset = len(self.lines[line - 1][:offset].decode("utf-8", "replace"))
        return line, offset + 1

    def imported(self, dotted: str) -> Module | None:
        """Return the module that this file imports as ``dotted``, or None if it is not a file of the same tree."""
        return self.reader.find(dotted, self.file)

    @cached_property
    def words_read(self) -> frozenset[str]:
        """Every attribute name that is read, and every string literal that could be one."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.add(node.value)
            elif isinstance(node, ast.MatchClass):
                found.update(node.kwd_attrs)
        return frozenset(found)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """Dotted names of the module-level imports; a name imported from a module may be a module itself."""
        found = list(self.stars)
        for bindings in self.names.values():
            for item in bindings:
                if item.module:
                    found += [item.module, f"{item.module.rstrip('.')}.{item.attribute}" if item.attribute else item.module]
        return tuple(dict.fromkeys(found))

    @cached_property
    def problems_of_imports(self) -> tuple[FileProblem, ...]:
        """The files of the same tree that this one imports and that cannot be read or parsed."""
        return tuple(problem for dotted in self.imports if (problem := self.reader.problem_of(dotted, self.file)))


class SourceTree:
    """Reads and parses files, each at most once. It lives as long as one check.

    ``keeps`` is how many files stay parsed although nothing refers to them; by default all do.
    """

    def __init__(self, *, keeps: int | None = None) -> None:
        """Start with nothing read."""
        self._modules: weakref.WeakValueDictionary[str, Module] = weakref.WeakValueDictionary()
        self._kept: collections.deque[Module] = collections.deque(maxlen=keeps)
        self._new: list[Module] = []
        self._problems: dict[str, FileProblem] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._layers: list[str] | None = None

    def read(self, path: str) -> Module | FileProblem:
        """Return the parsed file, or the problem that prevents parsing."""
        file = os.path.abspath(path)
        found = self._modules.get(file) or self._problems.get(file)
        if found is None:
            found = self._parse(path, file)
            if isinstance(found, Module):
                self._modules[file] = found
                self._kept.append(found)
                self._new.append(found)
            else:
                self._problems[file] = found
        return found

    @property
    def modules(self) -> tuple[Module, ...]:
        """The files that are parsed, including imported ones."""
        return tuple(self._kept)

    def newly_read(self) -> list[Module]:
        """Return the files that were parsed since the last call."""
        new, self._new = self._new, []
        return new

    def text_of(self, file: str) -> bytes:
        """Return the content of a file. Raises: OSError, also if it is not a regular file: reading a pipe would block forever."""
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(file, "rb") as stream:
            return stream.read()

    def find(self, dotted: str, importer: str) -> Module | None:
        """Return the module that ``dotted`` names when imported by the file ``importer``, or None."""
        folder = os.path.dirname(importer)
        key = (folder, dotted)
        if key not in self._found:
            self._found[key] = self._locate(dotted, folder)
        file = self._found[key]
        if file is None:
            return None
        module = self.read(_display_path(file))
        return module if isinstance(module, Module) else None

    def problem_of(self, dotted: str, importer: str) -> FileProblem | None:
        """Return the problem of the file that ``importer`` imports as ``dotted``, or None."""
        self.find(dotted, importer)
        file = self._found.get((os.path.dirname(importer), dotted))
        return self._problems.get(file) if file is not None else None

    def _locate(self, dotted: str, folder: str) -> str | None:
        name = dotted.lstrip(".")
        level = len(dotted) - len(name)
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            roots: tuple[str, ...] = (folder,)
        else:
            roots = self._roots_of(folder)
        parts = name.split(".") if name else []
        for root in roots:
            base = os.path.join(root, *parts)
            for candidate in (base + ".py", os.path.join(base, "__init__.py")):
                if os.path.isfile(candidate):
                    return candidate
        return self._bundled(parts) if not level else None

    def _bundled(self, parts: list[str]) -> str | None:
        """Return the file of an environment in the installed layer, which others may inherit from.

        The layer's own modules are never read: they are known by name.
        """
        if len(parts) < _BELOW_THE_LAYER or parts[0] != LAYER_PACKAGE or parts[-1] in LAYER_FILES:
            return None
        if self._layers is None:
            self._layers = folders_of(LAYER_PACKAGE)
        files = (os.path.join(folder, *parts[1:]) + ".py" for folder in self._layers)
        return next((file for file in files if os.path.isfile(file)), None)

    def _roots_of(self, folder: str) -> tuple[str, ...]:
        if folder not in self._roots:
            roots = [] if os.path.basename(folder) in _INSTALLED else [folder]
            current = folder
            for _ in range(MAX_PARENTS):
                if os.path.exists(os.path.join(current, ".git")) or os.path.exists(os.path.join(current, "pyproject.toml")):
                    roots.append(os.path.join(current, "src"))
                    break
                parent = os.path.dirname(current)
                if parent == current or os.path.basename(parent) in _INSTALLED:
                    break
                roots.append(parent)
                current = parent
            roots.append(os.getcwd())
            self._roots[folder] = tuple(dict.fromkeys(roots))
        return self._roots[folder]

    def _parse(self, path: str, file: str) -> Module | FileProblem:
        try:
            text = self.text_of(file)
        except OSError as error:
            return FileProblem(path=path, message=f"the file cannot be read: {error.strerror or error}")
        if len(text) > LARGEST:
            if _CLASS.search(text):
                return FileProblem(
                    path=path, message=f"the file defines classes and has {len(text):,} bytes; the limit is {LARGEST:,}"
                )
            text = b""  # data: no class in it can be an environment
        try:
            with warnings.catch_warnings(), no_garbage_collection():
                warnings.simplefilter("ignore")  # a bad escape in a string is not ours to report
                tree = ast.parse(text, filename=path)
        except SyntaxError as error:
            return FileProblem(
                path=path,
                line=max(error.lineno or 1, 1),
                column=max(error.offset or 1, 1),
                message=f"the file does not parse: {error.msg}",
            )
        except ValueError as error:
            return FileProblem(path=path, message=f"the file does not parse: {error}")
        except (RecursionError, MemoryError):
            return FileProblem(path=path, message="the file does not parse: it nests too deeply")
        return Module(path=path, file=file, tree=tree, text=text, reader=self)


def import_bindings(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Binding]]:
    """Yield the names that an import statement binds; those of a star import are unknown."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, Binding(node=statement, module=alias.name)
            else:
                first = alias.name.split(".")[0]
                yield first, Binding(node=statement, module=first)
        return
    source = "." * statement.level + (statement.module or "")
    for alias in statement.names:
        if alias.name != "*":
            yield alias.asname or alias.name, Binding(node=statement, module=source, attribute=alias.name)


def _bindings_of(statement: ast.stmt) -> Iterator[tuple[str, Binding]]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from import_bindings(statement)
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name, Binding(node=statement)
    for name, value in named_values(statement):
        yield name, Binding(node=value)


def _display_path(file: str) -> str:
    """Return ``file`` relative to the working directory if it is below it."""
    here = os.getcwd() + os.sep
    return file.removeprefix(here)
