"""Asks a verifier about programs that are wrong in one place: which of them it pays like gold.

Place in the flow: the scenario `wrong_programs` runs one search for each of a few items whose gold writes Python; HE405 reads the rungs.

A mutant may do the same as gold. One that is paid counts as wrong only where it gives something else for an input like those that the item,
the prompt or the verifier holds: what its functions return, or what the verifier's own commands print.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.inference.steps import Turn
from pytest_hermes_env.play.cases.code_changes import is_code
from pytest_hermes_env.play.cases.item_cases import work_of
from pytest_hermes_env.play.cases.kinds_of_input import kinds_in, without_kind
from pytest_hermes_env.play.cases.mutants import Mutant, mutants
from pytest_hermes_env.play.cases.one_value import spread
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, Slot
from pytest_hermes_env.play.cases.text_mutants import of_patterns_in, text_mutants
from pytest_hermes_env.play.cases.values import GOLD, NEAR_MISS, WRONG_PROGRAM, Transcript
from pytest_hermes_env.play.inputs.calls import Like
from pytest_hermes_env.play.inputs.witnesses import Witnesses
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import as_case

TINY = 1e-9
LONG, AROUND = 40, 6
"""Characters of a line that is shown in part, and words and signs on each side of what is other in it."""
MOST_NAMED = 4
"""Programs that are named of those that are paid and may do the same."""


@dataclass(kw_only=True)
class WrongPrograms:
    """The search on one item, with at most ``most`` mutants, and kinds of input if asked. ``notes`` are why there was nothing to ask about."""

    stage: Stage
    item: Any
    label: str
    gold: Transcript
    most: int
    has_kinds: bool = False
    notes: list[str] = field(default_factory=list)
    left: int = 0
    """Programs for which there was no time."""

    async def run(self) -> list[Rung]:
        """Return the rung of gold, and one for each wrong program that was played."""
        gold = await self._play(GOLD, self.gold.turns)
        if not gold.rung.reward or gold.rung.problem or not gold.records:
            return [gold.rung]
        work = work_of(self.gold, self.item, gold, ())
        slots = sorted(work.slots(), key=lambda slot: slot.name == ANSWER)
        slot = next((slot for slot in slots if _is_python(slot)), None)
        slot = slot or next((slot for slot in slots if text_mutants(slot.name, slot.text, 1)), None)
        if slot is None:
            self.notes.append(
                "gold writes no program, query or pattern, in a language that is known here, that the verifier read"
            )
            return [gold.rung]
        refused: list[Rung] = []
        paid: list[tuple[Mutant, Rung]] = []
        is_python = _is_python(slot)
        like = Like.of(slot.text if is_python else "", work.prompt)
        kinds = [(kind, without_kind(slot.text, kind)) for kind in kinds_in(work.prompt) if self.has_kinds and is_python]
        of_kind = {mutant.text: replace(like, kind=kind) for kind, mutant in kinds if mutant is not None}
        if is_python:
            plain = spread([*mutants(slot.text, self.most), *of_patterns_in(slot.text)], self.most)
        else:
            plain = text_mutants(slot.name, slot.text, self.most)
        for mutant in [*plain, *(mutant for _, mutant in kinds if mutant is not None)]:
            if self.stage.attack.is_over:
                self.left += 1
                continue
            self.stage.step()
            turns = slot.put(mutant.text)
            rung = await self._asked(turns)
            rung = replace(rung, change=_told(mutant), worth=Worth.WORSE, hack=as_case(turns, NEAR_MISS))
            if rung.reward is not None and rung.reward >= gold.rung.reward - TINY:
                paid.append((mutant, rung))
            else:
                refused.append(rung)
        witnesses = Witnesses(stage=self.stage, slot=slot, gold=gold, work=work, item=self.item, notes=self.notes)
        texts = [mutant.text for mutant, _ in paid]
        found = await asyncio.to_thread(witnesses.of, like, texts) if texts else {}
        for text in texts:
            if text in of_kind and text not in found:
                found |= await asyncio.to_thread(witnesses.of, of_kind[text], [text])
        told = [(found[mutant.text], rung) for mutant, rung in paid if mutant.text in found]
        wrong = [replace(rung, against=witness) for (_, witness), rung in sorted(told, key=lambda one: -one[0][0])]
        self.notes.append(
            f"{len(refused)} programs that are wrong in one place were refused on {self.label}, and {len(paid)} paid"
        )
        if open_ones := [_told(mutant) for mutant, _ in paid if mutant.text not in found]:
            named = "; ".join(open_ones[:MOST_NAMED])
            self.notes.append(
                f"of {len(open_ones)} of these no input is known for which they give something else than gold: look at {named}"
            )
        return [gold.rung, *wrong, *refused]

    async def _asked(self, turns: tuple[Turn, ...]) -> Rung:
        """Return what a wrong program earns; one that an earlier search played and that earned nothing like gold is not played again."""
        plan = self.stage.attack
        key = plan.key(self.stage.env, self.item, as_case(turns))
        if (earned := plan.known(key)) is not None:
            return Rung(name=WRONG_PROGRAM, item=self.label, is_automatic=True, reward=earned)
        rung = (await self._play(WRONG_PROGRAM, turns)).rung
        if rung.reward is not None:
            plan.note(key, rung.reward)
        return rung

    async def _play(self, name: str, turns: tuple[Turn, ...]) -> PlayedCase:
        transcript = replace(self.gold, turns=turns)
        blank = Rung(name=name, item=self.label, is_automatic=name != GOLD)
        return await played(self.stage, Player(transcript, scripted(turns)), self.item, transcript, blank)


def _is_python(slot: Slot) -> bool:
    return is_code(slot.text) and slot.name.endswith((".py", ANSWER))


def _told(mutant: Mutant) -> str:
    """Return what is wrong with a mutant: how its line reads, of a long one the part that is other."""
    if mutant.before == mutant.after:
        return mutant.name
    parts = [re.findall(r"\w+|\W", text) for text in (mutant.before, mutant.after)]
    pairs = [*zip(*parts, strict=False)]
    same = next((place for place, (one, other) in enumerate(pairs) if one != other), len(pairs))
    ends = [*zip(*(part[same:][::-1] for part in parts), strict=False)]
    last = next((place for place, (one, other) in enumerate(ends) if one != other), len(ends))
    first = max(0, same - AROUND) if len(mutant.before) > LONG else 0
    more = max(0, last - AROUND) if len(mutant.before) > LONG else 0
    shown = [f"{'…' if first else ''}{''.join(part[first : len(part) - more])}{'…' if more else ''}" for part in parts]
    return f"{mutant.name} in line {mutant.line}: `{shown[1] or 'nothing'}` for `{shown[0]}`"
