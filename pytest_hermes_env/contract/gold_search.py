"""Gold for `hermes-env init`: looked for in the fields of the items, or taken from rollouts that somebody has.

The search plays label-like fields of the item as answers, in the forms that the reward's own code names, and into the files that the verifier
looked for; what earned on each of a few items is proposed as a template, for the author to confirm.
"""

from __future__ import annotations

import dataclasses
import json
import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.layer import rollout_file
from pytest_hermes_env.play.cases.values import GOLD, NEAR_MISS, NOTHING
from pytest_hermes_env.play.cases.yaml_file import read_cases
from pytest_hermes_env.play.probing.free_rewards import ANSWERS
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.scenario import CASES, ELSEWHERE, Scenario
from pytest_hermes_env.records.reading import read_lines
from pytest_hermes_env.sandbox.files import HOME, WORKSPACE

LIKE_LABELS = re.compile(
    r"answer|expected|gold|label|output|reference|result|solution|target|truth|patch|code|command|summary", re.IGNORECASE
)
MOST_FIELDS, MOST_PLACES = 6, 3
FORMS = (
    "{}", "The answer is {}.", "<answer>{}</answer>", "\\boxed{{{}}}", "#### {}", "Answer: {}", "```python\n{}\n```", '{{"answer": "{}"}}',
)  # fmt: skip
"""Forms of a final answer that rewards look for."""
LEAST = 0.5
"""What gold must earn more than doing nothing."""
FEW = 3
"""The best templates, which are played on several items."""
LOOK = {"call": "terminal", "with": {"command": "ls"}}
DONE = {"say": "done"}


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A template that earned, its rewards on the items that it was played on, and what a judge said of it."""

    turns: list[Any]
    rewards: tuple[float, ...]
    judge: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def turn_lines(name: str, turns: Iterable[Any]) -> list[str]:
    """Return a case as lines of a file of cases, one turn in each."""
    shown = (yaml.safe_dump(turn, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False) for turn in turns)
    texts = [text.strip() for text in shown]
    whole = [json.dumps(turn, ensure_ascii=False) if "\n" in text else text for turn, text in zip(turns, texts, strict=True)]
    return [f"    {name}:", *(f"      - {text}" for text in whole)]


def look_for_gold(env_class: type, first: Scenario, item: Any) -> tuple[Gold | None, int]:
    """Return the template that earned the most on each item, and how many were played. ``first``: the record of the automatic cases.

    Each is played on one item, then the best on a few. Where a judge was asked, it is made to say that the work is right.
    """
    candidates = list(_candidates(env_class, first, item))
    is_judged = any(rung.is_judge_guessed for rung in first.rungs)
    judge = {"judge": {"say": '{"score": 1.0, "reasoning": "right"}'}} if is_judged else {}
    earned = _earned(env_class, dict(enumerate(candidates)), {"index": 0, **judge}, ELSEWHERE)
    best = sorted(earned, key=lambda number: -min(earned[number]))[:FEW]
    again = _earned(env_class, {number: candidates[number] for number in best}, {"where": "*", **judge}, CASES)
    chosen = max(again, key=lambda number: min(again[number]), default=None)
    if chosen is None:
        return None, len(candidates)
    return Gold(turns=candidates[chosen], rewards=again[chosen], judge=judge), len(candidates)


def _earned(
    env_class: type, tried: Mapping[int, list[Any]], entry: Mapping[str, Any], scenario: str
) -> dict[int, tuple[float, ...]]:
    """Play transcripts, and return the rewards of those that earned enough each time, by their numbers."""
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415 - heavy

    if not tried:
        return {}
    others = {f"try_{number}": turns for number, turns in tried.items()}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "tried.contract.yaml")
        file.write_text(yaml.safe_dump({"items": [{**entry, "others": others}]}), encoding="utf-8")
        rungs = Collector(env_class, cases=read_cases(file).cases).collect((scenario,)).scenarios[scenario].rungs
    idle = max(
        (rung.reward for rung in rungs if rung.name == NOTHING and rung.reward is not None and not rung.is_judge_guessed),
        default=0.0,
    )
    found = {}
    for number in tried:
        rewards = [rung.reward for rung in rungs if rung.name == f"try_{number}"]
        known = tuple(reward for reward in rewards if reward is not None)
        if known and len(known) == len(rewards) and min(known) >= idle + LEAST:
            found[number] = known
    return found


def _candidates(env_class: type, first: Scenario, item: Any) -> Iterator[list[Any]]:
    """Yield transcripts whose texts name fields of the item, likely ones first."""
    fields = _fields(item)
    constants = reward_constants(env_class, env_class.compute_reward)  # type: ignore[attr-defined]
    places = [_as_template(place, fields) for place in _places(first)][:MOST_PLACES]
    names = sorted(fields, key=lambda name: (name.lower() not in ANSWERS, not LIKE_LABELS.search(name)))[:MOST_FIELDS]
    for name in names:
        part = f"${{item.{name}}}"
        for place in places:
            for content in (f"{part}\n", *([part] if isinstance(fields[name], str) else ())):
                yield [{"call": "write_file", "with": {"path": place, "content": content}}, DONE]
        slots = (slot.replace("{", "{{").replace("}", "}}").replace("\0", "{}") for slot in constants.slots)
        forms = dict.fromkeys([FORMS[0], *slots, *FORMS])
        for form in forms:
            yield [{"say": form.format(part)}]
            yield [LOOK, {"say": form.format(part)}]
        if isinstance(fields[name], str) and LIKE_LABELS.search(name):
            yield [{"call": "terminal", "with": {"command": part}}, DONE]
    whole = {name: f"${{item.{name}}}" for name in names if LIKE_LABELS.search(name)}
    if whole:
        for form in ("{}", "```json\n{}\n```"):
            yield [{"say": form.format(json.dumps(whole))}]


def _fields(item: Any) -> dict[str, Any]:
    """Return the parts of an item that can stand in a text."""
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        item = {one.name: getattr(item, one.name) for one in dataclasses.fields(item)}
    found = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
    return {
        name: value
        for name, value in found.items()
        if isinstance(name, str) and isinstance(value, str | int | float) and str(value)
    }


def _places(first: Scenario) -> list[str]:
    """Return the files that the verifier looked for, as it named them."""
    named: dict[str, None] = {}
    for record in first.played:
        for call in record.tool_calls:
            if not call.by_agent and isinstance(path := call.arguments.get("path"), str):
                named.setdefault(path)
    for rung in first.rungs:
        for read in rung.reads:
            path, _, how = read.rpartition(" (")
            if how == "not found)" and not any(name.endswith(path.rpartition("/")[2]) for name in named):
                named.setdefault(path.removeprefix(f"{HOME}/").removeprefix(f"{WORKSPACE}/"))
    return list(named)


def _as_template(place: str, fields: Mapping[str, Any]) -> str:
    """Return a path in which the item's own parts are named."""
    for name, value in sorted(fields.items(), key=lambda pair: -len(str(pair[1]))):
        if isinstance(value, str) and len(value) > 1 and value in place and "${" not in place:
            place = place.replace(value, f"${{item.{name}}}")
    return place


