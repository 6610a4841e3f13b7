"""Files of rollouts: the JSON lines of ``process`` (groups) and of ``evaluate`` (samples), read for pages and exports, and their page.

Lines that are not rollouts say why, so that no reader drops them silently. ``process`` writes the page next to its file, and
``hermes-env view`` writes it for any such file. What a model says is data: every text is escaped, the page has no script, and its
policy loads nothing; atroposlib's own page renders the model's markup, and leaves tool calls out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call; ``arguments`` is the text that the model wrote."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message. ``answers`` is the id of the call that a tool's message answers."""

    role: str
    content: str
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One rollout. ``score`` is as the file has it; ``facts`` are its overrides in a group, or all fields of a sample."""

    score: Any
    messages: tuple[Message, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> str:
        """How it ended; empty where the file does not say it."""
        return str(self.facts.get("end") or "")

    @property
    def sign(self) -> str:
        """Whether the reward is positive, negative or zero."""
        number = self.score if isinstance(self.score, int | float) else 0
        return "positive" if number > 0 else "negative" if number < 0 else "zero"

    @property
    def tools(self) -> frozenset[str]:
        """The tools that it called."""
        return frozenset(call.name for message in self.messages for call in message.calls)


@dataclass(frozen=True, kw_only=True)
class Group:
    """One line of the file. ``problem`` says why it cannot be shown."""

    line: int
    rollouts: tuple[Rollout, ...] = ()
    problem: str = ""


def read_groups(path: Path) -> Iterator[Group]:
    """Yield the lines of a file of rollouts that are not empty. Raises: OSError."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _group(number, line)


def _group(number: int, line: str) -> Group:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return Group(line=number, problem="this line is not JSON")
    if isinstance(row, dict) and "format" in row and "messages" in row:  # a record
        return Group(line=number, rollouts=(_rollout(row.get("reward"), row["messages"], row),))
    if isinstance(row, dict) and "score" in row and "messages" in row:  # a sample of an evaluation
        return Group(line=number, rollouts=(_rollout(row["score"], row["messages"], row),))
    if not isinstance(row, dict) or not isinstance(row.get("scores"), list):
        return Group(line=number, problem="this line has no scores")
    messages, overrides = _list(row.get("messages")), _list(row.get("overrides"))
    rollouts = (
        _rollout(
            score,
            messages[index] if index < len(messages) else "no messages were written",
            overrides[index] if index < len(overrides) else None,
        )
        for index, score in enumerate(row["scores"])
    )
    return Group(line=number, rollouts=tuple(rollouts))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _rollout(score: Any, messages: Any, facts: Any) -> Rollout:
    said = messages if isinstance(messages, list) else [messages]
    return Rollout(score=score, messages=tuple(map(read_message, said)), facts=facts if isinstance(facts, dict) else {})


def read_message(message: Any) -> Message:
    """Return a message of whatever shape; one that is not a mapping has the role "text"."""
    if not isinstance(message, dict):
        return Message(role="text", content=str(message))
    calls = message.get("tool_calls") or []
    return Message(
        role=str(message.get("role", "unknown")),
        content=_text(message.get("content")),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        calls=tuple(_call(call) for call in calls) if isinstance(calls, list) else (),
        answers=str(message.get("tool_call_id") or ""),
    )


def _call(call: Any) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return Call(name="unknown", arguments=_text(call))
    return Call(name=str(function.get("name")), arguments=_text(function.get("arguments")), id=str(call.get("id") or ""))


def _text(content: Any) -> str:
    """Return the text of a message: its parts joined, and anything else as JSON."""
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        return "\n".join(part["text"] for part in content)
    if content is None or isinstance(content, str):
        return content or ""
    return json.dumps(content, ensure_ascii=False, indent=1)


# ---------------------------------------------------------------------- the page

TEMPLATE = "group_page.html.jinja"


def write_page(file: Path) -> Path:
    """Write the page of a file of rollouts next to it, in one step, and return its path. Raises: OSError.

    Boxes on it hide rollouts by end, reward and tool.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - most readers write no page

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    groups = list(read_groups(file))
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    ends = sorted({rollout.end for rollout in rollouts if rollout.end})
    tools = sorted({tool for rollout in rollouts for tool in rollout.tools})
    numbers = {name: number for number, name in enumerate([*ends, *tools])}  # classes of the page: names may hold anything
    parts = environment.get_template(TEMPLATE).generate(
        title=file.name, groups=groups, count=len(rollouts), ends=ends, tools=tools, numbers=numbers
    )
    page = file.with_suffix(".html")
    unfinished = page.with_name(f".{page.name}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace") as out:  # a lone surrogate cannot be encoded
            out.writelines(parts)
        unfinished.replace(page)
    finally:
        unfinished.unlink(missing_ok=True)
    return page
