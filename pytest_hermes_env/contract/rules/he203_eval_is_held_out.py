"""HE203 eval-is-held-out
Evaluation runs on items that are never trained on, and both sets are non-empty.

What: The items of `evaluate` and those that `get_next_item` draws from do not overlap: different slices of the data, or
different splits of a dataset. No prompt of the evaluation is the prompt of a training item, unless the items differ in more
than their labels (the task lies in the sandbox), and no item has the answer and the input of a training item in other
words, or in another order, or with nothing but its names changed. No task of the evaluation is an example in the prompts of training. What it reads is no iterator, which the first evaluation
would use up. `evaluate_items` runs on `get_eval_items()`, which returns `self.eval_items` by default.

Why: An evaluation on training items measures memory. The curve rises while the model memorises the answers, and the
checkpoint that it selects is the one that overfits most.

Fix: `self.eval_items, self.train_items = rows[:n], rows[n:]` with `0 < n < len(rows)`: evaluate the first, train on the
second.

Source: The guide of upstream's environments: "split train and evaluation (at least 20 items or a tenth)";
`environments.hermes_base_env`, `get_eval_items`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.buffers import fields_of, picture
from pytest_hermes_env.play.held_out import prompt_in
from pytest_hermes_env.play.item_texts import LABEL, NO_LABEL
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.source import ClassSource, finding_at
from pytest_hermes_env.source.finding import Finding

_LABELS = re.compile(r"(?:.*_)?(?:ids?|idx|index|[gpqrstu]?u?id|slug|seed|split|subset|fold|weight)|(?:doc|item|task|row)id")
"""Fields that name an item and do not change the task."""
_NAMES = re.compile(r"(?:.*_)?(?:name|number|job|title|ticket|case|key|code|run|batch|order)")
"""Fields that may do nothing but name it, where all others are the same."""
_WORDING = re.compile(
    r"prompt|question|instruction|wording|message|request|description|statement|(?:^|_)(?:task|text|title|name|id)$"
)
"""Fields that ask for a task."""
_WORD = re.compile(r"[A-Za-z]\w*")
_KEY = "\0"
DEEPEST = 6
RARE, SEVERAL, NEARLY_ALL = 2, 8, 0.85
"""In how many training items a value stands that tells which it is, and how many of them, and which part, show that two items are one."""
LEAST = 40
"""The length of what is left of an item without its names, from which on two that are equal are no coincidence."""


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the prompts of the evaluation with those of the training items."""
    items, evaluation = evidence.scenario("items"), evidence.scenario("evaluate")
    if evidence.collection.nothing_to_train:
        return Verdict.not_applicable(evidence.collection.nothing_to_train)
    if missing := evidence.without_items():
        return missing
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    if (found := _used_up(evidence.source)) is not None:
        return Verdict.failed([found])
    trained = [item for item in items.items if isinstance(item.prompt, str) and item.prompt]
    asked = dict.fromkeys(prompt_in(request) for request in evaluation.requests if request.get("tools"))
    asked.pop("", None)
    if evidence.is_own("get_eval_items"):
        asked |= dict.fromkeys(item.prompt for item in items.held_out if isinstance(item.prompt, str) and item.prompt)
    if not trained or not asked:
        reason = evaluation.error or "no prompt of training or of evaluation was seen"
        return Verdict.not_exercised(reason, "HE705", "HE701", "HE204")
    rewarded = [reward.item for reward in evaluation.of(Reward)]
    by_prompt = evaluation.held_out if len(evaluation.held_out) <= len(asked) else ()  # else several items have one prompt
    evaluated = rewarded or [item.value for item in items.held_out or by_prompt]
    answers = {prompt: _is_trained_on([item.value for item in trained if item.prompt == prompt], evaluated) for prompt in asked}
    shared = [prompt for prompt, answer in answers.items() if answer]
    twins = _twins(evaluated, [item.value for item in items.items])
    if not shared and twins * 2 >= len(evaluated) > 0:
        message = f"{twins} of {len(evaluated)} held-out items are training items with other names, wordings or order"
        return Verdict.failed([evidence.finding(message, "get_eval_items", "setup", "evaluate", scenario="evaluate")])
    shown = _shown([prompt for prompt in asked if answers[prompt] is False], [item.prompt for item in trained])
    if not shared and shown:
        message = f"{len(shown)} of {len(asked)} tasks of the evaluation stand in prompts of training, as examples do"
        found = evidence.finding(message, "format_prompt", "evaluate", seen=shown[0][:120], scenario="evaluate")
        fix = "Take examples from training items, and leave out the one that is asked."
        return Verdict.failed([dataclasses.replace(found, fix=fix)])
    if not shared and None in answers.values():
        return Verdict.not_exercised(
            "different training items have the same prompt, so prompts cannot show whether evaluation uses them",
        )
    if not shared:
        prompts = {item.prompt for item in trained}
        return Verdict.passed(
            f"{len(asked)} evaluation prompts, no item of them among those of {len(prompts)} training prompts"
        )
    message = f"{len(shared)} of {len(asked)} evaluation prompts are training prompts"
    found = evidence.finding(message, "get_eval_items", "evaluate", seen=shared[0][:120], scenario="evaluate")
    methods = evidence.source.methods if evidence.source is not None else {}
    stored = [(one.path, node.lineno) for one in methods.values() for node in one.own_nodes() if _is_stored(node)]
    path, line = stored[0] if stored and "get_eval_items" not in methods else (found.path, found.line)
    return Verdict.failed([dataclasses.replace(found, path=path, line=line)])


