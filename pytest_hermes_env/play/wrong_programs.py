"""Asks a verifier about programs that are wrong in one place: which of them it pays like gold.

Place in the flow: the scenario `wrong_programs` runs one search for each of a few items whose gold writes Python; HE405 reads the rungs.

A mutant may do the same as gold. One that is paid counts as wrong only where it gives something else for an input like those that the item,
the prompt or the verifier holds: what its functions return, or what the verifier's own commands print.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.inference.steps import Turn
from pytest_hermes_env.play.cases.code_changes import is_code
from pytest_hermes_env.play.cases.item_cases import work_of
from pytest_hermes_env.play.cases.kinds_of_input import kinds_in, without_kind
from pytest_hermes_env.play.cases.mutants import Mutant, mutants
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, Slot, Work
from pytest_hermes_env.play.cases.text_mutants import kind_of_names, text_mutants
from pytest_hermes_env.play.cases.values import GOLD, NEAR_MISS, WRONG_PROGRAM, Transcript
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.probes_of_code import PROGRAM, Like, calls_like, snippets_of
from pytest_hermes_env.play.probing.reward_constants import reward_constants
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import as_case
from pytest_hermes_env.play.tool_backend import close_sandbox, new_sandbox_like
from pytest_hermes_env.sandbox.context import FakeToolContext

TINY = 1e-9
COMPARING_S = 600
LONGEST = 160
"""Characters of what a program gives that are shown."""
REPLAYS = 60
"""Times that the verifier's commands are run on a program that it paid, and on gold."""
MOST_NAMED = 4
"""Programs that are named of those that are paid and may do the same."""
OF_KIND = 5
"""Inputs of one kind on which they are run."""
_UNKNOWN = re.compile(r"raised (?:nothing|124|-1)\b")
"""What was stopped by a clock, which is another one on a busy machine, or ended without an answer."""
_OF_ERRORS = re.compile(r"\brais|\berror|\bexception|\binvalid|\brefus|\breject|\bfail", re.IGNORECASE)
_ERROR = re.compile(r"error|exception|traceback|raises", re.IGNORECASE)
_FLOAT = re.compile(r"(\d)\.0+\b")


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
            self.notes.append("gold writes no Python, SQL, shell script or pattern that the verifier read")
            return [gold.rung]
        refused: list[Rung] = []
        paid: list[tuple[Mutant, Rung]] = []
        is_python = _is_python(slot)
        like = Like.of(slot.text if is_python else "", work.prompt)
        kinds = [(kind, without_kind(slot.text, kind)) for kind in kinds_in(work.prompt) if self.has_kinds and is_python]
        of_kind = {mutant.text: replace(like, kind=kind) for kind, mutant in kinds if mutant is not None}
        plain = mutants(slot.text, self.most) if is_python else text_mutants(slot.name, slot.text, self.most)
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
        texts = [mutant.text for mutant, _ in paid]
        shown = await asyncio.to_thread(self._witnesses, slot, gold, work, like, [one for one in texts if one not in of_kind])
        if not is_python and (names := kind_of_names(slot.name, slot.text)) is not None:
            of_kind = {text: replace(like, kind=names) for text in texts if text not in shown}
        for text in texts:
            if text in of_kind:
                shown |= await asyncio.to_thread(self._witnesses, slot, gold, work, of_kind[text], [text])
        told = [(shown[mutant.text], rung) for mutant, rung in paid if mutant.text in shown]
        wrong = [replace(rung, against=witness) for (_, witness), rung in sorted(told, key=lambda one: -one[0][0])]
        self.notes.append(
            f"{len(refused)} programs that are wrong in one place were refused on {self.label}, and {len(paid)} paid"
        )
        if open_ones := [_told(mutant) for mutant, _ in paid if mutant.text not in shown]:
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

    def _witnesses(
        self, slot: Slot, gold: PlayedCase, work: Work, like: Like, programs: Sequence[str]
    ) -> dict[str, tuple[float, str]]:
        """Return for each program that gives something else than gold the share of the inputs, if it is known, one of them, and what it gives."""
        if not programs:
            return {}
        own = reward_constants(type(self.stage.env), type(self.stage.env).compute_reward)
        made = gold.records[0].tool_calls
        last = max((number for number, one in enumerate(made) if one.by_agent), default=-1)
        calls = [(one.name, one.arguments) for one in made[last + 1 :] if not one.by_agent]
        said = [str(value) for _, arguments in calls for value in arguments.values()]
        snippets = _is_python(slot) and snippets_of(
            slot.text, [*texts_of(self.item), work.prompt, *said, *own.texts], self.item, like
        )
        is_of_errors = like.kind is None or _OF_ERRORS.search(work.prompt) is not None
        found: dict[str, tuple[float, str]] = {}
        if snippets:
            first, again, *others = self._answers([slot.text, slot.text, *programs], snippets) or [[], []]
            for program, given in zip(programs, others, strict=False):
                differing = [
                    n for n, answer in enumerate(first) if _differs(answer, again[n], given[n], is_of_errors=is_of_errors)
                ]
                if differing:
                    n = min(differing, key=lambda n: ("-" in snippets[n], len(snippets[n])))
                    witness = f"{_shown(snippets[n])} gives {_shown(given[n])}, and with gold {_shown(first[n])}"
                    found[program] = len(differing) / len(snippets), witness
        if slot.name != ANSWER:
            files = {path: node.data for path, node in gold.files.items()}
            open_ones = [one for one in programs if one not in found]
            varied = itertools.islice(calls_like(calls, slot.name, like), None if like.kind is None else OF_KIND)
            replayed = self._replayed(slot.name, slot.text, files, varied, open_ones, is_of_errors=is_of_errors)
            found |= {program: (0.0, witness) for program, witness in replayed.items()}
        return found

    def _answers(self, programs: Sequence[str], snippets: Sequence[str]) -> list[list[str]]:
        """Return what each program gives for each input, as it runs in a new sandbox."""
        given = json.dumps({"programs": programs, "snippets": snippets})
        calls = [("terminal", {"command": "python3 -I probe.py given.json", "timeout": COMPARING_S})]
        printed = self._ran({"probe.py": PROGRAM.encode(), "given.json": given.encode()}, calls)
        _, told, answers = printed.partition("answers ")
        if not told:
            self.notes.append(f"functions could not be compared with gold's: {_shown(printed)}")
        return list(json.loads(answers)) if told else []

    def _replayed(
        self,
        path: str,
        code: str,
        files: Mapping[str, bytes],
        inputs: Iterator[Any],
        programs: Sequence[str],
        *,
        is_of_errors: bool,
    ) -> dict[str, str]:
        """Run the verifier's calls, with inputs like its own, on gold and on programs, and return what they print otherwise."""
        found: dict[str, str] = {}
        for varied, told in itertools.islice(inputs, REPLAYS // (2 + len(programs))):
            open_ones = [program for program in programs if program not in found]
            if not open_ones:
                break
            first, again = (self._ran({**files, path: code.encode()}, varied) for _ in range(2))
            for program in open_ones:
                given = self._ran({**files, path: program.encode()}, varied)
                if _differs(first, again, given, is_of_errors=is_of_errors):
                    asked, one, other = _first_difference(told, given, first)
                    found[program] = f"{asked}the verifier's commands give {one}, and with gold {other}"
        return found

    def _ran(self, files: Mapping[str, bytes], calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Return what calls print in a new sandbox with these files."""
        sandbox = new_sandbox_like(self.stage.sandbox)
        context, printed = FakeToolContext(sandbox), []
        for path, data in files.items():
            sandbox.write_bytes(path, data)
        for name, arguments in calls:
            if name == "terminal":
                done = context.terminal(arguments["command"], timeout=arguments.get("timeout") or COMPARING_S)
                printed.append(f"{done.get('output')}" if not done.get("exit_code") else f"raised {done.get('exit_code')}")
            elif name == "write_file":
                context.write_file(arguments["path"], arguments["content"])
        close_sandbox(sandbox)
        return "\n".join(printed)


def _is_python(slot: Slot) -> bool:
    return is_code(slot.text) and slot.name.endswith((".py", ANSWER))


def _differs(first: str, again: str, given: str, *, is_of_errors: bool = True) -> bool:
    """Tell whether a program gives something else than gold does each time: 3.0 is 3. An error of gold's says nothing, and neither does a clock.

    Without ``is_of_errors``, nor do words of one.
    """
    if first != again or "raised " in first or _UNKNOWN.search(given) or (not is_of_errors and _ERROR.search(first)):
        return False
    return bool(_FLOAT.sub(r"\1", first) != _FLOAT.sub(r"\1", given))


def _first_difference(told: str, one: str, other: str) -> tuple[str, str, str]:
    """Return the input, and the first line in which two outputs differ; of lists of cases, the first case."""
    lines = itertools.zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
    mine, others = next(pair for pair in lines if pair[0] != pair[1])
    try:
        asked, given, wanted = map(json.loads, (told, mine, others))
        if len(asked) == len(given) == len(wanted):
            told, mine, others = next(
                map(json.dumps, case) for case in zip(asked, given, wanted, strict=True) if case[1] != case[2]
            )
    except (ValueError, TypeError, StopIteration):
        pass  # they are no lists of cases
    return f"with {_shown(told)} " if told else "", _shown(mine), _shown(others)


def _shown(text: str) -> str:
    """Return an input, or what came of it, in one line."""
    line = (
        text.removeprefix("print(repr(").removesuffix("))")
        if text.count("\n") == 0 and text.startswith("print(repr(")
        else text
    )
    line = " / ".join(line.strip().splitlines()) or "nothing"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _told(mutant: Mutant) -> str:
    """Return what is wrong with a mutant: the line as it reads."""
    if mutant.before == mutant.after:
        return mutant.name
    return f"{mutant.name} in line {mutant.line}: `{mutant.after or 'nothing'}` for `{mutant.before}`"
