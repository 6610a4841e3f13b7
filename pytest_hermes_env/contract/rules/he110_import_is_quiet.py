"""HE110 import-is-quiet
Importing an environment's file has no side effects: no change to environment variables or `sys.path`, no files, no
network.

What: No statement at module or class level of the file, or of a file in or below its folder that it imports, and no
function that such a statement calls, sets `os.environ` or `sys.path`, changes the working directory, writes files,
starts threads or processes, or uses the network. Code under `if __name__ == "__main__":` runs only when the file is
started, and is fine.

Why: Tests, tools, documentation and Atropos' workers import the file. Its side effects reach every other environment in
the process, in an order that nobody chose. A dataset that is downloaded on import makes the file unusable without a
network.

Fix: Move the work into `setup()`, or under `if __name__ == "__main__"`. Instead of a `sys.path` prelude install the
project (`pip install -e .`), or run it with `python -m`.

Source: The prelude `sys.path.insert(0, ...)` of upstream's environments; Python's documentation, "The import system".
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator

from pytest_hermes_env.contract.judge import Finding, Rule, Severity, Verdict
from pytest_hermes_env.source import (
    LAYER_FILES,
    ClassSource,
    External,
    Function,
    Module,
    finding_at,
    flat_statements,
    import_bindings,
    resolve,
    sorted_findings,
)

_MOST = 50
"""How many functions are followed from one file's import, each once."""
_CHANGERS = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"})
_CALLS = (
    (re.compile(r"os\.(?:putenv|unsetenv)|(?:dotenv\.)?load_dotenv"), "changes environment variables"),
    (re.compile(r"os\.(?:chdir|fchdir)"), "changes the working directory"),
    (re.compile(r"site\.addsitedir"), "changes sys.path"),
    (
        re.compile(
            r"os\.(?:makedirs|mkdir|remove|rename|replace|rmdir|symlink|unlink)|"
            r"shutil\.(?:copy\w*|move|rmtree)|tempfile\.(?:mkdtemp|mkstemp|NamedTemporaryFile|TemporaryDirectory)"
        ),
        "changes files",
    ),
    (re.compile(r"subprocess\.(?:run|call|check_call|check_output|Popen)|os\.(?:system|popen)"), "starts a process"),
    (
        re.compile(
            r"(?:requests|httpx)\.(?:get|post|put|head|request|stream|delete)|urllib\.request\.\w+|socket\.create_connection|"
            r"(?:.*\.)?(?:load_dataset|snapshot_download|hf_hub_download|from_pretrained)|nltk\.download"
        ),
        "uses the network",
    ),
    (re.compile(r"wandb\.(?:init|login)|weave\.init|huggingface_hub\.login"), "logs in to a service"),
)
_STARTED = re.compile(r"threading\.(?:Thread|Timer)|(?:multiprocessing\.)?(?:.*\.)?Process")
_WRITERS = frozenset({"write_text", "write_bytes", "mkdir", "touch", "unlink", "rmdir"})


def static(source: ClassSource) -> Verdict:
    """Look at what runs when the class's files are imported."""
    findings = [finding for module in source.modules for finding in _of_module(source, module)]
    return Verdict.of(sorted_findings(findings), "importing the file has no visible side effects")


def _of_module(source: ClassSource, module: Module) -> Iterator[Finding]:
    where = next(item for item in source.readable if item.module is module)
    imported = {item.file for item in source.modules}
    for node, module_of, statement in _imported(module, imported):
        if effect := _effect(node, module_of):
            through = "" if statement is node or module_of is module else f", in {module_of.path}"
            at = node if module_of is module else statement
            yield finding_at(where, at, f"importing the file {effect}{through}")


def _imported(module: Module, imported: set[str]) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
    """Yield what importing a file runs, as `_run` does; of the files that it imports in turn, those in or below its folder."""
    statements = list(_on_import(module.tree.body))
    yield from _run(module, statements, set())
    for statement in statements:
        bound = import_bindings(statement) if isinstance(statement, (ast.Import, ast.ImportFrom)) else ()
        for _, binding in bound:
            for dotted in (binding.module, f"{binding.module.rstrip('.')}.{binding.attribute}"):
                inner = module.reader.find(dotted, module.file) if binding.module else None
                if inner is None or inner.file in imported or not _is_beside(inner.file, module.file):
                    continue
                imported.add(inner.file)
                for node, module_of, _ in _imported(inner, imported):
                    yield node, module_of, statement


