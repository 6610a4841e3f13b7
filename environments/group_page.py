"""The HTML page that ``process`` writes next to its JSON lines: each group with its rollouts, messages and tool calls.

``hermes-env view`` writes it for any file of groups or of evaluation samples. Boxes hide rollouts by end, reward and tool. What a model says is data. Every text is escaped, the page has no script, and its policy loads nothing; atroposlib's own page renders the
model's markup, and leaves tool calls out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["write_page"]

TEMPLATE = "group_page.html.jinja"


@dataclass(frozen=True, kw_only=True)
class _Call:
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class _Message:
    role: str
    content: str
    reasoning: str
    calls: tuple[_Call, ...]


@dataclass(frozen=True, kw_only=True)
class _Rollout:
    score: str
    sign: str
    end: str
    tools: frozenset[str]
    messages: tuple[_Message, ...]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """One line of the file. ``problem`` says why it cannot be shown."""

    line: int
    rollouts: tuple[_Rollout, ...] = ()
    problem: str = ""


def write_page(groups: Path) -> Path:
    """Write the page of a file of groups beside it, and return its path. Raises: OSError."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    page = groups.with_suffix(".html")
    rollouts = [rollout for group in _groups(groups) for rollout in group.rollouts]
    ends = sorted({rollout.end for rollout in rollouts if rollout.end})
    tools = sorted({tool for rollout in rollouts for tool in rollout.tools})
    numbers = {
        name: number for number, name in enumerate([*ends, *tools])
    }  # a class of the page for each: names may hold anything
    parts = environment.get_template(TEMPLATE).generate(
        title=groups.name, groups=_groups(groups), count=len(rollouts), ends=ends, tools=tools, numbers=numbers
    )
    with page.open("w", encoding="utf-8", errors="backslashreplace") as file:  # a lone surrogate is no text
        file.writelines(parts)
    return page


def _groups(path: Path) -> Iterator[_Group]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _group(number, line)


def _group(number: int, line: str) -> _Group:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return _Group(line=number, problem="this line is not JSON")
    if isinstance(row, dict) and "score" in row and "messages" in row:  # a sample of an evaluation
        return _Group(line=number, rollouts=(_rollout(row["score"], row["messages"], row),))
    if not isinstance(row, dict) or not isinstance(row.get("scores"), list):
        return _Group(line=number, problem="this line has no scores")
    messages, overrides = _list(row.get("messages")), _list(row.get("overrides"))
    rollouts = (
        _rollout(
            score,
            messages[index] if index < len(messages) else "no messages were written",
            overrides[index] if index < len(overrides) else None,
        )
        for index, score in enumerate(row["scores"])
    )
    return _Group(line=number, rollouts=tuple(rollouts))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _rollout(score: Any, messages: Any, facts: Any) -> _Rollout:
    number = score if isinstance(score, int | float) else 0
    said = messages if isinstance(messages, list) else [messages]
    shown = tuple(map(_message, said))
    end = facts.get("end") if isinstance(facts, dict) else None
    return _Rollout(
        score=str(score),
        sign="positive" if number > 0 else "negative" if number < 0 else "zero",
        end=str(end) if end else "",
        tools=frozenset(call.name for message in shown for call in message.calls),
        messages=shown,
    )


def _message(message: Any) -> _Message:
    if not isinstance(message, dict):
        return _Message(role="text", content=str(message), reasoning="", calls=())
    calls = message.get("tool_calls") or []
    return _Message(
        role=str(message.get("role", "unknown")),
        content=_text(message.get("content")),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        calls=tuple(_call(call) for call in calls) if isinstance(calls, list) else (),
    )


def _call(call: Any) -> _Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return _Call(name="unknown", arguments=_text(call))
    return _Call(name=str(function.get("name")), arguments=_text(function.get("arguments")))


def _text(content: Any) -> str:
    """Return the text of a message: its parts joined, and anything else as JSON."""
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        return "\n".join(part["text"] for part in content)
    if content is None or isinstance(content, str):
        return content or ""
    return json.dumps(content, ensure_ascii=False, indent=1)
