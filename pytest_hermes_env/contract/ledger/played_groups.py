"""What the rollouts of a scenario said and earned, for the page of a contract: rewards of its group, and the turns of its rollouts.

Place in the flow: rows carry groups as plain data to the end of the run, where ledgers keep them for `reports.html_report`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.layer import rollout_file
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from pytest_hermes_env.play.scenario import Scenario

MOST_ROLLOUTS = 2
LONGEST_TEXT = 2000
"""Characters of a message; what is longer is cut, and says so."""


@dataclass(frozen=True, kw_only=True)
class PlayedGroup:
    """One scenario. ``earned`` has the reward and end of each rollout of its group, if it left one: "1, finished".

    ``rollouts`` are the messages of the first of them.
    """

    scenario: str
    earned: tuple[str, ...] = ()
    rollouts: tuple[tuple[Mapping[str, Any], ...], ...] = ()


def groups_of(scenarios: Mapping[str, Scenario], with_turns: Iterable[str]) -> tuple[PlayedGroup, ...]:
    """Return every scenario that left rewards, and those named in ``with_turns`` with the turns of their rollouts."""
    wanted = frozenset(with_turns)
    made = (
        PlayedGroup(
            scenario=name,
            earned=tuple(_earned(scenario)),
            rollouts=tuple(_rollouts(scenario)) if name in wanted else (),
        )
        for name, scenario in scenarios.items()
    )
    return tuple(group for group in made if group.earned or group.rollouts)


def groups_from(rows: Iterable[Iterable[Mapping[str, Any]]]) -> tuple[PlayedGroup, ...]:
    """Return the groups that rows carried, each scenario once, with its turns where any row has them."""
    by_scenario: dict[str, PlayedGroup] = {}
    for group in (PlayedGroup(**group) for row in rows for group in row):
        if group.rollouts or group.scenario not in by_scenario:
            by_scenario[group.scenario] = group
    return tuple(by_scenario.values())


def _earned(scenario: Scenario) -> Iterator[str]:
    group = scenario.group if isinstance(scenario.group, dict) else {}
    scores, facts = group.get("scores"), group.get("overrides")
    for place, score in enumerate(scores if isinstance(scores, list) else ()):
        fact = facts[place] if isinstance(facts, list) and place < len(facts) else None
        end = fact.get("end") if isinstance(fact, dict) else None
        number = f"{score:.3g}" if isinstance(score, int | float) else shown(str(score))
        yield f"{number}, {end}" if end else number


def _rollouts(scenario: Scenario) -> Iterator[tuple[Mapping[str, Any], ...]]:
    messages = scenario.group.get("messages") if isinstance(scenario.group, dict) else None
    talks = messages if isinstance(messages, list) and all(isinstance(talk, list) for talk in messages) else []
    for talk in (talks or _asked(scenario))[:MOST_ROLLOUTS]:
        yield tuple(_plain(message) for message in talk)


def _asked(scenario: Scenario) -> list[list[Any]]:
    """Return the conversations of requests with tools, each as its last request has it: without the last answer."""
    last: list[list[Any]] = []
    for request in scenario.requests:
        messages = request.get("messages")
        if request.get("tools") and isinstance(messages, list):
            last = [*(talk for talk in last if messages[: len(talk)] != talk), messages]
    return last


def _plain(message: Any) -> Mapping[str, Any]:
    read = dataclasses.asdict(rollout_file().read_message(message))
    texts = {name: _cut(read[name]) for name in ("role", "content", "reasoning")}
    calls = tuple({"name": shown(call["name"]), "arguments": _cut(call["arguments"])} for call in read["calls"])
    return {**texts, "calls": calls}


def _cut(text: str) -> str:
    rest = len(text) - LONGEST_TEXT
    return shown(text) if rest <= 0 else f"{shown(text[:LONGEST_TEXT])}\n[{rest:,} more characters]"