def _is_beside(file: str, other: str) -> bool:
    folder, name = os.path.split(file)
    return f"{folder}{os.sep}".startswith(f"{os.path.dirname(other)}{os.sep}") and name.removesuffix(".py") not in LAYER_FILES


def _on_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import runs, those of class bodies included."""
    waiting = list(body)
    guarded: set[int] = set()
    for statement in flat_statements(waiting):
        if id(statement) in guarded:
            continue
        if isinstance(statement, ast.If) and {"__main__", "TYPE_CHECKING"} & set(_words(statement.test)):
            guarded |= {id(inner) for part in statement.body for inner in ast.walk(part)}
            continue
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _on_import(statement.body)


def _words(test: ast.expr) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Constant):
            yield str(node.value)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _run(module: Module, statements: Iterable[ast.stmt], entered: set[Function]) -> Iterator[tuple[ast.AST, Module, ast.AST]]:
    """Yield every node that these statements run, with its module and the statement of the import that leads to it."""
    for statement in statements:
        for node in _nodes(statement):
            yield node, module, statement
            target = resolve(module, node.func) if isinstance(node, ast.Call) and len(entered) < _MOST else None
            if isinstance(target, Function) and target.owner is None and not target.is_async and target not in entered:
                entered.add(target)
                for inner, inner_module, _ in _run(target.module, flat_statements(target.node.body), entered):
                    yield inner, inner_module, statement


def _nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement itself: not those of the statements in its blocks, nor of functions that it defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        waiting: list[ast.AST] = list(statement.decorator_list)
    else:
        yield statement
        waiting = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, (ast.stmt, ast.ExceptHandler))]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.Lambda, ast.stmt)):
            waiting += ast.iter_child_nodes(node)


def _effect(node: ast.AST, module: Module) -> str:
    if isinstance(node, ast.Call):
        return _effect_of_call(node, module)
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    for target in targets:
        held = target.value if isinstance(target, ast.Subscript) else target
        dotted = _dotted(module, held)
        if isinstance(target, (ast.Subscript, ast.Attribute)) and dotted == "os.environ":
            return "sets an environment variable"
        if dotted == "sys.path" and (not isinstance(target, ast.Name) or isinstance(node, ast.AugAssign)):
            return "changes sys.path"
    return ""


def _effect_of_call(node: ast.Call, module: Module) -> str:
    dotted = _dotted(module, node.func)
    holder, _, name = dotted.rpartition(".")
    if holder == "os.environ" and name in _CHANGERS:
        return "sets an environment variable"
    if holder == "sys.path" and name in _CHANGERS:
        return "changes sys.path"
    for pattern, effect in _CALLS:
        if pattern.fullmatch(dotted):
            return effect
    if (dotted in {"open", "io.open"} or (not holder and name == "open")) and _writes(node):
        return "writes a file"
    if isinstance(node.func, ast.Attribute) and node.func.attr == "start" and _made_by(module, node.func.value, _STARTED):
        return "starts a thread or a process"
    if isinstance(node.func, ast.Attribute) and node.func.attr in _WRITERS and _is_path(module, node.func.value):
        return "changes files"
    return ""


def _made_by(module: Module, node: ast.expr, makers: re.Pattern[str]) -> bool:
    """Whether an expression, or what its module-level name is bound to, calls one of ``makers``."""
    bound = module.names.get(node.id, ()) if isinstance(node, ast.Name) else ()
    values = [getattr(item.node, "value", item.node) for item in bound if not item.module] or [node]
    return any(isinstance(value, ast.Call) and makers.fullmatch(_dotted(module, value.func)) is not None for value in values)


def _writes(node: ast.Call) -> bool:
    modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)


def _is_path(module: Module, node: ast.expr) -> bool:
    """Whether an expression is made with pathlib.Path, also by way of a module-level name."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if _dotted(module, part) in {"pathlib.Path", "Path"}:
                return True
            bindings = module.names.get(part.id, ())
            if any(not item.module and _makes_path(module, item.node) for item in bindings):
                return True
        elif isinstance(part, ast.Attribute) and _dotted(module, part) == "pathlib.Path":
            return True
    return False


def _makes_path(module: Module, node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call) and _dotted(module, part.func).startswith(("pathlib.Path", "Path"))
        for part in ast.walk(node)
    )


def _dotted(module: Module, node: ast.expr) -> str:
    target = resolve(module, node)
    if isinstance(target, External):
        return target.dotted
    if target is not None or not isinstance(node, ast.Attribute):
        return ""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    # a module that a function imports for itself is called by its name
    return ast.unparse(node) if isinstance(root, ast.Name) and root.id not in module.names else node.attr


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, holds_for_base_env=True)