# From rollouts


def promoted(path: str, prompts: Mapping[str, int]) -> dict[int, list[str]]:
    """Return the cases of each item that rollouts of a file were about: the best, a middling and the worst, as lines.

    ``prompts`` are those of the training items, with their numbers. Raises: no such rollouts → UsageError.
    """
    found: dict[int, list[tuple[float, list[Any]]]] = {}
    seen = 0
    for prompt, score, turns in _rollouts(Path(path)):
        seen += 1
        if (number := prompts.get(prompt.strip())) is not None and turns:
            found.setdefault(number, []).append((score, turns))
    if not found:
        raise UsageError(
            f"{path} has no rollout of this environment's first training items.\n"
            f"  seen      {f'{seen} scored rollouts' if seen else 'no line that is a rollout'}, and prompts of {len(prompts)} items\n"
            "  fix       give the file that process, evaluate or a recording of this environment wrote"
        )
    paid = {number: rollouts for number, rollouts in sorted(found.items()) if max(score for score, _ in rollouts) > 0}
    if not paid:
        raise UsageError(
            f"{path} has no gold: no rollout in it earned anything.\n"
            f"  expected  a rollout of one of the first training items with a reward above 0\n"
            f"  seen      {seen} scored rollouts\n"
            "  fix       give a file in which good work earned, or write gold by hand: hermes-env docs cases"
        )
    return {number: list(_rungs(path, rollouts)) for number, rollouts in paid.items()}


def _rungs(path: str, rollouts: list[tuple[float, list[Any]]]) -> Iterator[str]:
    ordered = sorted(rollouts, key=lambda pair: -pair[0])
    best, worst = ordered[0], ordered[-1]
    between = [one for one in ordered if worst[0] < one[0] < best[0]]
    middle = min(between, key=lambda one: abs(one[0] - statistics.fmean((best[0], worst[0]))), default=None)
    for name, one in ((GOLD, best), (NEAR_MISS, middle), (NOTHING, worst if worst[0] < best[0] else None)):
        if one is not None:
            yield from (f"    # earned {one[0]:g} in {Path(path).name}", *turn_lines(name, one[1]))


def _rollouts(file: Path) -> Iterator[tuple[str, float, list[Any]]]:
    """Yield prompt, score and turns of each scored rollout of a file of JSON lines, a trajectory or a cassette. Raises: UsageError."""
    read_message = rollout_file().read_message
    for line in read_lines([file]):
        if line.record is not None and line.record.reward is not None:
            messages = tuple(map(read_message, line.record.messages))
            yield _prompt(messages), line.record.reward, _turns(messages)
        elif file.suffix == ".json" and line.problem:
            raise UsageError(line.problem)


def _prompt(messages: Iterable[Any]) -> str:
    return next((message.content for message in messages if message.role == "user"), "")


def _turns(messages: Iterable[Any]) -> list[Any]:
    """Return the turns of a rollout's messages; nothing where a call has no valid arguments."""
    turns: list[Any] = []
    for message in messages:
        if message.role != "assistant":
            continue
        steps: list[Any] = [{"say": message.content}] if message.content.strip() else []
        for call in message.calls:
            try:
                steps.append({"call": call.name, "with": json.loads(call.arguments or "{}")})
            except ValueError:
                return []
        turns.append(steps[0] if len(steps) == 1 else steps or {"say": ""})
    return turns
