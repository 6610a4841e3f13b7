"""Files of rollouts: the JSON lines of ``process`` (groups) and of ``evaluate`` (samples), read for pages and exports, and their page.

Lines that are not rollouts say why, so that no reader drops them silently. ``process`` writes the page next to its file, and
``hermes-env view`` writes it for any such file. What a model says is data: every text is escaped, the page has no script, and its
policy loads nothing; atroposlib's own page renders the model's markup, and leaves tool calls out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from hermes_env_shared.pages import axis_of, page_template

LARGEST = 1e100
"""The limit of rewards and other numbers that are drawn."""


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
    """One rollout. ``score`` is as the file has it; ``facts`` are its overrides in a group, or all fields of a sample.

    ``place`` is its line and its number there, such as g3r2; ``tokens`` how many it has, None where the file does not say it.
    """

    score: Any
    messages: tuple[Message, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    tokens: int | None = None

    @property
    def end(self) -> str:
        """How it ended; empty where the file does not say it."""
        return str(self.facts.get("end") or ("finished" if self.facts.get("finished") is True else ""))

    @property
    def reward(self) -> float | None:
        """The score, where it is a number that can be drawn."""
        return _number(self.score)

    @property
    def sign(self) -> str:
        """Which kind of reward it has."""
        number = self.reward
        return "no reward" if number is None else "above 0" if number > 0 else "below 0" if number < 0 else "0"

    @cached_property
    def tools(self) -> Mapping[str, str]:
        """The names of the tools that it called, by the ids of the calls."""
        calls = [call for message in self.messages for call in message.calls]
        return {call.id or f"call {number}": call.name for number, call in enumerate(calls)}

    @property
    def turns(self) -> int:
        """How often the model was called."""
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def seconds(self) -> float | None:
        """How long it took, where the file says it."""
        return _number(self.facts.get("seconds"))

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """What filters know it by: its reward, its end, and each tool."""
        tools = sorted(set(self.tools.values())) or ["none"]
        return ("reward", self.sign), ("end", self.end or "not said"), *(("tool", name) for name in tools)


@dataclass(frozen=True, kw_only=True)
class Group:
    """One line of the file. ``problem`` says why it cannot be shown."""

    line: int
    rollouts: tuple[Rollout, ...] = ()
    problem: str = ""

    @cached_property
    def task(self) -> tuple[Message, ...]:
        """The messages with which all of its rollouts begin, before the model's first."""
        begun = [takewhile(lambda message: message.role != "assistant", rollout.messages) for rollout in self.rollouts]
        return tuple(messages[0] for messages in takewhile(lambda found: len(set(found)) == 1, zip(*begun, strict=False)))


def read_groups(path: Path) -> Iterator[Group]:
    """Yield the lines of a file of rollouts that are not empty. Raises: OSError."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _group(number, line)


def _together(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield the records of a group as one; each is a line of its own."""
    for key, found in groupby(groups, lambda group: _recorded_group(group) or group.line):
        same = list(found)
        rollouts = tuple(rollout for group in same for rollout in group.rollouts)
        yield replace(same[0], rollouts=rollouts) if isinstance(key, tuple) else same[0]


def _recorded_group(group: Group) -> tuple[str, int] | None:
    facts = group.rollouts[0].facts if group.rollouts else {}
    return (str(facts.get("run")), facts["group"]) if "format" in facts and isinstance(facts.get("group"), int) else None


def _group(number: int, line: str) -> Group:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return Group(line=number, problem="this line is not JSON")
    if isinstance(row, dict) and "format" in row and "messages" in row:  # a record
        return Group(line=number, rollouts=(_rollout(row.get("reward"), row["messages"], row, f"g{number}r1"),))
    if isinstance(row, dict) and "score" in row and "messages" in row:  # a sample of an evaluation
        return Group(line=number, rollouts=(_rollout(row["score"], row["messages"], row, f"g{number}r1"),))
    if not isinstance(row, dict) or not isinstance(row.get("scores"), list):
        return Group(line=number, problem="this line has no scores")
    messages, overrides, tokens = (_list(row.get(name)) for name in ("messages", "overrides", "tokens"))
    rollouts = (
        _rollout(
            score,
            messages[index] if index < len(messages) else "no messages were written",
            overrides[index] if index < len(overrides) else None,
            f"g{number}r{index + 1}",
            len(_list(tokens[index])) or None if index < len(tokens) else None,
        )
        for index, score in enumerate(row["scores"])
    )
    return Group(line=number, rollouts=tuple(rollouts))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def _rollout(score: Any, messages: Any, facts: Any, place: str, tokens: int | None = None) -> Rollout:
    said = tuple(map(read_message, messages if isinstance(messages, list) else [messages]))
    return Rollout(score=score, messages=said, facts=facts if isinstance(facts, dict) else {}, place=place, tokens=tokens)


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

TEMPLATE = Path(__file__).with_name("group_page.html.jinja")


def write_page(file: Path, findings: Sequence[Any] = ()) -> Path:
    """Write the page of a file of rollouts next to it, in one step, and return its path. Raises: OSError.

    The page begins with ``findings``, which are for the template `found`, and with the rewards of each group; boxes hide rollouts by
    reward, end and tool. Pages of tokens that are there are linked.
    """
    groups = list(_together(read_groups(file)))
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    labels = Counter(label for rollout in rollouts for label in rollout.labels)
    axis, place = axis_of(rollout.reward for rollout in rollouts if rollout.reward is not None)
    rows = [("all", rollouts), *((f"g{group.line}", group.rollouts) for group in groups if len(group.rollouts) > 1)]
    parts = page_template(TEMPLATE).generate(
        title=file.name,
        findings=findings,
        groups=groups,
        rollouts=rollouts,
        overview=[_overview(name, found, place) for name, found in rows if found],
        axis=axis,
        known=[
            name for name in ("turns", "tokens", "seconds") if any(getattr(rollout, name) is not None for rollout in rollouts)
        ],
        labels=sorted(labels.items()),
        numbers={label: number for number, label in enumerate(sorted(labels))},  # classes: names may hold anything
        prompts=_shared(message.content for rollout in rollouts for message in rollout.messages if message.role == "system"),
        pages={page.name for page in file.parent.iterdir()},
        stem=file.stem,
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


def _overview(name: str, rollouts: Sequence[Rollout], place: Callable[[float], float]) -> dict[str, Any]:
    """Return what the overview says of some rollouts: the dots of their rewards, and their ends."""
    dots: dict[float, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.reward is not None:
            dots.setdefault(place(rollout.reward), []).append(rollout)
    ends = Counter(rollout.end or "not said" for rollout in rollouts).most_common()
    ended = ", ".join(f"{count} {end}" for end, count in ends)
    return {"name": name, "rollouts": rollouts, "dots": sorted(dots.items()), "is_flat": len(dots) == 1, "ends": ended}


def _shared(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the texts that occur more than once, each with its number and how often it occurs."""
    found = [(text, count) for text, count in Counter(texts).items() if text and count > 1]
    return {text: (number, count) for number, (text, count) in enumerate(found, start=1)}
