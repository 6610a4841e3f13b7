"""HE406 judge-falls-back
`compute_reward` returns a number when its judge fails, times out or answers garbage.

What: A call of a judge in `compute_reward` (`self.server.chat_completion` and similar) is in a `try` with a handler, in
its own method or in one that calls it. While the judge answers text without a score, JSON whose values are null, or no
text at all, or every call to it fails, `compute_reward` returns a finite number.

Why: Judges are remote. They time out, hit rate limits, and answer "As an AI, I cannot" one time in a hundred. Without a
fallback each of these becomes an exception in `compute_reward`, which the trainer sees as 0.0: good work is punished at
random, and an hour of outage teaches the model that nothing is worth doing.

Fix: Put the call and the parsing of its answer into one `try`, and return a heuristic score in the handler, such as the
overlap of the answer's words with the expected ones. Log it: an outage must be visible.

Source: The environment guide's judge pattern (always a heuristic fallback); atroposlib 0.4.0, `ServerManager`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict, one_per_place
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.unavailable import Cause
from pytest_hermes_env.source import (
    Call,
    ClassSource,
    Frame,
    Function,
    argument,
    calls_in,
    constant_value,
    data_flow,
    finding_at,
    last_name,
    resolve,
    unresolved_calls,
)
from pytest_hermes_env.source.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUESTIONS = frozenset({"acompletion", "chat_completion", "completion", "tokens_and_logprobs_completion"})
_CLIENT_QUESTIONS = ("completions.create", "responses.create", "messages.create")
_MODEL_PATHS = ("/completions", "/responses", "/messages", "/generate", ":generateContent")
_NARROW = frozenset(
    {"JSONDecodeError", "ValueError", "KeyError", "TypeError", "IndexError", "AttributeError", "LookupError"}
    | {"TimeoutError", "APITimeoutError", "RateLimitError"}
)
"""What a handler may catch without catching most of what a client raises."""


_GUARDS = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)
_PLAIN = frozenset({"staticmethod", "classmethod", "property", "cached_property", "override"})


def static(source: ClassSource) -> Verdict:
    """Look at each question to a model that compute_reward leads to: a try with a handler is around it."""
    start = data_flow(source).method("compute_reward")
    if start is None:
        missing = source.unreadable[0] if source.unreadable else "nowhere"
        return Verdict.undecided(f"compute_reward may come from {missing}, which cannot be read")
    frames = data_flow(source).reached_from(start)
    asked = [call for call in calls_in(frames) if _is_question(call)]
    if not asked:
        doubt = next(unresolved_calls(frames), None)
        if doubt is not None:
            return Verdict.undecided(
                f"line {doubt.node.lineno}: {doubt.name}(...) may call a judge, and its code cannot be read"
            )
        return Verdict.not_applicable("compute_reward calls no judge")
    findings = [
        finding_at(
            call.function,
            call.node,
            f"{call.function.name} calls a judge without catching its errors: when it fails, compute_reward raises",
        )
        for frame in _bare(start)
        for call in frame.calls
        if _is_question(call) and not _is_guarded(call.function, call.node)
    ]
    decorated = next((frame.function for frame in frames if _may_be_guarded(frame.function)), None)
    if findings and decorated is not None:
        return Verdict.undecided(f"line {decorated.node.lineno}: a decorator of {decorated.name} may catch what a judge raises")
    what = "call of a judge is" if len(asked) == 1 else "calls of a judge are"
    return Verdict.of_source(findings, f"{len(asked)} {what} inside a try")


def _may_be_guarded(function: Function) -> bool:
    """Tell whether a decorator may catch what the function raises: its code has a try, or cannot be read."""
    for node in function.node.decorator_list:
        if last_name(node) in _PLAIN:
            continue
        wrapping = resolve(function.module, node.func if isinstance(node, ast.Call) else node)
        if not isinstance(wrapping, Function) or any(isinstance(part, _GUARDS) for part in ast.walk(wrapping.node)):
            return True
    return False


def _bare(start: Frame) -> Iterator[Frame]:
    """Yield the frames that are reached without passing a try that would catch what they raise."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        frame = pending.pop()
        if id(frame) in seen:
            continue
        seen.add(id(frame))
        yield frame
        pending += [target for node, target in frame.edges if not _is_guarded(frame.function, node)]


def _is_question(call: Call) -> bool:
    if call.name in _QUESTIONS:
        return True
    if not isinstance(call.node.func, ast.Attribute):
        return False
    return ast.unparse(call.node.func).endswith(_CLIENT_QUESTIONS) or (call.name == "post" and _is_to_a_model(call))


def _is_to_a_model(call: Call) -> bool:
    """Tell whether the address of a request ends as those of model servers do, as far as it is written down."""
    given = argument(call.node, 0, "url")
    last = given.values[-1] if isinstance(given, ast.JoinedStr) and given.values else given
    text = constant_value(last, call.function.module, call.function)
    return isinstance(text, str) and text.rstrip("/").endswith(_MODEL_PATHS)


def _is_guarded(function: Function, node: ast.AST) -> bool:
    """Tell whether a try that catches every exception stands around ``node``, or a gather that keeps exceptions."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body and any(map(_catches, parent.handlers)):
            return True
        if isinstance(parent, ast.Call) and any(
            word.arg == "return_exceptions" and isinstance(word.value, ast.Constant) and word.value.value
            for word in parent.keywords
        ):
            return True
        if isinstance(parent, (ast.With, ast.AsyncWith)) and any(_suppresses(item) for item in parent.items):
            return True
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches what a judge's client raises, and does not raise it on in the end."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
    last = handler.body[-1]
    is_exit = isinstance(last, ast.If) and "exit__" in ast.unparse(last.test)  # `with`, written out
    raised = last.body[-1] if isinstance(last, ast.If) and is_exit else last
    return not isinstance(raised, ast.Raise) and _covers_a_client(kinds)


def _covers_a_client(kinds: list[ast.expr]) -> bool:
    return not kinds or any(last_name(kind) not in _NARROW for kind in kinds)


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and last_name(call.func) == "suppress" and _covers_a_client(call.args)


_HOW = {
    "garbage_judge": "returned text without a score",
    "null_judge": "returned JSON whose values are null",
    "wordless_judge": "returned no text",
    "failing_judge": "failed every request",
}
SCENARIOS = tuple(_HOW)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what compute_reward returned while its judge answered garbage, and while it failed."""
    ran = evidence.scenarios(*SCENARIOS)
    if not ran:
        return Verdict.not_seen(evidence.why_missing(*SCENARIOS), irrelevant={Cause.NO_JUDGE, Cause.NOTHING_TO_TRAIN})
    rewards = [(scenario.name, reward) for scenario in ran for reward in scenario.of(Reward)]
    if not rewards:
        return Verdict.not_exercised("compute_reward was not called while the judge failed", acceptable_gap=True)
    findings = [
        finding_in(name, reward.place, f"the judge {_HOW[name]}, and compute_reward raised {reward.error}")
        if reward.error
        else evidence.finding_of_reward(
            reward.value, f"the judge {_HOW[name]}, and compute_reward returned {reward.value!r}", scenario=name
        )
        for name, reward in rewards
        if reward.error or as_number(reward.value) is None
    ]
    return Verdict.of(one_per_place(findings), f"{len(rewards)} rewards were numbers while the judge failed")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
