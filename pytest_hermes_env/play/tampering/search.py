"""Searches for what an agent that does none of the work can leave behind so that the verifier pays, and shrinks what does.

Place in the flow: the scenario `tampering` runs one search, on an item whose gold earns, and HE410 reads its rungs; `hermes-env attack` asks for the whole of it.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from pytest_hermes_env.inference.steps import Call, Turn, call, say, turn
from pytest_hermes_env.play.auto_script import SILENT_ANSWER, silent_policy
from pytest_hermes_env.play.cases.item_cases import work_of
from pytest_hermes_env.play.cases.judged import worst_of
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import Work
from pytest_hermes_env.play.cases.values import ATTACK, GOLD, HACK, NOTHING, WRONG_CONTENT, Transcript
from pytest_hermes_env.play.cases.writing import writing
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.payloads import patching
from pytest_hermes_env.play.tampering.surface import USER_SITE, Surface, surface_of

SHARE = 0.5
"""The part of what gold earns above wrong work from which on an attack is paid."""
MOST_SHRINKING = 10
TINY = 1e-9


@dataclass(kw_only=True)
class Search:
    """The search on one item. ``most`` is how many attacks that pay are looked for; ``worse`` are the declared cases that earn less than gold."""

    stage: Stage
    item: Any
    label: str
    gold: Transcript
    most: int = 1
    is_full: bool = False
    worse: Sequence[Transcript] = ()
    played: int = 0
    families: set[str] = field(default_factory=set)
    paid: set[str] = field(default_factory=set)
    sure: int = 0
    full: float = 0.0
    """What gold earned."""
    left: int = 0
    """Attacks for which there was no time; ``remembered`` are those that an earlier search played."""
    remembered: int = 0
    note: str = ""
    """Why there was nothing to attack; ``why_none`` is why the search could not begin."""
    why_none: str = ""

    async def run(self) -> list[Rung]:
        """Return the rungs of gold, of nothing and of wrong work, and those of attacks that are paid."""
        gold = await self._play(GOLD, Player(self.gold), self.gold)
        at_start = replace(self.gold, turns=(), judge=())
        idle = await self._play(NOTHING, Player(at_start, silent_policy), at_start)
        if not gold.rung.reward or gold.rung.problem or not gold.records:
            self.why_none = gold.rung.error or gold.rung.problem or gold.rung.unavailable or "gold earned nothing"
            return [gold.rung, idle.rung]
        self.full = gold.rung.reward
        work = work_of(self.gold, self.item, gold, ())
        bad = work.all_wrong(work.slots())
        wrong = await self._attempt(WRONG_CONTENT, bad)
        if (
            wrong.rung.reward or 0.0
        ) > gold.rung.reward * SHARE:  # most of the work is still done, such as what was committed before
            bad, wrong = (turn(say(SILENT_ANSWER)),), idle
        floor = max(rung.reward or 0.0 for rung in (idle.rung, wrong.rung))
        own = reward_constants(type(self.stage.env), type(self.stage.env).compute_reward)
        surface = surface_of(gold, idle, work, cwd=self._cwd(), constants=own.texts)
        found = [gold.rung, idle.rung, wrong.rung]
        if gold.rung.reward - floor <= TINY:
            self.why_none = f"wrong work earned {floor:g}, and gold {gold.rung.reward:g}"
        elif not {"terminal", "write_file"} & {*surface.tools}:
            self.note = "the agent can write no file"
        elif not surface.is_watched:
            self.note = "the verifier ran no program, and read no file but the work"
        else:
            least = floor + SHARE * (gold.rung.reward - floor)
            # where gold changes what was there, that is work that is not done, too
            bases = [bad, (turn(say(SILENT_ANSWER)),)] if {*surface.work} & {*surface.prepared} else [bad]
            for base in bases:
                tried = [
                    one
                    for one in [*self._of_worse(surface), *attacks(surface, is_full=self.is_full)]
                    if base is bad
                    or one.is_beside_work
                    or not ((one.is_of_session and one.files) or {*one.files} & {*surface.work})
                ]
                found += [
                    self._shown(*pair, gold.rung.reward, floor) for pair in await self._found(tried, surface, base, least)
                ]
        return found

    def _of_worse(self, surface: Surface) -> Iterator[Attack]:
        """Yield declared work that earns less, such as that which is too slow, after code that stops the clocks."""
        for transcript in self.worse:
            slots = Work(turns=transcript.turns, item=self.item).slots()
            files = {posixpath.join(surface.cwd, one.name): one.text for one in slots if one.name.endswith(".py")}
            if files:
                yield Attack(
                    family="declared worse work, after code that stops the clocks and lets all tests pass",
                    files={path: patching() + text for path, text in files.items()},
                    control=Attack(family="declared worse work", files=files),
                )

    async def _found(
        self, tried: Sequence[Attack], surface: Surface, bad: tuple[Turn, ...], least: float
    ) -> list[tuple[Attack, PlayedCase, tuple[Turn, ...]]]:
        found: list[tuple[Attack, PlayedCase, tuple[Turn, ...]]] = []
        for attack in tried:
            is_enough = self.sure >= self.most or (attack.is_of_session and len(self.paid) >= self.most)
            if is_enough or attack.family in self.paid:
                continue
            if self.stage.attack.is_over:
                self.left += 1
                continue
            self.families.add(attack.family)
            turns = with_attack(bad, attack, surface.tools)
            one = await self._tried(turns, least) if turns else None
            if one is not None and attack.control is not None:
                one = one if await self._beats(one, with_attack(bad, attack.control, surface.tools)) else None
            if one is not None:
                found.append(await self._shrunk(attack, one, turns, surface, bad, least))
                self.paid.add(attack.family)
                self.sure += not attack.is_of_session  # what a session allows is a warning, which may hide no error
        return found

    async def _beats(self, one: PlayedCase, control: tuple[Turn, ...]) -> bool:
        """Whether an attack earns much of what gold earns above the same share of the work without it."""
        alone = await self._attempt(ATTACK, control)
        floor = (alone.rung.reward or 0.0) if _pays(alone, 0.0) else 0.0
        return _pays(one, floor + SHARE * (self.full - floor))

    async def _tried(self, turns: tuple[Turn, ...], least: float) -> PlayedCase | None:
        """Return an attack that pays; None where it was refused, now or in the search that this one resumes."""
        plan = self.stage.attack
        key = plan.key(self.stage.env, self.item, as_case(turns))
        if (earned := plan.known(key)) is not None and earned < least:
            self.remembered += 1
            return None
        if _pays(one := await self._attempt(ATTACK, turns), least):
            return one
        if one.rung.reward is not None and not one.was_stopped:
            plan.note(key, one.rung.reward)
        return None

    async def _shrunk(
        self, attack: Attack, one: PlayedCase, turns: tuple[Turn, ...], surface: Surface, bad: tuple[Turn, ...], least: float
    ) -> tuple[Attack, PlayedCase, tuple[Turn, ...]]:
        """Return the attack with as few files as pay, without the wrong work if that is not needed."""
        best = attack, one, turns
        for base in ((turn(say(SILENT_ANSWER)),), bad):
            if _pays(again := await self._attempt(ATTACK, small := with_attack(base, best[0], surface.tools)), least):
                best, bad = (best[0], again, small), base
                break
        for path in [*attack.files][::-1][:MOST_SHRINKING] if len(attack.files) > 1 else ():
            less = best[0].without(path)
            small = with_attack(bad, less, surface.tools)
            if (less.files or less.lines) and _pays(again := await self._attempt(ATTACK, small), least):
                best = less, again, small
        return best

    async def _attempt(self, name: str, turns: tuple[Turn, ...]) -> PlayedCase:
        self.stage.step()
        worst = worst_of(self.gold.judge)
        transcript = replace(self.gold, turns=turns, judge=(say(worst),) if worst else ())
        return await self._play(name, Player(transcript, scripted(turns)), transcript)

    async def _play(self, name: str, player: Player, transcript: Transcript) -> PlayedCase:
        self.played += 1
        blank = Rung(name=name, item=self.label, is_automatic=name not in {GOLD, ATTACK})
        one = await played(self.stage, player, self.item, transcript, blank)
        self.why_none = self.why_none or one.rung.unavailable  # what this machine refuses to run was not tried
        return one

    def _cwd(self) -> str:
        return str(getattr(getattr(self.stage.sandbox, "files", None), "cwd", "") or "/workspace")

    @staticmethod
    def _shown(attack: Attack, one: PlayedCase, turns: tuple[Turn, ...], of_gold: float, floor: float) -> Rung:
        return replace(
            one.rung,
            change=attack.mechanism,
            worth=Worth.UNKNOWN if attack.is_of_session else Worth.WORSE,
            hack=as_case(turns),
            against=f"gold earns {of_gold:g}, wrong work {floor:g}",
        )


def with_attack(base: tuple[Turn, ...], attack: Attack, tools: tuple[str, ...]) -> tuple[Turn, ...]:
    """Return turns with an attack after their last call; nothing where the agent has no tool for it."""
    lines = [*(_writing(path, text) for path, text in attack.files.items()), *attack.lines]
    if "terminal" in tools:
        calls = [call("terminal", command="\n".join(lines))]
    elif attack.lines or attack.first or any(path.startswith(("~", USER_SITE)) for path in attack.files):
        return ()
    else:
        calls = [call("write_file", path=path, content=text) for path, text in attack.files.items()]
    last = max((number for number, one in enumerate(base) if one.every(Call)), default=-1)
    if attack.first:
        base = (turn(call("terminal", command="\n".join(attack.first))), *base)
        last += 1
    if not calls or not lines:
        return base
    return (*base[: last + 1], turn(*calls), *base[last + 1 :])


def _writing(path: str, text: str) -> str:
    """Return a command that writes a file; ``~`` and the user's site-packages are found by the shell."""
    place = shlex.quote(path)
    for prefix, found in (("~/", '"$HOME"/'), (f"{USER_SITE}/", '"$(python3 -m site --user-site)"/')):
        if path.startswith(prefix):
            place = found + shlex.quote(path.removeprefix(prefix))
    return writing(place, f"{text.rstrip()}\n", folder=f'"$(dirname {place})"')


def as_case(turns: tuple[Turn, ...], name: str = HACK) -> str:
    """Return turns as a case of a file of cases."""
    steps: list[dict[str, Any]] = []
    for one in turns:
        for step in one.steps:
            if isinstance(step, Call):
                steps.append({"call": step.tool, "with": yaml.safe_load(step.arguments_text)})
            else:
                steps.append({"say": getattr(step, "text", "")})
    return str(yaml.dump({name: steps}, Dumper=_Lines, sort_keys=False, allow_unicode=True, width=1_000))


class _Lines(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _of_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Lines.add_representer(str, _of_text)


def _pays(one: PlayedCase, least: float) -> bool:
    rung = one.rung
    return rung.reward is not None and rung.reward >= least and not (rung.is_judge_guessed or rung.is_foreign)
