"""HE204 prompt-is-text
`format_prompt` returns a non-empty string and does not change the item.

What: Each return of `format_prompt` is a non-empty `str`. The method changes neither the item nor anything in it. It does not cut long items to a
constant number of entries or characters without a word, unless `prepare_sandbox` may give the agent the rest.

Why: The prompt becomes the content of the user message. The server rejects None, a list of messages or a dict, or
passes it to a chat template that cannot render it. An empty prompt produces rollouts about nothing. A changed item is a
different item for the second rollout of its group, and for the reward. What a limit cuts off nobody can work on: short items train, long ones pay no
honest work.

Fix: Return `item["question"]` as a `str`, and work on a copy where part of the item needs preparation. Leave out items that are too long, or write
them to a file in `prepare_sandbox`, rather than show a part of them.

Source: `environments.hermes_base_env`, `HermesAgentBaseEnv.format_prompt(item) -> str` and `collect_trajectory`.
"""

from __future__ import annotations

import ast
import bisect
import dataclasses
import re

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.buffers import fields_of
from pytest_hermes_env.play.item_texts import LABEL
from pytest_hermes_env.play.scenario import ItemSeen
from pytest_hermes_env.source import ClassSource, finding_at

_NOT_TEXT = {
    ast.Dict: "a dict", ast.DictComp: "a dict", ast.List: "a list", ast.ListComp: "a list", ast.Tuple: "a tuple", ast.Set: "a set",
    ast.SetComp: "a set", ast.GeneratorExp: "a generator", ast.Compare: "a bool", ast.Lambda: "a function",
}  # fmt: skip


_TOLD = re.compile(r"truncat|shorten|excerpt|omitted|first \d+|\.\.\.|\u2026", re.IGNORECASE)
"""Where a prompt says that it shows a part."""
_HIDDEN = re.compile(r"test|case|example|sample|hint|check|hidden|solution|reference|verif", re.IGNORECASE)
"""Fields of which a prompt may show a part on purpose."""
CHANGED = "format_prompt changed the item"
_CHANGES = frozenset(
    {"append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update"}
)
LEAST, SEVERAL = 40, 3
"""Characters of a text of which prompts show the beginning, and how many different ones have to be cut at the same length."""


def static(source: ClassSource) -> Verdict:
    """Look at what the return statements of format_prompt say.

    It complements the rollouts: a benchmark has no training items to ask for a prompt.
    """
    function = source.methods.get("format_prompt")
    if function is None or function.is_async:
        return Verdict.undecided("there is no format_prompt to read")
    nodes = list(function.own_nodes())
    returned = [node for node in nodes if isinstance(node, ast.Return)]
    findings = [finding_at(function, node, fault) for node in returned if (fault := _fault(node.value))]
    if not returned and not any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Raise)) for node in nodes):
        findings.append(finding_at(function, function.node, "format_prompt returns nothing; the prompt would be None"))
    return Verdict.of_source(findings, "format_prompt returns a string")


def _fault(value: ast.expr | None) -> str:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return "format_prompt must return a string, but returns None"
    if what := _NOT_TEXT.get(type(value)):
        return f"format_prompt must return a string, but returns {what}"
    if isinstance(value, ast.Constant) and not isinstance(value.value, str):
        return f"format_prompt must return a string, but returns {value.value!r}"
    return "format_prompt returns an empty string" if isinstance(value, ast.Constant) and not str(value.value).strip() else ""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what format_prompt gave for the items that were taken."""
    own = evidence.cls.methods.get("format_prompt")
    if own is not None and not own.is_callable:
        return Verdict.not_exercised("there is no method format_prompt, as HE101 reports", "HE101")
    scenario = evidence.scenario("items")
    if missing := evidence.without_items():
        return missing
    fault = next((fault for item in scenario.items if (fault := _seen(item))), "")
    if not fault and not evidence.is_own("prepare_sandbox"):
        fault = _cut([item for item in scenario.items if isinstance(item.prompt, str) and not _TOLD.search(item.prompt)])
    if not fault:
        return Verdict.passed(f"{len(scenario.items)} prompts checked")
    found = evidence.finding(fault, "format_prompt", scenario="items")
    changing = _changing(evidence.source) if fault == CHANGED else None
    if changing is not None:
        what, fix = ast.unparse(changing), "Work on a copy of the item: `copy.deepcopy(...)`."
        if isinstance(changing, ast.Call) and isinstance(changing.func, ast.Attribute) and changing.func.attr == "pop":
            place = f"{ast.unparse(changing.func.value)}[{ast.unparse(changing.args[0]) if changing.args else -1}]"
            fix = f"Write `{place}`: `{what}` takes it out of the item, which is played again."
        found = dataclasses.replace(found, line=changing.lineno, message=f"{fault}: `{what}`", fix=fix)
    return Verdict.failed([found])


def _changing(source: ClassSource | None) -> ast.expr | ast.stmt | None:
    """Return what in format_prompt changes its parameter: a call of a method that does, an assignment to a part, or `del` of one."""
    function = source.methods.get("format_prompt") if source is not None else None
    name = next(iter(function.positional_without_self), "") if function is not None else ""
    if function is None or function.values_of(name):  # it may be a copy by then
        return None
    for node in function.own_nodes():
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=called)) if called in _CHANGES and _root(value) == name:
                return node
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                if _root(target) == name:
                    return node
            case ast.Delete(targets=[ast.Subscript() as target]) if _root(target) == name:
                return node
    return None


def _root(node: ast.expr) -> str:
    """Return the name that a chain of parts begins with."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _seen(item: ItemSeen) -> str:
    if item.error:
        return f"format_prompt raised {item.error}"
    if not isinstance(item.prompt, str):
        return f"format_prompt must return a string, but returned {type(item.prompt).__name__}"
    if not item.prompt.strip():
        return "format_prompt returned an empty string"
    return CHANGED if item.is_changed else ""


def _cut(items: list[ItemSeen]) -> str:
    """Return how prompts leave out what is longer than a limit: up to it, they grow with the item, and beyond it never."""
    names = dict.fromkeys(name for item in items for name in fields_of(item.value))
    for name in [name for name in names if not (LABEL.search(name.lower()) or _HIDDEN.search(name))]:
        held = [(value, item.prompt) for item in items if (value := fields_of(item.value).get(name))]
        texts = {value: _shown(value, prompt) for value, prompt in held if isinstance(value, str)}
        shown = {text[:count] for text, count in texts.items() if LEAST <= count < len(text)}
        if len(shown) >= SEVERAL and len({*map(len, shown)}) == 1:
            return f"format_prompt shows the first {len(shown.pop())} characters of {name}, and says nothing of the rest"
        pairs = {(len(value), len(prompt.splitlines())) for value, prompt in held if isinstance(value, list | tuple)}
        lines = dict(sorted(pairs))
        beside = next((count - size for size, count in lines.items()), 0)
        limit = max(lines.values(), default=0) - beside
        longer = [size for size in lines if size > limit]
        is_limit = len(pairs) == len(lines) and all(count == min(size, limit) + beside for size, count in lines.items())
        if is_limit and len(longer) > 1 and len(lines) - len(longer) > 1:
            return f"format_prompt shows {limit} entries of {name}, and no more of {longer[-1]}: it says nothing of the rest"
    return ""


def _shown(text: str, prompt: str) -> int:
    """Return how many of a text's first characters stand in a prompt."""
    return bisect.bisect_left(range(1, len(text) + 1), True, key=lambda count: text[:count] not in prompt)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=("items",))
