"""HE114 base-is-real
The base class is the layer's own, and what is called on `self` and `super()` exists.

What: The base is not subscripted, and no empty class takes its place where the layer cannot be imported. Each method
that is called on `self` or `super()` is the environment's, the layer's or Atropos' own. No method of the layer's base,
`HermesAgentLoop` or `ToolContext` is replaced by code of the environment's files that does not call the original.

Why: `HermesAgentBaseEnv` is not generic: `HermesAgentBaseEnv[Config]` raises a TypeError at import. An empty class in
an `except ImportError` lets the import pass, and every method of the layer is missing later. With a stub in the place
of `ToolContext.terminal`, nothing is set up and nothing is verified, in any environment of the process. A misspelt method raises
an AttributeError in the middle of a run, which Atropos logs and goes on.

Fix: `class Env(HermesAgentBaseEnv)` with `env_config_cls = Config`; let the ImportError be raised; call the method that
the base has.

Source: `environments.hermes_base_env`, `HermesAgentBaseEnv`; atroposlib 0.4.0, `envs/base.py`, `BaseEnv`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.source import LAYER_ENV, ClassKind, ClassSource, External, Function, Module, finding_at, resolve
from pytest_hermes_env.source.installed import base_names

_OPEN = frozenset({"__getattr__", "__getattribute__", "__dict__", "setattr"})


def static(source: ClassSource) -> Verdict:
    """Look at the bases, at what else may stand in their place, and at the methods that are called."""
    findings = [finding for item in source.readable for finding in _of_bases(item)]
    if doubt := _doubt(source):
        return Verdict.of_source(findings, "", doubt=doubt)
    known = _known(source)
    for item in source.readable:
        for function in item.own_methods.values():
            findings += _calls(function, known)
    return Verdict.of_source(findings, "the base is the layer's, and every method that is called on it exists")


def _of_bases(source: ClassSource) -> Iterator[Finding]:
    for base in source.node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        target = resolve(source.module, inner)
        if not isinstance(target, External) or target.last != LAYER_ENV:
            continue
        if isinstance(base, ast.Subscript):
            yield finding_at(source, base, f"{LAYER_ENV} is not generic: {ast.unparse(base)} raises a TypeError at import")
        for module, stub in _stubs(source.module, inner.id) if isinstance(inner, ast.Name) else ():
            message = f"{ast.unparse(inner)} is an empty class where the layer cannot be imported: nothing says so"
            line, column = module.place(stub)
            yield Finding(message=message, path=module.path, line=line, column=column)


def _stubs(module: Module, name: str) -> Iterator[tuple[Module, ast.stmt]]:
    """Yield what stands for ``name`` where its import fails, in a file and in those that it imports the name from."""
    sources = [module, *(found for item in module.names.get(name, ()) if (found := module.imported(item.module)) is not None)]
    for source in dict.fromkeys(sources):
        for handler in source.handlers:
            yield from ((source, node) for node in handler.body if _is_stub(node, name))


def _is_stub(node: ast.stmt, name: str) -> bool:
    """Return whether a statement binds ``name`` to a class that works without the layer in appearance only."""
    if isinstance(node, ast.ClassDef):
        return node.name == name and not any(isinstance(part, ast.Raise) for part in ast.walk(node))
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == "object" and any(isinstance(item, ast.Name) and item.id == name for item in node.targets)


def _doubt(source: ClassSource) -> str:
    """Return why it is not known which methods there are; empty if it is."""
    unread = (*source.unreadable, *(name for base in source.external if base.base is not None for name in base.base.unreadable))
    if source.class_kind is not ClassKind.HERMES or unread:
        return f"{next(iter(unread), 'the base')} cannot be read: it may have any method"
    if not base_names(_layer(source)):
        return "Atropos or the layer is not installed here: their methods are not known"
    words = {word for module in source.modules for word in _words(module.tree)}
    return f"{', '.join(sorted(words & _OPEN))} may add any method" if words & _OPEN else ""


def _layer(source: ClassSource) -> str:
    """Return the folder of the layer that belongs to the same project; empty where it is the installed one."""
    if found := [os.path.dirname(base.base.module.file) for base in source.external if base.base is not None]:
        return found[0]
    dotted = [base.dotted.rpartition(".")[0] for base in source.external if base.last == LAYER_ENV]
    layers = [layer for name in dotted if name for item in source.modules if (layer := item.imported(name)) is not None]
    return os.path.dirname(layers[0].file) if layers else ""


def _words(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name


def _known(source: ClassSource) -> frozenset[str]:
    """Return the names that an instance may have: methods, attributes that anything sets, and names that texts mention."""
    classes = [*source.readable, *(item for base in source.external if base.base is not None for item in base.base.readable)]
    found = set(base_names(_layer(source))) | set(dir(object))
    for module in dict.fromkeys(item.module for item in classes):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    for item in classes:
        found |= item.own_methods.keys() | item.own_attributes.keys()
        found |= {
            node.target.id for node in item.node.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        found |= {node.name for node in item.node.body if isinstance(node, ast.ClassDef)}
    return frozenset(found)


def _calls(function: Function, known: frozenset[str]) -> Iterator[Finding]:
    """Yield the calls of methods that nothing defines."""
    for node in function.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name)):
                receiver = "super()"
            case ast.Call(func=ast.Attribute(value=ast.Name() as holder, attr=name)) if function.is_self(holder):
                receiver = holder.id
            case _:
                continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found = finding_at(function, node, f"{function.name} calls {receiver}.{name}, which does not exist{hint}")
            yield dataclasses.replace(
                found, is_confirmed=True, fix=f"Call a method that the base has, or write `{name}` in the class."
            )


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the methods of the layer as they are after the class was imported and set up."""
    evidence.scenario("setup")
    findings = [
        finding_in("setup", place, f"{name} of the layer is replaced by code that does not call it")
        for name, place in evidence.cls.replaced
    ]
    return Verdict.of(one_per_place(findings), "no method of the layer is replaced")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=("setup",))
