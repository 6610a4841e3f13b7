"""Tells whether a run was healthy: named checks over its rollouts, each healthy, unhealthy or unobserved, with rollouts to look at.

One pass over the files; what is kept of a rollout are a few numbers. `checks` has the one table of limits.
"""

from __future__ import annotations

import difflib
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

from hermes_env_shared.rollout_record import IGNORED, Record
from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.records.checks import CHECKS, Check
from pytest_hermes_env.records.observed import LINE, SHORT, Observed, asked_in, observed_in, refuses, score_in, tests_in
from pytest_hermes_env.records.reading import Line, none_in, read_lines
from pytest_hermes_env.records.verdicts import Status, Verdict

SHOWN = 3
"""Rollouts that each check names."""
SPREAD = 0.02
"""The least standard deviation of lengths and turns, as a share of their mean, that a reward can follow."""
SAME = 1e-6
"""By how much rewards differ that count as one."""
OUTLIER, TINY = 100.0, 0.01
"""How many times what nine of ten rewards are at most an outlier is, and the logprob above which there is none."""
FEW = 8
"""Trained tokens of which not all can have the logprob 0."""
PAID = 0.5
"""The usual score of a pass."""
OFTEN, MANY = 4, 20
"""Rollouts of an item, after which one of them should have earned, and of a place in the groups, whose mean says something."""


@dataclass(kw_only=True)
class _Tally:
    """Cases that were seen, those that count, and the first few of these."""

    seen: int = 0
    count: int = 0
    places: list[str] = field(default_factory=list)
    why: str = ""

    def add(self, counts: bool, place: str) -> None:
        self.seen += 1
        if counts:
            self.count += 1
            if len(self.places) < SHOWN:
                self.places.append(place)

    @property
    def value(self) -> float | None:
        return self.count / self.seen if self.seen else None


@dataclass(kw_only=True)
class _Pairs:
    """Sums for a correlation, of each group apart, and the rollouts at its ends. Where no group has two rollouts, all count as one."""

    of_groups: dict[int, list[float]] = field(default_factory=dict)
    most: list[tuple[float, str]] = field(default_factory=list)

    def add(self, one: float, other: float, place: str, group: int) -> None:
        sums = self.of_groups.setdefault(group, [0.0] * 6)
        for index, value in enumerate((1.0, one, other, one * one, other * other, one * other)):
            sums[index] += value
        self.most.append((other, place))
        if len(self.most) > 10 * SHOWN:
            self.most = sorted(self.most, reverse=True)[:SHOWN]

    @property
    def measured(self) -> tuple[float | None, int]:
        """The correlation, if both differ, and the number of rollouts."""
        several = [sums for sums in self.of_groups.values() if sums[0] > 1] or [
            [math.fsum(column) for column in zip(*self.of_groups.values(), strict=True)] or [0.0] * 6
        ]
        seen = int(sum(sums[0] for sums in several))
        moments = ((aa - a * a / n, bb - b * b / n, ab - a * b / n) for n, a, b, aa, bb, ab in several if n)
        aa, bb, ab = [math.fsum(column) for column in zip(*moments, strict=True)] or [0.0] * 3
        mean = sum(sums[2] for sums in several) / seen if seen else 0.0
        is_flat = bb <= seen * (SPREAD * mean) ** 2
        spread = math.sqrt(max(0.0, aa) * max(0.0, bb))
        return (None if is_flat or spread <= 1e-9 else ab / spread), seen  # noqa: PLR2004


