"""HE205 split-is-seeded
Shuffles are seeded, and module-level lists are not shuffled in place.

What: In `setup`, in the constructor and in code that they call, whatever shuffles or samples has a seed:
`random.Random(42)`, `numpy.random.default_rng(42)`, `dataset.shuffle(seed=42)`, `train_test_split(random_state=42)`. A
list that the module defines is copied before it is shuffled.

Why: Without a seed the evaluation items differ in every run and in every worker: scores cannot be compared, and after a
restart the environment trains on the items that it is evaluated on. Shuffling a module-level list in place reorders it
for all other code in the process, and for the second environment of a test.

Fix: `rows = list(ROWS); random.Random(42).shuffle(rows)`.

Source: Python's documentation, "random": the module's functions share one generator, seeded from the system's clock or
entropy; `datasets.Dataset.shuffle(seed=None)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    ClassSource,
    External,
    Function,
    class_of,
    data_flow,
    finding_at,
    keyword,
    last_name,
    resolve,
    sorted_findings,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_hermes_env.source import Module

_SHUFFLES = frozenset({"shuffle", "sample", "permutation", "permuted"})
_SPLITS = frozenset({"train_test_split", "random_split", "KFold", "ShuffleSplit"})
_GENERATORS = frozenset({"Random", "RandomState", "default_rng", "Generator", "SystemRandom"})
_SEEDS = frozenset({"seed", "set_seed", "manual_seed", "seed_everything"})
_SHARED = frozenset({"random", "numpy.random", "np.random"})
_CHANGING = frozenset(
    {"id", "time.time", "time.time_ns", "time.monotonic", "time.perf_counter", "os.getpid", "os.urandom", "uuid.uuid1", "uuid.uuid4",
     "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today", "secrets.randbits", "secrets.randbelow",
     "random.random", "random.randint", "random.getrandbits"}
)  # fmt: skip
"""Calls whose result is another one in every process."""


def static(source: ClassSource) -> Verdict:
    """Look at every shuffle that setup and the constructor reach."""
    frames = data_flow(source).reached("__init__", "setup")
    if not frames:
        return Verdict.undecided("there is no setup to read")
    is_seeded = any(_seeds(node, frame.function.module) for frame in frames for node in frame.function.own_nodes()) or any(
        _seeds(node, module) for module in source.modules for node in _at_module_level(module)
    )
    findings: list[Finding] = []
    count = 0
    for function in dict.fromkeys(frame.function for frame in frames):
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Call):
                continue
            what = _shuffled(node, function)
            if what is None:
                continue
            count += 1
            if not is_seeded and not _has_seed(node, function):
                findings.append(finding_at(function, node, f"{what} has no fixed seed: the split differs in every run"))
            names = [name for given in _given(node) if (name := _of_module(given, function))]
            findings += [finding_at(function, node, f"{what} shuffles the module-level list {name} in place") for name in names]
    return Verdict.of(sorted_findings(findings), f"{count} seeded shuffles" if count else "nothing is shuffled")


def _at_module_level(module: Module) -> Iterator[ast.AST]:
    for statement in module.tree.body:
        if isinstance(statement, ast.Expr):
            yield statement.value


def _seeds(node: ast.AST, module: Module) -> bool:
    """Whether a call seeds the shared generator with something."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _SEEDS or not (node.args or node.keywords):
        return False
    holder = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_known = holder is None or _dotted(holder, module) in {*_SHARED, "torch", "transformers", "pytorch_lightning"}
    return is_known and not any(_changes(given, module) for given in [*node.args, *(word.value for word in node.keywords)])


def _changes(seed: ast.expr, module: Module) -> bool:
    """Whether a seed is another one in every process: made of the time, of random numbers, or of the hash of a text."""
    for node in ast.walk(seed):
        if isinstance(node, ast.Call):
            name = _dotted(node.func, module) or (ast.unparse(node.func) if isinstance(node.func, ast.Name) else "")
            if name.removeprefix("builtins.") in _CHANGING:
                return True
            if name.removeprefix("builtins.") == "hash" and any(map(_is_text, node.args)):
                return True
    return False


def _is_text(node: ast.expr) -> bool:
    """Whether an expression makes, or contains, a text, whose hash depends on the process."""
    if isinstance(node, ast.Tuple):
        return any(map(_is_text, node.elts))
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.Call):
        return last_name(node.func) in {"str", "repr", "join", "format", "lower", "strip"}
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _shuffled(node: ast.Call, function: Function) -> str | None:
    """Return the name of the shuffle or split that a call is, None when it is none."""
    dotted = _dotted(node.func, function.module)
    name = dotted.rpartition(".")[2] or last_name(node.func)
    if name in _SPLITS:
        return f"{name}()"
    if name not in _SHUFFLES:
        return None
    if isinstance(node.func, ast.Name):
        return f"{name}()" if dotted.rpartition(".")[0] in {"random", "numpy.random"} else None
    holder = _dotted(node.func.value, function.module) if isinstance(node.func, ast.Attribute) else ""
    if name == "shuffle" or holder in _SHARED or _generator(node.func, function) is not None:
        return f"{holder}.{name}()" if holder in _SHARED else f"{name}()"
    return None


