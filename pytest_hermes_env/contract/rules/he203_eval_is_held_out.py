"""HE203 eval-is-held-out
Evaluation runs on items that are never trained on, and both sets are non-empty.

What: The items of `evaluate` and those that `get_next_item` draws from do not overlap: different slices of the data, or
different splits of a dataset. No prompt of the evaluation is the prompt of a training item, unless the items differ in more
than their labels (the task lies in the sandbox). `evaluate_items` runs on
`get_eval_items()`, which returns `self.eval_items` by default.

Why: An evaluation on training items measures memory. The curve rises while the model memorises the answers, and the
checkpoint that it selects is the one that overfits most.

Fix: `self.eval_items, self.train_items = rows[:n], rows[n:]` with `0 < n < len(rows)`: evaluate the first, train on the
second.

Source: The guide of upstream's environments: "split train and evaluation (at least 20 items or a tenth)";
`environments.hermes_base_env`, `get_eval_items`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.same_item import is_same_task
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.source import (
    LAYER_EVALUATION,
    Call,
    ClassSource,
    Frame,
    Function,
    argument,
    calls_layer,
    data_flow,
    finding_at,
    last_name,
    resolve,
)
from pytest_hermes_env.source.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_COPIES = frozenset({"list", "tuple", "deque", "copy", "deepcopy", "sorted", "reversed", "iter", "cycle", "set", "shuffled"})
_WALKS = frozenset({"enumerate", "tqdm", "zip", "map", "islice", "as_completed", "batched", *_COPIES})
_PICKS = frozenset({"choice", "next", "sample", "popleft", "pop"})
_DEEPEST = 6


@dataclass(frozen=True, kw_only=True)
class Portion:
    """Rows: all of ``root``, or the slice of it from ``start`` to ``stop`` (as they are written)."""

    root: str
    start: str = ""
    stop: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is all rows."""
        return not self.start and not self.stop


@dataclass(frozen=True, kw_only=True)
class Use:
    """A place that goes through an attribute of self, or draws from it."""

    attribute: str
    part: Portion
    function: Function
    node: ast.AST
    is_single: bool = False
    """Whether it takes single rows, by an index of its own."""


def static(source: ClassSource) -> Verdict:
    """Look at the attributes that both draw from, and at how setup made them."""
    drawing = source.methods.get("get_next_item")
    if drawing is None or source.methods.get("evaluate") is None:
        return Verdict.undecided("get_next_item and evaluate cannot both be read")
    if _gives_nothing(drawing):
        return Verdict.not_applicable("get_next_item returns no training items")
    collecting = source.methods.get("collect_trajectories")
    if collecting is not None and _gives_nothing(collecting) and not any(map(_awaits, collecting.own_nodes())):
        return Verdict.not_applicable("collect_trajectories returns nothing to train on")
    training = list(_uses(_frames(source, "get_next_item"), _drawn))
    evaluation = list(_evaluated(source)) or [
        replace(use, is_single=True) for use in _uses(_frames(source, "evaluate"), _drawn)
    ]
    if not training or not evaluation:
        return Verdict.undecided(
            f"which rows {'evaluate iterates over' if training else 'get_next_item takes'} is not visible in the source"
        )
    made = _definitions(source)
    answers = [(use, other, _relation(use, other, made)) for use in evaluation for other in training]
    for use, other, answer in answers:
        if answer is True:
            what = f"self.{use.attribute}"
            if use.attribute != other.attribute:
                what += f", which shares rows with self.{other.attribute}"
            return Verdict.failed(
                [
                    finding_at(
                        use.function, use.node, f"evaluate iterates over {what}, from which get_next_item takes training items"
                    )
                ]
            )
    if any(answer is None for _, _, answer in answers):
        return Verdict.undecided("whether the rows of training and evaluation overlap is known only at run time")
    return Verdict.passed("training and evaluation take different rows")


def _evaluated(source: ClassSource) -> Iterator[Use]:
    """Yield what evaluate goes through, by itself, through get_eval_items, or through the layer's evaluate_items."""
    frames = _frames(source, "evaluate")
    yield from _uses(frames, _walked)
    for frame in frames:
        for call in frame.calls:
            items = argument(call.node, 0, "items")
            is_evaluation = calls_layer(call, {LAYER_EVALUATION})
            if call.name == "get_eval_items" or (is_evaluation and (items is None or _is_none(items))):
                yield from _held_out(source, call)
            elif is_evaluation and items is not None:
                yield from _uses_of(items, call.function)


def _uses_of(node: ast.expr, function: Function) -> Iterator[Use]:
    for part in _inside(node):
        yield from _use_of(part, function)