class Health:
    """Takes rollouts one by one; `verdicts` judges what was seen. ``limits`` replace those of `CHECKS`."""

    def __init__(self, limits: Mapping[str, float] | None = None) -> None:
        known = {check.name for check in CHECKS}
        if unknown := sorted(set(limits or {}) - known):
            close = difflib.get_close_matches(unknown[0], sorted(known), n=1)
            nearest = f"\n  nearest   {close[0]}" if close else ""
            raise UsageError(
                f"there is no check {', '.join(unknown)}.\n  expected  one that `hermes-env health --list` shows{nearest}"
            )
        for name, limit in (limits or {}).items():
            is_share = next(check.is_share for check in CHECKS if check.name == name)
            if not limit >= 0 or (is_share and limit > 1):
                expected = "a share from 0 to 1, such as 0.1 for a tenth of the cases" if is_share else "a number from 0 on"
                raise UsageError(f"the limit of {name} is {limit:g}.\n  expected  {expected}")
        self._limits = dict(limits or {})
        self._tallies = {check.name: _Tally() for check in CHECKS}
        self._identities: set[int] = set()
        self._contents: set[int] = set()
        self._groups: dict[int, list[Any]] = {}
        self._items: dict[int, list[Any]] = {}
        self._tools: dict[str, _Tally] = {}
        self._answers: dict[int, list[Any]] = {}
        self._by_length, self._by_turns = _Pairs(), _Pairs()
        self._rewards: dict[str, array[float]] = {"train": array("d"), "evaluate": array("d")}
        self._known: dict[str, dict[int, str]] = {"train": {}, "evaluate": {}}
        self._places: dict[int, tuple[array[float], list[str]]] = {}
        self._largest: list[tuple[float, str]] = []
        self._grouped: dict[int, int] = {}
        """Groups of each item."""
        self._members: dict[int, tuple[set[int], set[int], str]] = {}
        """The items and the prompts of each group."""
        self._said: dict[int, int] = {}
        """The item for which something was first said."""
        self._models: dict[int, dict[int, _Tally]] = {}
        """What answered in each run: the model, and the versions."""
        self._tests: dict[int, tuple[set[str], list[tuple[set[str], str]]]] = {}
        """Tests of each item that the environment left in a sandbox, and those that the agent left in one that was paid."""
        self._times, self._lengths = array("d"), array("d")
        self._last: list[tuple[float, str]] = []
        self.rollouts = 0

    def add(self, line: Line) -> None:
        """Look at one line."""
        self._tallies["unreadable_lines"].add(
            line.record is None, f"{line.place}: {line.problem}" if line.record is None else ""
        )
        if line.record is not None:
            self.rollouts += 1
            self._look(line.record, observed_in(line.record), line.place)

    def _look(self, record: Record, seen: Observed, place: str) -> None:
        identity = hash((record.run, record.source, record.group, record.place, record.attempt, record.id))
        self._add("repeated_records", identity in self._identities, place)
        content = hash((identity, seen.fingerprint, seen.item, record.reward))
        if content in self._contents:
            return
        self._identities.add(identity)
        self._contents.add(content)
        is_failed = record.reward is None or record.end.endswith("_failed") or bool(record.error)
        self._add("failed_rollouts", is_failed, place, not record.error.startswith("CancelledError"))  # a run that was ended
        self._add("no_prompt", seen.has_no_prompt, place)
        self._add("cut_rollouts", record.end == "cut_by_length", place, record.end)
        self._add("turns_used_up", record.end == "turns_used_up", place, record.end)
        self._add("looping_rollouts", seen.is_looping, place)
        for name, failed in seen.calls:
            if record.tools is not None and name not in record.tools:
                continue  # which the model made up
            self._tools.setdefault(name, _Tally()).add(failed, place)
        for answer in seen.judged:
            self._add("judge_falls_back", not answer or refuses(answer), place)
            said = self._answers.setdefault(hash(score_in(answer)), [0, answer, []])
            said[0] += 1
            if len(said[2]) < SHOWN:
                said[2].append(place)
        for columns in record.sequences or ():
            lengths = {
                len(columns.tokens),
                len(columns.masks),
                len(columns.logprobs if columns.logprobs is not None else columns.tokens),
            }
            self._add("uneven_tokens", len(lengths) > 1, place)
            trained = [nats for label, nats in zip(columns.masks, columns.logprobs or (), strict=False) if label != IGNORED]
            is_all_zero = len(trained) > FEW and not any(trained) and record.source != "evaluate"
            self._add("labels_without_logprobs", is_all_zero or any(nats > TINY for nats in trained), place)
        kind = "evaluate" if record.source == "evaluate" else "train"
        if record.model:
            answered = (record.model, *sorted(record.versions.items()))
            run = self._models.setdefault(hash((record.run, record.source)), {})
            run.setdefault(hash(answered), _Tally(why=record.model)).add(True, place)
        if record.item is not None:
            self._known[kind].setdefault(hash(asked_in(record)), place)
        if record.reward is not None:
            self._add("rewards_no_numbers", not math.isfinite(record.reward), place)
            if math.isfinite(record.reward):
                self._look_at_reward(record, seen, place, record.reward, kind)

    def _look_at_reward(self, record: Record, seen: Observed, place: str, reward: float, kind: str) -> None:
        self._add("empty_answers", seen.is_silent and record.end in {"", "finished"}, place)
        self._add("calls_as_text", seen.has_call_as_text, place)
        self._add("repeated_words", seen.says_one_thing, place)
        self._add("always_zero", reward == 0, place)
        self._add("failures_as_zeros", seen.has_only_failed_calls, place, reward == 0)
        self._add("claims_pay", reward > PAID, place, seen.claims_without_work)
        if record.sequences:
            trained = any(label != IGNORED for columns in record.sequences for label in columns.masks[1:])
            self._add("tokens_without_labels", not trained, place)
        self._largest = sorted([*self._largest, (abs(reward), place)], reverse=True)[:SHOWN]
        item = hash(seen.item)
        compared = item if record.group is None else hash((record.run, record.source, record.group))
        self._by_length.add(reward, float(len(seen.answer)), place, compared)
        if record.turns is not None:
            self._by_turns.add(reward, float(record.turns), place, compared)
        self._rewards[kind].append(reward)
        if kind == "train":
            self._times.append(_moment(record.time))
            self._lengths.append(float(len(seen.answer)))
            self._last = sorted([*self._last, (self._times[-1], place)], key=lambda one: one[0])[-SHOWN:]
        self._count(self._items, item, reward, 0, place)
        if record.world is not None:
            own, written = self._tests.setdefault(item, (set(), []))
            own |= tests_in(record.world, "environment")
            written.append((tests_in(record.world, "agent") if reward > PAID else set(), place))
        if record.group is not None:
            group = self._count(self._groups, hash((record.run, record.source, record.group)), reward, seen.fingerprint, place)
            if group[0] == 1 and record.item is not None:
                self._grouped[item] = self._grouped.get(item, 0) + 1
            members = self._members.setdefault(hash((record.run, record.source, record.group)), (set(), set(), place))
            members[0].add(item)
            members[1].add(hash(record.prompt or str(seen.prompt)))
            is_elsewhere = self._said.setdefault(seen.fingerprint, item) != item if seen.length > SHORT else False
            is_case = seen.length < 0 or seen.length > (SHORT if is_elsewhere else LINE)
            if group[0] > 1:
                self._add("duplicates", seen.fingerprint in group[4], place, is_case)
            group[4].add(seen.fingerprint)
            if kind == "train":
                rewards, places = self._places.setdefault(record.place, (array("d"), []))
                rewards.append(reward)
                places += [place] if len(places) < SHOWN else []

    @staticmethod
    def _count(held: dict[int, list[Any]], key: int, reward: float, fingerprint: int, place: str) -> list[Any]:
        """Count a reward: number, smallest, largest, place, and fingerprints of a group."""
        one = held.setdefault(key, [0, reward, reward, place, set() if fingerprint else None])
        one[0] += 1
        one[1], one[2] = min(one[1], reward), max(one[2], reward)
        return one

    def _beyond_chance(self) -> None:
        """Leave of the items that never earn those that are more than there would be if all earned equally often (3 standard deviations)."""
        tally, rewards = self._tallies["items_never_earn"], [*self._rewards["train"], *self._rewards["evaluate"]]
        missed = sum(reward <= 0 for reward in rewards) / len(rewards) if rewards else 0.0
        chances = [missed**count for count, *_ in self._items.values() if count >= OFTEN]
        expected, deviation = sum(chances), math.sqrt(sum(one * (1 - one) for one in chances))
        if missed < 1 and tally.count <= expected + 3 * deviation:
            tally.count, tally.places = 0, []

    def _add(self, name: str, counts: bool, place: str, is_case: Any = True) -> None:
        if is_case:
            self._tallies[name].add(counts, place)

    # ---------------------------------------------------------------------- judged

    def verdicts(self) -> list[Verdict]:
        """Return a verdict of each check, in the order of the table."""
        self._close()
        return [self._verdict(check) for check in CHECKS]

    def _close(self) -> None:
        """Count what is known at the end only."""
        groups, items = self._tallies["constant_groups"], self._tallies["items_never_earn"]
        groups.seen = groups.count = items.seen = items.count = 0
        for count, least, most, place, _ in self._groups.values():
            self._add("constant_groups", math.isclose(least, most, rel_tol=SAME, abs_tol=SAME), place, count > 1)
        for count, _, most, place, _ in self._items.values():
            self._add("items_never_earn", most <= 0, place, count >= OFTEN)
        self._beyond_chance()
        several = self._tallies["mixed_groups"] = _Tally()
        for items_in, prompts, place in self._members.values():  # one of them may be another each time
            several.add(len(items_in) > 1 and len(prompts) > 1, place)
        item, most_grouped = max(self._grouped.items(), key=lambda one: one[1], default=(0, 0))
        places = [self._items[item][3]] if self._grouped else []
        self._tallies["one_item"] = _Tally(seen=sum(self._grouped.values()), count=most_grouped, places=places)
        usual = [abs(one) for rewards in self._rewards.values() for one in rewards if one]
        self._tallies["reward_outliers"] = outliers = _Tally(seen=len(usual))
        if usual:
            least = OUTLIER * sorted(usual)[len(usual) * 9 // 10]
            outliers.count = sum(one > least for one in usual)
            outliers.places = [place for one, place in self._largest if one > least]
        trained, asked = self._tallies["trained_on_evaluation"], self._known["evaluate"]
        trained.seen = trained.count = 0
        for item, place in asked.items() if self._known["train"] else ():
            trained.add(item in self._known["train"], place)
        mixed, edited = self._tallies["mixed_models"], self._tallies["rewritten_tests"]
        mixed.seen = mixed.count = edited.seen = edited.count = 0
        for run in self._models.values():
            most, *others = sorted(run.values(), key=lambda one: -one.seen)
            mixed.seen += sum(one.seen for one in run.values())
            mixed.count += sum(one.seen for one in others)
            mixed.places += [place for one in others for place in one.places][: SHOWN - len(mixed.places)]
            mixed.why = mixed.why or (f"{most.why}, {others[0].why}" if others else "")
        for own, written in self._tests.values():
            for tests, place in written if own else ():
                edited.add(bool(tests & own), place)
        known = [(tool.value or 0.0, name) for name, tool in self._tools.items() if tool.seen >= 10]  # noqa: PLR2004
        if known:
            _, worst = max(known)
            self._tallies["failing_tools"] = self._tools[worst]
            self._tools[worst].why = worst
        if self._answers:
            count, answer, places = max(self._answers.values(), key=lambda said: said[0])
            seen = sum(said[0] for said in self._answers.values())
            self._tallies["judge_says_one_thing"] = _Tally(seen=seen, count=count, places=places, why=shorten(repr(answer), 60))

    def _verdict(self, check: Check) -> Verdict:
        limit = self._limits.get(check.name, check.limit)
        tally = self._tallies[check.name]
        value, seen, places, why = tally.value, tally.seen, tally.places, tally.why
        if not check.is_share:
            value, why, seen, places = self._measured(check.name)
        status: Status = "unhealthy" if value is not None and value > limit else "healthy"
        if value is None or seen < check.least:
            status, why = "unobserved", f"{seen} cases; it requires {check.least}" if seen < check.least else "all the same"
        if check.is_share and value == 0:
            why = ""
        return Verdict(
            name=check.name,
            status=status,
            says=check.says,
            value=value,
            limit=limit,
            seen=seen,
            rollouts=tuple(places),
            why=why,
        )

    def _measured(self, name: str) -> tuple[float | None, str, int, list[str]]:
        train, held_out = self._rewards["train"], self._rewards["evaluate"]
        if name in {"reward_follows_length", "reward_follows_turns"}:
            pairs = self._by_length if name == "reward_follows_length" else self._by_turns
            value, seen = pairs.measured
            return value, "", seen, [place for _, place in sorted(pairs.most, reverse=True)[:SHOWN]]
        if name == "reward_by_place":
            return self._by_place()
        if name in {"falling_reward", "shrinking_answers"}:
            values, quarter = train if name == "falling_reward" else self._lengths, len(train) // 4
            if not quarter:
                return None, "", len(train), []
            order = sorted(range(len(train)), key=self._times.__getitem__)
            first, last = ([values[place] for place in part] for part in (order[:quarter], order[-quarter:]))
            by, why = _fall(first, last, "then")
            by /= (fmean(first) or 1.0) if values is self._lengths else 1.0
            return by, why, len(train), [place for _, place in self._last]
        if not train or not held_out:
            return None, "", min(len(train), len(held_out)), []
        return *_fall(train, held_out, "and"), min(len(train), len(held_out)), [place for _, place in self._last]

    def _by_place(self) -> tuple[float | None, str, int, list[str]]:
        """Return by how much the mean of one place of the groups is above, or below, that of the others."""
        seen, found = sum(len(own) for own, _ in self._places.values()), [(0.0, "", [""])]
        for place, (own, places) in self._places.items():
            others = [reward for other, (rewards, _) in self._places.items() if other != place for reward in rewards]
            for one, other in ((own, others), (others, own)) if len(own) >= MANY and others else ():
                by, why = _fall(one, other, "and", errors=5)  # of many places one is far out
                found.append((by, f"place {place}: {why}", places))
        by, why, places = max(found)
        return by, why, seen, places


def _moment(text: str) -> float:
    """Return a time in seconds; all that is not known is the same one, so that the order of the lines holds."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _fall(one: Sequence[float], other: Sequence[float], word: str, errors: int = 3) -> tuple[float, str]:
    """Return by how much the mean of one is above that of the other, 0 where chance explains it (standard errors), and both."""
    first, last = fmean(one), fmean(other)
    error = math.sqrt(pvariance(one, first) / len(one) + pvariance(other, last) / len(other))
    return (first - last if first - last > errors * error else 0.0), f"{first:.2f} {word} {last:.2f}"


def health_of(files: Sequence[str | Path], limits: Mapping[str, float] | None = None) -> list[Verdict]:
    """Return the verdicts over all rollouts of some files. Raises: no rollout, or an unknown check → UsageError."""
    health, first = Health(limits), None
    for line in read_lines(files):
        first = first or line
        health.add(line)
    if not health.rollouts:
        raise none_in(files, first)
    return health.verdicts()