def _has_seed(node: ast.Call, function: Function) -> bool:
    for word in ("seed", "random_state", "generator", "rng"):
        given = keyword(node, word)
        if given is not None:
            return _is_seed(given, function.module)
    if any(word.arg is None for word in node.keywords):
        return True
    name = last_name(node.func)
    if name in _SPLITS:
        off = keyword(node, "shuffle")
        return isinstance(off, ast.Constant) and off.value is False
    if not isinstance(node.func, ast.Attribute):
        return False
    if _dotted(node.func.value, function.module) in _SHARED:
        return False
    made = _generator(node.func, function)
    if made is not None:
        return any(_is_seed(given, function.module) for given in [*made.args[:1], *(word.value for word in made.keywords)])
    return name != "shuffle" or bool(node.args)  # dataset.shuffle() has none; other generators come from elsewhere


def _is_seed(given: ast.expr, module: Module) -> bool:
    return not (isinstance(given, ast.Constant) and given.value is None) and not _changes(given, module)


def _generator(func: ast.expr, function: Function) -> ast.Call | None:
    """Return the construction of the generator that a method is called on, where it can be seen."""
    if not isinstance(func, ast.Attribute):
        return None
    holder = func.value
    if isinstance(holder, ast.Call) and last_name(holder.func) in _GENERATORS:
        return holder
    if isinstance(holder, (ast.Name, ast.Attribute)):
        word = last_name(holder)
        owner_class = class_of(function.owner, function.module) if function.owner else None
        owners = [function.node, *(item.node for item in owner_class.own_methods.values())] if owner_class else [function.node]
        for owner in owners:
            for node in ast.walk(owner):
                made = (
                    node.value
                    if isinstance(node, ast.Assign) and any(last_name(item) == word for item in node.targets)
                    else None
                )
                if isinstance(made, ast.Call) and last_name(made.func) in _GENERATORS:
                    return made
    return None


def _given(node: ast.Call) -> list[ast.expr]:
    return node.args[:1] if last_name(node.func) == "shuffle" else []


def _of_module(node: ast.expr, function: Function) -> str:
    """Return the name of the module's list that an expression is, also by way of a local name; nothing for a copy."""
    for _ in range(4):
        if not isinstance(node, ast.Name):
            return ""
        bound = [item.value for item in function.own_nodes() if isinstance(item, ast.Assign) and _binds(item, node.id)]
        if not bound:
            break
        if len(bound) != 1:
            return ""
        node = bound[0]
    arguments = function.node.args
    if not isinstance(node, ast.Name) or any(item.arg == node.id for item in (*arguments.posonlyargs, *arguments.args)):
        return ""
    return node.id if node.id in function.module.names else ""


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in node.targets)


def _dotted(node: ast.expr, module: Module) -> str:
    target = resolve(module, node)
    return target.dotted if isinstance(target, External) else ""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at whether a second setup gave the same items in the same order."""
    scenario = evidence.scenario("setup_again")
    if not scenario.happened:
        return Verdict.not_exercised(scenario.unavailable)
    if scenario.error and not scenario.items:
        reason = f"the second setup, or get_next_item after it, failed: {scenario.error}"
        return Verdict.not_exercised(reason, "HE202", acceptable_gap=bool(evidence.scenario("items").items))
    if missing := evidence.without_items():
        return missing
    first = evidence.scenario("items").items[: len(scenario.items)]
    again = scenario.items[: len(first)]
    if not again:
        return Verdict.not_exercised("get_next_item returned None after the second setup", "HE202")
    is_told = _tell_apart(item.prompt for item in (*first, *again))
    differs = any(one.prompt != two.prompt if is_told else one.key != two.key for one, two in zip(first, again, strict=True))
    message = "a second setup returned different training items, or a different order"
    findings = [evidence.finding(message, "setup", scenario="setup_again")] if differs else []
    return Verdict.of(findings, f"two setups returned the same {len(first)} items in the same order")


def _tell_apart(prompts: Iterable[object]) -> bool:
    """Tell whether prompts tell items apart: then an id that an item gets anew each time is no difference."""
    every = list(prompts)
    return all(isinstance(prompt, str) for prompt in every) and len(set(every)) > 1


RULE = Rule(
    doc=__doc__,
    severity=Severity.WARNING,
    static=static,
    dynamic=dynamic,
    scenarios=("items", "setup_again"),
    holds_for_base_env=True,
)
