"""What `health` and `compare` see in one rollout: its calls, its last answer, what a judge said."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hermes_env_shared.rollout_record import Record, World

CLAIM = re.compile(
    r"\b(?:all (?:the )?(?:tests|checks) (?:have )?pass|(?:tests?|checks?) pass(?:ed|es)?\b|success(?:fully)?\b|task is (?:now )?(?:done|complete)|"
    r"(?:is|has been|have been) (?:now )?(?:completed?|done|fixed|created|solved|updated|in place)\b|score: ?1(?:\.0)?\b|"
    r"i(?: have|'ve|\u2019ve) (?:\w+ )?(?:completed|fixed|solved|created|written|updated|added|confirmed|verified|implemented|checked|tested)|"
    r"(?:fixed|done|completed) and (?:verified|tested|confirmed)|all set\b|everything (?:now )?works\b|it now works\b)|^\W*(?:done|fixed|finished)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Words with which an answer claims success."""
MOST_IN_A_ROW, MOST_REPEATS = 4, 8
"""Equal calls with equal results that are no loop yet: one after the other, and without anything new between them."""
SHORT, LINE = 40, 200
"""Characters of an answer without calls that several rollouts may well share, and of one that those of one item may share."""
_CLOCK = re.compile(
    r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b|(?:\b\d{4}-\d\d-\d\d[T ])?\b\d\d:\d\d:\d\d(?:\.\d+)?\b|\b1\d{9}(?:\.\d+)?\b"
)
_CALL_AS_TEXT = re.compile(
    r"<tool_call>|<function=\w|<\|tool_call|\[TOOL_CALLS\]|\"name\": ?\"\w+\", ?\"(?:arguments|parameters)\": ?\{|<invoke name=|<\|python_tag\|>|"
    r"<\uff5ctool\u2581calls?\u2581begin\uff5c>|<\|channel\|>\w+ to=functions\.|^Action: ?\w+\s*\nAction Input:",
    re.MULTILINE,
)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_NO_PROMPT = frozenset({"", "None", "none", "null", "nan"})
_EMPTY_PART = re.compile(
    r"^\W*(?:question|task|problem|prompt|input|query|text|instruction|answer|statement|document)s?\W*: *(?:None|nan) *$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of a prompt that should ask something, and whose value is missing: as Python writes it."""
_SCORE = re.compile(
    r"(-?\d+(?:\.\d+)?)\s*(?:/|of|out of)\s*\d|\b(?:score|grade|rating|mark|points)\b\W{0,12}(-?\d+(?:\.\d+)?)", re.IGNORECASE
)
_OF_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Cannot allocate memory|Too many open files|Input/output error"
)
"""What a program says that failed for its machine, and not for the work."""
_ERROR = re.compile(r"\s*(?:Error(?: executing tool)?: |Traceback \(most recent call last\))", re.IGNORECASE)
_OF_STATUS = frozenset({"status", "error", "message", "detail", "reason", "code"})
WORDS, NEW_WORDS = 60, 0.1
"""Words from which on an answer is looked at, and the share of them that is said for the first time in one that says something."""
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m|\u2019m| am) (?:sorry|unable|not able)|sorry\b|i (?:can(?:no|'|\u2019)t|won(?:'|\u2019)t|will not)\b|as an ai\b)",
    re.IGNORECASE,
)
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|conftest|check\w*|verif\w+|grad\w+|expected|spec)(?:[/_.-]|$)", re.IGNORECASE)
_IDS = frozenset({"id", "_id", "uid", "uuid", "idx", "index", "task_id", "item_id", "split", "subset", "fold"})


@dataclass(frozen=True, kw_only=True)
class Observed:
    """``calls``: the name of each tool call, and whether it failed. ``judged``: what each answer of a judge said, empty where it said nothing."""

    answer: str
    item: str
    fingerprint: int
    calls: tuple[tuple[str, bool], ...]
    judged: tuple[str, ...]
    is_looping: bool
    length: int
    """Characters that the agent wrote, where it called nothing; -1 where it did."""
    has_tools: bool
    prompt: str | None
    lacks_its_part: bool
    """Whether the prompt has a place for the item, and nothing in it."""

    @property
    def has_call_as_text(self) -> bool:
        """Whether the last answer holds a call that nobody read as one."""
        return self.has_tools and _CALL_AS_TEXT.search(self.answer) is not None

    @property
    def is_silent(self) -> bool:
        """Whether the last answer is empty, but for thoughts."""
        return not _THOUGHT.sub("", self.answer).strip()

    @property
    def has_no_prompt(self) -> bool:
        """Whether the user asked nothing, or what stands for nothing."""
        return self.prompt is not None and (self.prompt.strip() in _NO_PROMPT or self.lacks_its_part)

    @property
    def says_one_thing(self) -> bool:
        """Whether a long answer repeats a few words."""
        words = [word for word in self.answer.split() if word.isalpha()]
        return len(words) >= WORDS and len({*words}) < NEW_WORDS * len(words)

    @property
    def has_only_failed_calls(self) -> bool:
        """Whether tools were called, and no call worked."""
        return bool(self.calls) and all(failed for _, failed in self.calls)

    @property
    def claims_without_work(self) -> bool:
        """Whether the answer claims success although there were tools and no call worked."""
        return self.has_tools and not any(not failed for _, failed in self.calls) and CLAIM.search(self.answer) is not None


