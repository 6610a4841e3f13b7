"""Asks a verifier about programs that are wrong in one place: which of them it pays like gold.

Place in the flow: the scenario `wrong_programs` runs one search for each of a few items whose gold writes Python; HE405 reads the rungs.

A mutant may do the same as gold. Only one that gives something else for an input like those that the item, the prompt or the verifier
holds counts as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.inference.steps import Turn
from pytest_hermes_env.play.cases.code_changes import is_code, is_program
from pytest_hermes_env.play.cases.item_cases import work_of
from pytest_hermes_env.play.cases.mutants import Mutant, mutants
from pytest_hermes_env.play.cases.one_value import spread
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, Slot
from pytest_hermes_env.play.cases.values import GOLD, NEAR_MISS, WRONG_PROGRAM, Transcript
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.probes_of_code import PROGRAM, runs_of, snippets_of
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import as_case
from pytest_hermes_env.play.tampering.surface import surface_of
from pytest_hermes_env.play.tool_backend import close_sandbox, new_sandbox_like
from pytest_hermes_env.sandbox.context import FakeToolContext

MADE = 120
"""Mutants of one file that are compared with gold."""
COMPARING_S = 600
LONGEST = 160
"""Characters of what a program gives that are shown."""


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A program that gives something else than gold for a ``share`` of the inputs, and one of them in words."""

    mutant: Mutant
    share: float
    witness: str


@dataclass(kw_only=True)
class WrongPrograms:
    """The search on one item, with at most ``most`` wrong programs. ``notes`` are why there was nothing to ask about."""

    stage: Stage
    item: Any
    label: str
    gold: Transcript
    most: int
    notes: list[str] = field(default_factory=list)

    async def run(self) -> list[Rung]:
        """Return the rung of gold, and one for each wrong program that was played."""
        gold = await self._play(GOLD, self.gold.turns)
        if not gold.rung.reward or gold.rung.problem or not gold.records:
            return [gold.rung]
        work = work_of(self.gold, self.item, gold, ())
        found = [gold.rung]
        slots = [slot for slot in work.slots() if slot.name.endswith(".py") and is_code(slot.text)]
        slots += [slot for slot in work.slots() if slot.name == ANSWER and is_code(slot.text)]
        for slot in slots[:1]:
            wrong = self._wrong(slot, gold, work)
            self.notes += [] if wrong else [f"no input is known for which a mutant of {slot.name} differs from it"]
            for one in spread(wrong, self.most):
                self.stage.step()
                turns = slot.put(one.mutant.text)
                rung = (await self._play(WRONG_PROGRAM, turns)).rung
                found.append(
                    replace(
                        rung, change=_told(one.mutant), worth=Worth.WORSE, against=one.witness, hack=as_case(turns, NEAR_MISS)
                    )
                )
        self.notes += [] if slots else ["gold writes no Python that the verifier read"]
        return found

    async def _play(self, name: str, turns: tuple[Turn, ...]) -> PlayedCase:
        transcript = replace(self.gold, turns=turns)
        blank = Rung(name=name, item=self.label, is_automatic=name != GOLD)
        return await played(self.stage, Player(transcript, scripted(turns)), self.item, transcript, blank)

    def _wrong(self, slot: Slot, gold: PlayedCase, work: Any) -> list[Wrong]:
        """Return the mutants that differ from gold, those first that differ most."""
        own = reward_constants(type(self.stage.env), type(self.stage.env).compute_reward)
        surface = surface_of(gold, gold, work, cwd="/workspace", constants=own.texts)
        given = [
            *texts_of(self.item),
            work.prompt,
            *(line for line, _ in surface.commands),
            *surface.uploads.values(),
            *own.texts,
        ]
        name = slot.name.rpartition("/")[2] if slot.name != ANSWER else "solution.py"
        snippets = snippets_of(slot.text, given, self.item)
        runs = runs_of(name, [line for line, _ in surface.commands], self.item) if is_program(slot.text) or not snippets else []
        made = [*mutants(slot.text, MADE)]
        answers = (
            self._answers(name, [slot.text, slot.text, *(one.text for one in made)], snippets, runs) if snippets or runs else []
        )
        return sorted(_compared(made, answers, [*snippets, *map(_shown_run, runs)]), key=lambda one: -one.share)

    def _answers(self, name: str, programs: Sequence[str], snippets: Sequence[str], runs: Sequence[Any]) -> list[list[str]]:
        """Return what each program gives for each input, as it runs in a new sandbox."""
        sandbox = new_sandbox_like(self.stage.sandbox)
        context = FakeToolContext(sandbox)
        context.write_file("probe.py", PROGRAM)
        context.write_file("given.json", json.dumps({"name": name, "programs": programs, "snippets": snippets, "runs": runs}))
        done = context.terminal("python3 -I probe.py given.json", timeout=COMPARING_S)
        close_sandbox(sandbox)
        _, told, answers = str(done.get("output") or "").partition("answers ")
        if not told:
            self.notes.append(f"programs could not be compared: {str(done.get('error') or done.get('output'))[-LONGEST:]}")
        return list(json.loads(answers)) if told else []


def _compared(made: Sequence[Mutant], answers: Sequence[Sequence[str]], inputs: Sequence[str]) -> Iterator[Wrong]:
    if not answers:
        return
    first, again, *others = answers
    usable = [n for n, answer in enumerate(first) if answer == again[n] and not answer.startswith("raised ")]
    for mutant, given in zip(made, others, strict=True):
        differing = [n for n in usable if given[n] != first[n]]
        if differing:
            shown = min(differing, key=lambda n: len(inputs[n]))
            asked, one, other = _shown(inputs[shown]), _shown(given[shown]), _shown(first[shown])
            yield Wrong(
                mutant=mutant, share=len(differing) / len(usable), witness=f"{asked} gives {one}, and with gold {other}"
            )


def _shown(text: str) -> str:
    """Return an input, or what came of it, in one line."""
    line = (
        text.removeprefix("print(repr(").removesuffix("))")
        if text.count("\n") == 0 and text.startswith("print(repr(")
        else text
    )
    line = " / ".join(line.strip().splitlines()) or "nothing"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _shown_run(run: tuple[list[str], str]) -> str:
    argv, stdin = run
    return " ".join(["the program", *argv, *([f"with {stdin!r} on stdin"] if stdin else [])])


def _told(mutant: Mutant) -> str:
    """Return what is wrong with a mutant: the line as it reads."""
    return f"{mutant.name} in line {mutant.line}: `{mutant.after or 'nothing'}` for `{mutant.before}`"