def _use_of(node: ast.expr, function: Function) -> Iterator[Use]:
    if (portion := _portion_of_self(node, function)) is not None:
        yield Use(attribute=portion.root, part=portion, function=function, node=node)


def _held_out(source: ClassSource, call: Call) -> Iterator[Use]:
    """Yield what get_eval_items returns: by default self.eval_items."""
    method = source.methods.get("get_eval_items")
    if method is None:
        yield Use(attribute="eval_items", part=Portion(root="eval_items"), function=call.function, node=call.node)
        return
    for node in method.own_nodes():
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _uses_of(node.value, method)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _gives_nothing(function: Function) -> bool:
    """Whether a method only ever gives None, as evaluation-only benchmarks do."""
    returns = [node.value for node in function.own_nodes() if isinstance(node, ast.Return)]
    raises = any(isinstance(node, ast.Raise) for node in function.node.body)
    return raises or all(value is None or _is_nothing(value) for value in returns)


def _is_nothing(value: ast.expr) -> bool:
    """Whether an expression is None, an empty list, or a pair of these."""
    if isinstance(value, ast.Tuple | ast.List):
        return all(map(_is_nothing, value.elts))
    return isinstance(value, ast.Constant) and value.value is None


def _awaits(node: ast.AST) -> bool:
    return isinstance(node, ast.Await | ast.Try)


def _frames(source: ClassSource, name: str) -> tuple[Frame, ...]:
    start = data_flow(source).method(name)
    stops = (
        "compute_reward",
        "setup",
        "collect_trajectory",
        "collect_trajectories",
        "format_prompt",
        "wandb_log",
        "get_eval_items",
    )
    return data_flow(source).reached_without(start, *stops) if start else ()


def _uses(frames: Iterable[Frame], find: Callable[[ast.AST], Iterator[ast.expr]]) -> Iterator[Use]:
    for function in dict.fromkeys(frame.function for frame in frames):
        for node in ast.walk(function.node):
            for found in find(node):
                yield from _use_of(found, function)