def observed_in(record: Record) -> Observed:
    """Return what is seen in a rollout."""
    results = {key: iter(group) for key, group in _by_id(record).items()}
    calls: list[tuple[str, bool]] = []
    made: list[tuple[str, str, str]] = []
    answer, parts = "", []
    for message in record.messages:
        if message.get("role") != "assistant":
            continue
        content = text_of(message.get("content"))
        answer = content
        parts.append(" ".join(content.split()))
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                result = next(results.get(str(call.get("id")), iter(())), None)
                name = str(function.get("name"))
                made.append((name, str(function.get("arguments")), _CLOCK.sub("", text_of(result))))
                calls.append((name, failed(result)))
    prompt = next((_asked(one.get("content")) for one in record.messages if one.get("role") == "user"), None)
    return Observed(
        answer=answer,
        item=json.dumps(record.item) if record.item is not None else record.prompt,
        fingerprint=hash((*parts, *(one[:2] for one in made))) or 1,
        calls=tuple(calls),
        judged=tuple(said_in(call.answer) for call in record.judges),
        is_looping=_is_looping(made),
        length=-1 if made else sum(map(len, parts)),
        has_tools=bool(record.tools) or bool(made),
        prompt=prompt,
        lacks_its_part=prompt is not None and _lacks_its_part(prompt, record.item),
    )


def _lacks_its_part(prompt: str, item: Any) -> bool:
    """Return whether a prompt has a field of its item in braces, or a line that ends with a colon and None."""
    names = [re.escape(name) for name in item if isinstance(name, str)] if isinstance(item, dict) else []
    left = re.search(rf"\{{\{{? ?(?:{'|'.join(names)}) ?\}}\}}?", prompt) if names else None
    empty = _EMPTY_PART.search(prompt) if item is not None else None
    held = json.dumps(item, ensure_ascii=False)
    return any(found is not None and found[0].strip() not in held for found in (left, empty))


def _asked(content: Any) -> str | None:
    """Return the text of a prompt; None where it has more than text."""
    parts = content if isinstance(content, list) else []
    return None if any(isinstance(part, dict) and part.get("type", "text") != "text" for part in parts) else text_of(content)


def _by_id(record: Record) -> dict[str, list[Any]]:
    """Return the results of calls by their ids, in their order: a model may use an id again."""
    found: dict[str, list[Any]] = {}
    for message in record.messages:
        if message.get("role") == "tool":
            found.setdefault(str(message.get("tool_call_id")), []).append(message.get("content"))
    return found


def asked_in(record: Record) -> str:
    """Return what a rollout asks: its prompt, and its item without what only numbers it. Two items of one number may ask two things."""
    item = record.item
    kept = {key: value for key, value in item.items() if str(key).lower() not in _IDS} if isinstance(item, dict) else item
    return json.dumps([record.prompt, kept or item], sort_keys=True, default=str)


def failed(result: Any) -> bool:
    """Return whether a tool's result says that the call failed: an error, or an exit code of a command that never ran or was stopped.

    A command that ran and whose exit code is 1 says something about the work.
    """
    text = text_of(result)
    try:
        found = json.loads(text) if text.lstrip()[:1] == "{" else None
    except ValueError:
        return False
    if not isinstance(found, dict):
        return _ERROR.match(text) is not None
    code = found.get("exit_code")
    if isinstance(code, int):
        return code < 0 or code in {124, 126, 127} or (code > 0 and _OF_MACHINE.search(text) is not None)
    is_refused = str(found.get("status")).lower() in {"error", "failed"} and found.keys() <= _OF_STATUS
    return found.get("success") is False or is_refused or bool(found.get("error"))


def text_of(content: Any) -> str:
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def said_in(answer: Any) -> str:
    """Return what the first choice of a completion says; empty where it is none, or says nothing."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return ""
    message = choices[0].get("message")
    return (text_of(message.get("content")) if isinstance(message, dict) else str(choices[0].get("text") or "")).strip()


def score_in(answer: str) -> str:
    """Return the score that a judge's answer gives: the number of an object, or the one that a text calls so; the answer itself without one."""
    try:
        value = json.loads(answer)
    except ValueError:
        value = None
    held = value.values() if isinstance(value, dict) else ()
    numbers = [str(part) for part in held if isinstance(part, int | float) and not isinstance(part, bool)]
    if len(numbers) == 1:
        return numbers[0]
    found = _SCORE.search(answer) if value is None else None
    return next(filter(None, found.groups())) if found is not None else answer


def refuses(answer: str) -> bool:
    """Return whether a judge refuses in words, without a number that could be a grade."""
    return _REFUSAL.match(answer) is not None and not any(sign.isdigit() for sign in answer)


def tests_in(world: World, by: str) -> set[str]:
    """Return the files of a sandbox that are named like tests, and that somebody wrote last."""
    return {one.path for one in world.files if one.by == by and one.kind == "file" and _TEST.search(one.path)}


def _is_looping(made: list[tuple[str, str, str]]) -> bool:
    row = longest = old = most = 0
    seen: set[tuple[str, str, str]] = set()
    for before, call in zip([None, *made], made, strict=False):
        row = row + 1 if call == before else 1
        old = old + 1 if call in seen else 0
        seen.add(call)
        longest, most = max(longest, row), max(most, old)
    return longest > MOST_IN_A_ROW or most >= MOST_REPEATS
