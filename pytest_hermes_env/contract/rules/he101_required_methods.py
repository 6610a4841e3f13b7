"""HE101 required-methods
An environment defines `setup`, `get_next_item`, `format_prompt`, `compute_reward` and `evaluate`, itself or through
another environment.

What: The five methods exist in the class or in a class that it inherits from. Methods of the layer's own base do not
count: there they are abstract. No class body defines one of them twice: the second would take the place of the first. None is
a property, or a static method with a `self`, and no attribute of the same name hides one; `@dataclass` does not replace the constructor.

Why: Python refuses to instantiate a class with an unimplemented abstract method, and it does so only when the environment
starts: after the model server is up and the dataset is loaded. A training job fails after minutes of GPU time because
of a misspelt name.

Fix: Write the missing methods. An evaluation-only benchmark still needs `get_next_item`; it may return None. Check the
spelling of the methods that you did write.

Source: `environments.hermes_base_env.HermesAgentBaseEnv` (abstract methods); atroposlib 0.4.0, `envs/base.py`,
`BaseEnv(ABC)`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Outcome, Rule, Severity, Verdict
from pytest_hermes_env.source import REQUIRED_METHODS, ClassSource, finding_at, last_name

_NO_FUNCTIONS = (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp)
"""Values that nobody can call."""
ALSO_CALLED = ("collect_trajectories", "collect_trajectory", "prepare_sandbox", "wandb_log")
ALIKE = 0.85
"""How alike the name of a method is that was meant."""


def static(source: ClassSource) -> Verdict:
    """Look for the five methods in the class and in every base that can be read."""
    if spoilt := sorted(_spoilt(source), key=lambda one: one.line):
        return Verdict.failed(spoilt)
    if twice := [found for item in source.readable for _, found in defined_twice(item)]:
        return Verdict.failed(twice)
    if not source.missing:
        return Verdict.passed(f"{', '.join(REQUIRED_METHODS)} exist")
    names = ", ".join(source.missing)
    if source.unreadable:
        return Verdict.undecided(f"{names} may come from {source.unreadable[0]}, which cannot be read")
    verb = "is" if len(source.missing) == 1 else "are"
    found = finding_at(source, source.node, f"{names} {verb} missing")
    methods = [name for name in source.methods if name not in REQUIRED_METHODS]
    if outside := _outside(source):
        where, inside = outside
        way = (
            f"inside {inside}: move {inside} out of the class, and indent the methods behind it"
            if inside
            else "at the top of the file: indent it as a method of the class"
        )
        return Verdict.failed(
            [dataclasses.replace(found, line=where.lineno, fix=f"{source.missing[0]} stands in line {where.lineno} {way}.")]
        )
    near = difflib.get_close_matches(source.missing[0], methods, n=1, cutoff=ALIKE)
    if not near or len(source.missing) > 1:
        return Verdict.failed([found])
    written = source.methods[near[0]]
    found = finding_at(written, written.node, f"{found.message}: it is called {near[0]} here")
    return Verdict.failed([dataclasses.replace(found, fix=f"Rename {near[0]} to {source.missing[0]}.")])


def _spoilt(source: ClassSource) -> Iterator[Finding]:
    """Yield the methods that cannot be called as such: properties, static ones with a self, and those that an attribute hides."""
    for function in (source.methods[name] for name in (*REQUIRED_METHODS, *ALSO_CALLED) if name in source.methods):
        name = function.name
        for kind in sorted(function.decorators & {"property", "cached_property"}):
            found = finding_at(function, function.node, f"{name} is a {kind}, and it is called")
            yield dataclasses.replace(found, fix=f"Remove `@{kind}` above {name}.")
        if "staticmethod" in function.decorators and function.positional[:1] == ("self",):
            found = finding_at(function, function.node, f"{name} is a staticmethod, and takes self: nothing passes it")
            yield dataclasses.replace(found, fix=f"Remove `@staticmethod` above {name}.")
    for function in source.methods.values():
        for node in function.nodes:
            for target in node.targets if isinstance(node, ast.Assign) and isinstance(node.value, _NO_FUNCTIONS) else ():
                if not isinstance(target, ast.Attribute) or not function.is_self(target.value):
                    continue
                hidden = source.methods.get(target.attr)
                if hidden is not None and not hidden.decorators:
                    line = f"the method in line {hidden.node.lineno}"
                    found = finding_at(function, node, f"{function.name} sets self.{hidden.name}, which hides {line}")
                    yield dataclasses.replace(found, fix=f"Give one of the two another name than {hidden.name}.")
    for decorator in source.node.decorator_list:
        if last_name(decorator) == "dataclass" and not _keeps_constructor(decorator):
            message = f"@dataclass gives {source.name} a constructor of its own, in place of the layer's"
            found = finding_at(source, source.node, message)
            yield dataclasses.replace(found, fix="Remove `@dataclass`, and set what each environment holds in `setup`.")


def _keeps_constructor(decorator: ast.expr) -> bool:
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(one.arg == "init" and isinstance(one.value, ast.Constant) and one.value.value is False for one in given)


def _outside(source: ClassSource) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, str] | None:
    """Return where the first missing method is defined outside of every class, and inside which function."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    for top in (one for one in source.module.tree.body if isinstance(one, functions)):
        for node in (top, *(one for one in top.body if isinstance(one, functions))):
            first = [one.arg for one in node.args.args[:1]]
            if node.name == source.missing[0] and first == ["self"] and not _is_set_later(source, node.name):
                return node, "" if node is top else top.name
    return None


def _is_set_later(source: ClassSource, name: str) -> bool:
    """Tell whether the module gives a class an attribute of that name."""
    targets = [target for node in source.module.tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Attribute) and target.attr == name for target in targets)


def defined_twice(source: ClassSource) -> Iterator[tuple[str, Finding]]:
    """Yield the required methods that a class body defines once more, so that the first is never called, by name."""
    lines: dict[str, int] = {}
    for node in source.node.body:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name in REQUIRED_METHODS
            and not node.decorator_list
        ):
            between = [one for one in source.node.body if lines.get(node.name, node.lineno) < one.lineno < node.lineno]
            others = [one for one in between if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            is_kept = any(isinstance(part, ast.Name) and part.id == node.name for one in others for part in ast.walk(one))
            if (first := lines.get(node.name)) and not is_kept:
                found = finding_at(source, node, f"{node.name} is defined twice: this one takes the place of line {first}")
                yield node.name, dataclasses.replace(found, fix=f"Delete one of the two: line {first} never runs.")
            lines.setdefault(node.name, node.lineno)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the class itself: each method is there, concrete, and not the layer's stub."""
    if evidence.source is not None and (spoilt := sorted(_spoilt(evidence.source), key=lambda one: one.line)):
        return Verdict.failed(spoilt)
    missing = evidence.lacked_methods
    if not missing:
        return Verdict.passed(f"{evidence.cls.name} has {', '.join(REQUIRED_METHODS)}")
    if evidence.source is not None and (read := static(evidence.source)).outcome is Outcome.FAILED:
        return read
    message = f"{evidence.cls.name} does not define {', '.join(missing)}"
    return Verdict.failed([evidence.finding(message)])


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic)