def _used_up(source: ClassSource | None) -> Finding | None:
    """Return that the evaluation reads an iterator which setup made, and nothing makes again: it is empty from the second evaluation on."""
    methods = source.methods if source is not None else {}
    nodes = {name: [*function.own_nodes()] for name, function in methods.items()}
    read = {
        node.attr
        for name in ("evaluate", "get_eval_items")
        for node in nodes.get(name, ())
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_self(node.value)
    }
    for name, function in methods.items():
        made_elsewhere = {
            node.attr
            for other, found in nodes.items()
            for node in (found if other != name else ())
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        for node in nodes[name] if name in {"setup", "__init__"} else ():
            targets = node.targets if isinstance(node, ast.Assign) and _is_iterator(node.value) else []
            held = [one.attr for one in targets if isinstance(one, ast.Attribute) and _is_self(one.value)]
            for attribute in {*held} & {*read, "eval_items"} - made_elsewhere:
                message = f"self.{attribute} is an iterator: the first evaluation uses it up, and each later one has no items"
                fix = f"Hold a list: `self.{attribute} = list(...)`."
                return dataclasses.replace(finding_at(function, node, message), fix=fix)
    return None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_iterator(value: ast.expr) -> bool:
    names = {"filter", "map", "zip", "iter", "enumerate", "reversed"}
    is_called = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in names
    return is_called or isinstance(value, ast.GeneratorExp)


def _shown(asked: list[str], trained: list[str]) -> list[str]:
    """Return the tasks of evaluation prompts that most prompts of training have as a block.

    A task begins and ends with the lines that other prompts of the evaluation have not, or have less often: examples stand in all of these, too.
    """
    rows = [[line.strip() for line in prompt.splitlines() if line.strip()] for prompt in asked]
    common = functools.reduce(operator.and_, map(Counter, rows)) if len(rows) > 1 else Counter()
    known = ["\n".join(["", *(line.strip() for line in prompt.splitlines() if line.strip()), ""]) for prompt in trained]
    found = []
    for lines in rows:
        last = {line: place for place, line in enumerate(lines)}
        places = [last[line] for line in Counter(lines) - common]
        block = "\n".join(lines[min(places) : max(places) + 1]) if places else ""
        if len(block) >= LEAST and sum(f"\n{block}\n" in prompt for prompt in known) * 2 > len(known):
            found.append(block)
    return found


def _is_stored(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Tell whether a node sets the attribute that `evaluate_items` reads."""
    return isinstance(node, ast.Attribute) and node.attr == "eval_items" and isinstance(node.ctx, ast.Store)


def _twins(evaluated: list[Any], trained: list[Any]) -> int:
    """Return how many held-out items are training items but for the fields that name them, their wording, or their order."""
    leaves = [frozenset(_leaves(item)) for item in trained]
    often = Counter(leaf for found in leaves for leaf in found)
    where: dict[str, list[int]] = {}
    for number, found in enumerate(leaves):
        for leaf in found:
            if often[leaf] <= RARE:
                where.setdefault(leaf, []).append(number)
    known = {_without_names(item) for item in trained}
    same = _same_for_all(trained)
    works = {work for item in trained for work in _works(item, same)}
    renamed = Counter(_renamed(item, same) for item in trained)
    return sum(
        (bool(told := _renamed(item, same)) and 0 < renamed[told] <= RARE)
        or (len(text := _without_names(item)) >= LEAST and text in known)
        or not works.isdisjoint(_works(item, same))
        or any(_is_same_answer(item, trained[number]) for number in _nearly_all_of(item, where, often))
        for item in evaluated
    )


def _leaves(value: Any, depth: int = DEEPEST) -> Iterator[str]:
    """Yield the numbers and texts in an item, wherever they stand."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield repr(value)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        yield from (leaf for part in value for leaf in _leaves(part, depth - 1))
    elif depth and (fields := fields_of(value)):
        yield from (leaf for name, part in fields.items() if not _is_label(name) for leaf in _leaves(part, depth - 1))


def _renamed(item: Any, same: set[str]) -> tuple[str, ...]:
    """Return an item with the words that come again in it, and keys inside of it, numbered as they come: its names, whatever they are.

    Empty for one of few numbers, which come again by chance; those in fields that are the ``same`` for all items tell nothing.
    """
    parts = {name: [*_words(part)] for name, part in fields_of(item).items() if not _is_label(name)}
    found = [leaf for leaves in parts.values() for leaf in leaves]
    told = [leaf for name, leaves in parts.items() if name not in same for leaf in leaves]
    numbers = [leaf for leaf in told if leaf[-1:].isdecimal() and not _WORD.search(leaf)]
    often = Counter(word for leaf in found for word in _WORD.findall(leaf.removeprefix(_KEY)))
    often.update(word for leaf in found if leaf.startswith(_KEY) for word in [leaf[1:], leaf[1:]])
    names: dict[str, str] = {}

    def named(word: re.Match[str]) -> str:
        return names.setdefault(word[0], f"w{len(names)}") if often[word[0]] > 1 else word[0]

    is_told = len(numbers) >= SEVERAL and len({*numbers}) * 2 >= SEVERAL
    return tuple(_WORD.sub(named, leaf) for leaf in found) if is_told else ()


def _words(value: Any, depth: int = DEEPEST) -> Iterator[str]:
    """Yield keys, numbers and texts as they stand in a part of an item; keys behind a sign."""
    parts = fields_of(value) if not isinstance(value, str | int | float | list | tuple) else {}
    for key, part in parts.items() if depth else ():
        yield f"{_KEY}{key}"
        yield from _words(part, depth - 1)
    if isinstance(value, list | tuple) and depth:
        yield from (word for part in value for word in _words(part, depth - 1))
    elif not parts and isinstance(value, str | int | float):
        yield str(value)


def _nearly_all_of(item: Any, where: Mapping[str, list[int]], often: Counter[str]) -> list[int]:
    """Return the training items of which each has nearly all that the item does not share with several of them."""
    rare = {leaf for leaf in _leaves(item) if often[leaf] <= RARE}
    shared = Counter(number for leaf in rare for number in where.get(leaf, ()))
    return [number for number, count in shared.items() if len(rare) >= SEVERAL and count >= NEARLY_ALL * len(rare)]


def _is_same_answer(one: Any, other: Any) -> bool:
    """Tell whether two items have one long answer; or a short one, or none, and all else that tells tasks apart is the same, in whatever order."""
    mine, others = fields_of(one), fields_of(other)
    answers = [name for name in mine if LABEL.search(name.lower()) and not NO_LABEL.search(name.lower())]
    rest = [name for name in mine if not (_is_label(name) or _NAMES.fullmatch(name.lower()) or _WORDING.search(name.lower()))]
    is_long = bool(answers) and len(repr([mine[name] for name in answers])) >= LEAST
    told = answers if is_long else rest
    return bool(told) and all(sorted(_leaves(mine[name])) == sorted(_leaves(others.get(name))) for name in told)


def _same_for_all(items: list[Any]) -> set[str]:
    """Return the fields that are the same for all items."""
    values: dict[str, set[str]] = {}
    for item in items:
        for name, value in fields_of(item).items():
            values.setdefault(str(name), set()).add(repr(picture(value)))
    return {name for name, found in values.items() if len(found) == 1}


def _works(item: Any, same: set[str]) -> set[tuple[tuple[str, str], ...]]:
    """Return the long answers of an item with each long input: they are one task, however it is asked for. Empty without both."""
    long = {str(name): text for name, value in fields_of(item).items() if len(text := repr(picture(value))) >= LEAST}
    own = {name: text for name, text in long.items() if name not in same and not _WORDING.search(name.lower())}
    answers = {name for name in own if LABEL.search(name.lower()) and not NO_LABEL.search(name.lower())}
    told = sorted((name, own[name]) for name in answers)
    return {(*told, (name, text)) for name, text in own.items() if name not in answers} if told else set()


def _without_names(item: Any) -> str:
    telling = {
        name: value for name, value in fields_of(item).items() if not (_is_label(name) or _NAMES.fullmatch(name.lower()))
    }
    return repr(sorted((name, repr(picture(value))) for name, value in telling.items())) if len(telling) > 1 else ""


def _is_trained_on(trained: list[object], evaluated: list[object]) -> bool | None:
    """Whether evaluation uses one of the training items of a prompt; None where several are possible and nobody can tell."""
    if evaluated:
        return any(is_same_task(item, other) for item in trained for other in evaluated)
    is_one = all(is_same_task(trained[0], item) for item in trained[1:])
    return bool(trained) if is_one else None


def is_same_task(one: Any, other: Any) -> bool:
    """Whether two items are one task: the fields that both items have are equal, but for their labels; where they share no other field, all of them."""
    mine, others = _fields(one), _fields(other)
    common = [name for name in mine if name in others]
    telling = [name for name in common if not _is_label(name)]
    return bool(common) and all(repr(picture(mine[name])) == repr(picture(others[name])) for name in telling or common)


def _fields(item: Any) -> Mapping[Any, Any]:
    if isinstance(item, Mapping):
        return item
    return getattr(item, "__dict__", None) or {"": item}


def _is_label(name: object) -> bool:
    return isinstance(name, str) and _LABELS.fullmatch(name.lower()) is not None


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=("items", "evaluate"))