def _drawn(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node takes an item from."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
        yield node.value
    elif isinstance(node, ast.Call) and last_name(node.func) in _PICKS:
        yield from node.args[:1]
        if isinstance(node.func, ast.Attribute) and last_name(node.func) in {"pop", "popleft"}:
            yield node.func.value


def _walked(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node goes through."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _inside(node.iter)
    elif isinstance(node, ast.Call) and last_name(node.func) == "map":
        yield from (part for item in node.args[1:] for part in _inside(item))


def _inside(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and last_name(node.func) in _WALKS:
        for item in node.args:
            yield from _inside(item)
    else:
        yield node


def _portion_of_self(node: ast.expr, function: Function) -> Portion | None:
    """Return the attribute of self that an expression is, or is a slice of; local names are followed once."""
    if isinstance(node, ast.Name):
        bound = [item.value for item in function.own_nodes() if isinstance(item, ast.Assign) and _is_target(item, node.id)]
        return _portion_of_self(bound[0], function) if len(bound) == 1 and not isinstance(bound[0], ast.Name) else None
    start = stop = ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        if node.slice.step is not None:
            return None
        start, stop = _written(node.slice.lower), _written(node.slice.upper)
        node = node.value
    attribute = _attribute_of_self(node, function)
    return Portion(root=attribute, start=start, stop=stop) if attribute else None


def _attribute_of_self(node: ast.expr, function: Function) -> str:
    """Return the attribute of self that an expression is, or an empty string."""
    holder = node.value if isinstance(node, ast.Attribute) else None
    is_own = isinstance(holder, ast.Name) and function.positional[:1] == (holder.id,)
    return node.attr if isinstance(node, ast.Attribute) and is_own else ""


def _is_target(node: ast.Assign, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in node.targets)


def _written(node: ast.expr | None) -> str:
    return "" if node is None or (isinstance(node, ast.Constant) and node.value in (0, None)) else ast.unparse(node)


def _definitions(source: ClassSource) -> dict[str, list[Portion | None]]:
    """Return, for each attribute that setup or the constructor sets, the rows that it is given; None for what is computed."""
    found: dict[str, list[Portion | None]] = {}
    functions = dict.fromkeys(frame.function for frame in data_flow(source).reached("__init__", "setup"))
    for function in functions:
        for node in ast.walk(function.node):
            for target, value in _assigned(node):
                if attribute := _attribute_of_self(target, function):
                    found.setdefault(attribute, []).append(_portion(value, function, 0) if value is not None else None)
    return found


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _paired(one, other)
    else:
        yield from ((item, None) for item in target.elts)


def _portion(node: ast.expr, function: Function, depth: int) -> Portion | None:
    """Return the rows that an expression is, as far as they can be named."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        inner = _portion(node.value, function, depth + 1)
        if inner is None or not inner.is_whole or node.slice.step is not None:
            return None
        return Portion(root=inner.root, start=_written(node.slice.lower), stop=_written(node.slice.upper))
    if isinstance(node, ast.Call):
        if last_name(node.func) in _COPIES and len(node.args) == 1:
            return _portion(node.args[0], function, depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            return _portion(node.func.value, function, depth + 1)
        if last_name(node.func) == "load_dataset":
            return Portion(root=ast.unparse(node))
        return None
    if isinstance(node, (ast.List, ast.Tuple)):
        return Portion(root=f"literal {node.lineno}:{node.col_offset}")
    if isinstance(node, ast.Name):
        bound = [
            value for item in function.own_nodes() for target, value in _assigned(item) if getattr(target, "id", "") == node.id
        ]
        if len(bound) == 1 and bound[0] is not None:
            inner = _portion(bound[0], function, depth + 1)
            return inner or Portion(root=f"{function.name}.{node.id}")
        if bound:
            return Portion(root=f"{function.name}.{node.id}")
        return Portion(root=node.id) if resolve(function.module, node) is None else None
    return Portion(root=ast.unparse(node)) if isinstance(node, ast.Attribute) else None


def _relation(use: Use, other: Use, made: dict[str, list[Portion | None]]) -> bool | None:
    """Whether evaluation and training share rows: certainly (True), certainly not (False), or nobody can tell (None)."""
    if use.attribute == other.attribute:
        return True if use.part.is_whole and not use.is_single else None
    left, right = made.get(use.attribute, []), made.get(other.attribute, [])
    if len(left) != 1 or len(right) != 1 or left[0] is None or right[0] is None:
        return None
    return _overlap(left[0], right[0])


def _overlap(left: Portion, right: Portion) -> bool | None:
    if left.root != right.root:
        both = left.root + right.root
        are_known = all(
            part.root.startswith(("literal ", "load_dataset")) or "load_dataset(" in part.root for part in (left, right)
        )
        return False if are_known and both else None
    if left.is_whole or right.is_whole or left == right:
        return True
    if (left.stop and left.stop == right.start) or (right.stop and right.stop == left.start):
        return False
    if not left.start and not right.start:
        return True
    return True if not left.stop and not right.stop and not (left.start and right.start) else None


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the prompts of the evaluation with those of the training items."""
    items, evaluation = evidence.scenario("items"), evidence.scenario("evaluate")
    if evidence.collection.nothing_to_train:
        return Verdict.not_applicable(evidence.collection.nothing_to_train)
    if missing := evidence.without_items():
        return missing
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    trained = [item for item in items.items if isinstance(item.prompt, str) and item.prompt]
    asked = dict.fromkeys(_prompt(request) for request in evaluation.requests if request.get("tools"))
    asked.pop("", None)
    if evidence.is_own("get_eval_items"):
        asked |= dict.fromkeys(item.prompt for item in items.held_out if isinstance(item.prompt, str) and item.prompt)
    if not trained or not asked:
        reason = evaluation.error or "no prompt of training or of evaluation was seen"
        acceptable_gap = bool(evaluation.requests) and not evaluation.error
        return Verdict.not_exercised(reason, "HE705", "HE701", "HE204", acceptable_gap=acceptable_gap)
    evaluated = [reward.item for reward in evaluation.of(Reward)] or [item.value for item in items.held_out]
    answers = {prompt: _is_trained_on([item.value for item in trained if item.prompt == prompt], evaluated) for prompt in asked}
    shared = [prompt for prompt, answer in answers.items() if answer]
    if not shared and None in answers.values():
        return Verdict.not_exercised(
            "different training items have the same prompt, so prompts cannot show whether evaluation uses them",
            acceptable_gap=True,
        )
    if not shared:
        prompts = {item.prompt for item in trained}
        return Verdict.passed(
            f"{len(asked)} evaluation prompts, no item of them among those of {len(prompts)} training prompts"
        )
    message = f"{len(shared)} of {len(asked)} evaluation prompts are training prompts"
    return Verdict.failed([evidence.finding(message, "get_eval_items", "evaluate", seen=shared[0][:120], scenario="evaluate")])


def _is_trained_on(trained: list[object], evaluated: list[object]) -> bool | None:
    """Whether evaluation uses one of the training items of a prompt; None where several are possible and nobody can tell."""
    if evaluated:
        return any(is_same_task(item, other) for item in trained for other in evaluated)
    is_one = all(is_same_task(trained[0], item) for item in trained[1:])
    return bool(trained) if is_one else None


def _prompt(request: dict[str, object]) -> str:
    """Return the first user message of a request."""
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            return content if isinstance(content, str) else ""
    return ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=("items", "evaluate"))
