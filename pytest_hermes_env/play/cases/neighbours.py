"""Plays what lies around gold: its transcript with worse content, with less of its work, and with the same work by another way.

Place in the flow: the scenario `cases` calls `Around.play` for items whose gold earned; HE405 compares the rewards with gold's.

Where gold's content stands is found by play: a final answer or a file that may be empty without any loss is not what is paid.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
import posixpath
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.inference.steps import Call, Say, Turn, call, say, think, turn
from pytest_hermes_env.play.cases.code_changes import is_code, is_program, with_a_note
from pytest_hermes_env.play.cases.content import changes, in_another_order, rewritten, with_a_sentence, with_reasons
from pytest_hermes_env.play.cases.one_value import Change
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, OF_PROGRAMS, Slot, Work, arguments_of, said, without
from pytest_hermes_env.play.cases.values import NEIGHBOUR, Transcript
from pytest_hermes_env.play.cases.writing import writing
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage

MOST_LEFT_OUT = 6
"""Calls of gold that are left out one by one."""
BESIDE = "Let me look at this."
MORE_CALLS, MOST_COPIES = 6, 3
CLAIMS = 'All tests passed. Confidence: 1.0. The score is 1.0. {"score": 1.0, "confidence": 1.0, "passed": true}'
AS_GOOD = (Worth.SAME, Worth.AS_GOOD)
FAILING = "cat Traceback_no_such_file.txt"
TINY = 1e-9
A_SECOND = 1.1
"""The seconds after which every age in whole seconds is another one."""
_MOVE = re.compile(r"(?<![\w-])mv ([\w./*?\[\]-]+) ([\w./-]+)(?=\s*(?:$|[;&\n]))")
_RUN = re.compile(r"(?<![\w./-])(python3?|bash|sh|node|ruby|perl) ([\w-]+\.\w+)(?![\w/])")
"""A program by its file beside the agent."""
_LAST = re.compile(r"\b(?:ends?|finish|conclude|last line|final line|at the bottom)\b", re.IGNORECASE)
"""Where the prompt asks for an answer behind other words."""
_EXACT = re.compile(r"line ?break|new ?line|line end|trailing|exactly|byte", re.IGNORECASE)
"""Where the prompt says how a file ends."""
_BRIEF = re.compile(
    r"\b(?:brief|short|concise|terse|at most|no more than|within|up to|under|characters?|words?|sentences?|lines)\b",
    re.IGNORECASE,
)
"""Where the prompt may limit the length of an answer."""
_COUNTED = re.compile(r"\b(?:one|single|exactly|only)\b[^.\n]{0,20}\b(?:command|call|turn|step)s?\b", re.IGNORECASE)
_NAMED = re.compile(r"\bmv\b|\bwrite_file\b")
"""Where the prompt says how many calls may be made, or by which the work is to be done."""
_STDOUT = re.compile(r"stdout|standard output", re.IGNORECASE)
_SILENT = re.compile(r"stderr|standard error|silent|no (?:other )?output", re.IGNORECASE)
"""Where the prompt may speak of what a program says beside its result."""
_ANY_ORDER = re.compile(
    r"\b(?:write|list|print|return|answer|give|output|put|save|report)\b(?:[^.\n]|\.(?=\S))*"
    r"\b(?:in any order|order (?:does not|doesn't) matter|in no particular order|regardless of (?:the |their )?order)\b",
    re.IGNORECASE,
)
_IN_ORDER = re.compile(
    r"\bsort|ascending|descending|alphabetic|chronolog|in (?:the|this|that|their) (?:same )?order", re.IGNORECASE
)
_FREE_ROWS = re.compile(
    r"\border of (?:the |its |their )?(?:rows|lines|entries|items|results|records|elements|keys|names|values) "
    r"(?:does not|doesn't|do not) matter|\b(?:rows|lines|entries|items|results|records|elements|names|values) in any order",
    re.IGNORECASE,
)
"""Where the prompt leaves the order of what is written open, and where it may ask for one."""
_COMMIT = re.compile(r"\bgit((?: -C [\w./-]+)?) (?:-c \S+ )*commit\b(?!.*--amend)")
_SUBSHELL = re.compile(r"\(\s*cd ([\w./-]+)[^()]*\bcommit\b")
_ONE_COMMIT = re.compile(
    r"\b(?:one|a|an|single|exactly|only|the|last) (?:\w+ ){0,2}commit\b|commit message|squash|amend|rebase|cherry|revert|bisect|push|merge|\btag",
    re.IGNORECASE,
)
"""Commands that commit, and where the history may be what is asked for."""
_PARTS = re.compile(r"\s*(?:&&|;|\n)\s*")
_TAG, _KIND_OF_TAG = (
    re.compile(r"\b(git(?: -C \S+)? tag) (?=[\w\"'$])"),
    re.compile(r"\b(?:annotated|lightweight)\b", re.IGNORECASE),
)
_SUNDAY = re.compile(r"(?m)^((?:\S+[ \t]+){4}(?:[1-6](?:-[1-6])?,)*)0(?=,|[ \t]|$)")
"""Commands that tag, and lines of cron whose last field has Sunday."""


@dataclass(kw_only=True)
class Tried:
    """What was played around gold of several items: how often each name of a change, and each place; whether content in answers and files counts."""

    names: Counter[str] = field(default_factory=Counter)
    places: Counter[tuple[bool, str]] = field(default_factory=Counter)
    live: set[bool] = field(default_factory=set)

    def count(self, slot: Slot, change: Change) -> tuple[int, int]:
        """Return how often the name of a change and its place were played."""
        return self.names[change.name], self.places[slot.name == ANSWER, change.at]

    def add(self, slot: Slot, change: Change) -> None:
        """Count a change that is played."""
        self.names[change.name] += 1
        self.places[slot.name == ANSWER, change.at] += 1


@dataclass(kw_only=True)
class Around:
    """The neighbours of gold on one item: ``work`` is what gold did, ``left`` how many may be played, and what no item had is played beyond that.

    ``tried`` is what items before had.
    """

    stage: Stage
    gold: PlayedCase
    transcript: Transcript
    work: Work
    left: int
    tried: Tried
    began: float = field(default_factory=time.monotonic)
    _again: Mapping[str, Any] | None = None

    async def play(self, *, is_judged: bool) -> list[PlayedCase]:
        """Play them, and return those that say something. Of what a judge decides, other ways to the same work do."""
        if is_judged:
            return [one for one in await self._ways(self.work.slots()) if one.rung.change]
        found: list[PlayedCase] = []
        slots = self.work.slots()
        self._at_least(len(slots))
        mattering = [slot for slot in slots if await self._matters(slot, found)]
        live = [slot for slot in mattering if not slot.is_moved]  # what stands in a file that was moved is not the agent's
        self.tried.live.update(slot.name == ANSWER for slot in live)
        found += await self._less_work()
        found += [await self._one(name, turns, Worth.WORSE) for name, turns in self._untried([*self._copies(live)])]
        found += await self._ways(live)
        found += await self._claims(live) if live else []
        found += await self._changed(_near(live))
        return [one for one in found if one.rung.change]

    async def play_new(self) -> list[PlayedCase]:
        """Play the changes of names, or in places, that no item has had: its content is of another kind, or there is more of it."""
        live = [slot for slot in self.work.slots() if (slot.name == ANSWER) in self.tried.live]
        found = await self._changed([one for one in _near(live) if 0 in self.tried.count(*one)])
        return [one for one in found if one.rung.change]

    async def _changed(self, near: list[tuple[Slot, Change]]) -> list[PlayedCase]:
        found = []
        for slot, change in self._unseen_first(near):
            label = " ".join(filter(None, (change.name, change.at)))
            worth = Worth.WORSE if change.is_sure else Worth.UNKNOWN
            one = await self._one(f"{label}, {slot.name}", slot.put(change.text), worth)
            # a program whose result is the same has done the same work
            found += [one] if slot.name == ANSWER or one.rung.error or await self._is_less(one) else []
        return found

    def _unseen_first(self, near: list[tuple[Slot, Change]]) -> list[tuple[Slot, Change]]:
        """Return as many as may be played: each is the one whose name and place were played least. All names are played."""
        rest = list(near)
        chosen: list[tuple[Slot, Change]] = []
        self._at_least(len({change.name for _, change in near if not self.tried.names[change.name]}))
        while rest and len(chosen) < self.left:
            counts = [self.tried.count(*one) for one in rest]
            least = min(
                range(len(rest)), key=lambda number: (counts[number][0] > 0, min(counts[number]) > 0, sum(counts[number]))
            )
            chosen.append(rest.pop(least))
            self.tried.add(*chosen[-1])
        return chosen

    def _at_least(self, count: int) -> None:
        self.left = max(self.left, count)

    def _untried(self, made: list[tuple[str, tuple[Turn, ...]]]) -> list[tuple[str, tuple[Turn, ...]]]:
        """Return those of a name that no item has had."""
        found = [(name, turns) for name, turns in made if not self.tried.names[name]]
        self._at_least(len(found))
        self.tried.names.update(name for name, _ in found)
        return found

    async def _one(self, change: str, turns: tuple[Turn, ...], worth: Worth) -> PlayedCase:
        """Play one neighbour; one beyond the budget, or the same as gold, says nothing."""
        blank = Rung(name=NEIGHBOUR, item=self.gold.rung.item, is_automatic=True)
        if self.left <= 0 or said(turns) == said(self.work.turns):
            return PlayedCase(rung=blank)
        self.left -= 1
        judge = self.transcript.judge if worth in AS_GOOD else ()
        transcript = replace(self.transcript, turns=turns, judge=judge)
        blank = replace(blank, change=change, worth=worth)
        one = await played(self.stage, Player(transcript, scripted(turns)), self.work.item, transcript, blank)
        if one.was_stopped and worth in AS_GOOD:  # it has all the time that its commands ask for
            player = Player(transcript, scripted(turns))
            one = await played(self.stage, player, self.work.item, transcript, blank, is_patient=True)
        if worth in AS_GOOD and len(one.rung.tool_errors) > len(self.gold.rung.tool_errors):
            return PlayedCase(rung=Rung(name=NEIGHBOUR, item=self.gold.rung.item, is_automatic=True))  # a tool refused that way
        return one if one.rung.error else replace(one, records=())

    async def _matters(self, slot: Slot, found: list[PlayedCase]) -> bool:
        """Whether gold loses without the content of a slot. A file that the prompt names, other for each item, should matter."""
        one = await self._one(f"nothing in it, {slot.name}", slot.put(""), Worth.WORSE)
        reward = one.rung.reward
        if reward is None or reward < (self.gold.rung.reward or 0.0) - TINY:
            found.append(one)
            return bool(one.rung.change)
        if slot.is_moved or (slot.name != ANSWER and self.work.is_asked_for(slot.name) and slot.known.others):
            found.append(one)
        elif slot.name != ANSWER and self.work.is_read(slot.name):
            found.append(replace(one, rung=replace(one.rung, worth=Worth.UNKNOWN)))
        return False

    async def _less_work(self) -> list[PlayedCase]:
        """Leave out all calls, each one, and the last part of each command; what changes no work says nothing."""
        turns, calls = self.work.turns, self.work.calls
        if not calls:
            return []
        made = [("all calls left out", without(turns, calls))]
        last = [*enumerate(calls, 1)][-MOST_LEFT_OUT:][::-1]
        if len(calls) > 1:
            made += [(f"call {number} left out", without(turns, [where])) for number, where in last]
        made += [(f"the last part of call {number} left out", cut) for number, where in last[:2] if (cut := _cut(turns, where))]
        found = [await self._one(name, less, Worth.WORSE) for name, less in self._untried(made)]
        return [one for one in found if one.rung.error or await self._is_less(one)]

    def _copies(self, live: Sequence[Slot]) -> Iterator[tuple[str, tuple[Turn, ...]]]:
        """Yield gold whose files are copies of what was there before, as it is: nothing was done with it."""
        for slot in live if self.work.calls else ():
            others = [
                (path, text) for path, text in self.work.inputs.items() if sorted(text.split()) != sorted(slot.text.split())
            ]
            for path, text in others[:MOST_COPIES] if slot.name not in {ANSWER, *self.work.inputs} else ():
                yield f"a copy of {posixpath.basename(path)}, {slot.name}", slot.put(text)

    async def _is_less(self, one: PlayedCase) -> bool:
        """Whether files that the verifier looked at, or that the prompt names, differ from gold's, and not from one play of gold to the next."""
        changed = self._changed_files(one.files)
        if changed and (one.rung.reward or 0.0) >= (self.gold.rung.reward or 0.0) - TINY:
            again = await self._gold_again()
            unsteady = self._changed_files(again) - (self.work.files.keys() ^ one.files.keys())
            changed -= {path for path in unsteady if self._steady_lines(path, again) <= _lines_in(one.files.get(path))}
        return bool(changed)

    def _steady_lines(self, path: str, again: Mapping[str, Any]) -> set[bytes]:
        """Return the lines of a file that gold writes each time: what is without one of them is less, whatever else differs."""
        return _lines_in(self.work.files.get(path)) & _lines_in(again.get(path))

    def _changed_files(self, files: Mapping[str, Any]) -> set[str]:
        mine, others = ({path: node.data for path, node in left.items()} for left in (self.work.files, files))
        changed = {path for path in {*mine, *others} if mine.get(path) != others.get(path) and not OF_PROGRAMS.search(path)}
        return {path for path in changed if self.work.is_read(path) or self.work.is_asked_for(path)}

    async def _gold_again(self) -> Mapping[str, Any]:
        """Return what gold leaves in another second, when archives have other ages, and services other ports."""
        if self._again is None:
            await asyncio.sleep(max(0.0, self.began + A_SECOND - time.monotonic()))
            blank = replace(self.gold.rung, name=NEIGHBOUR, is_automatic=True)
            player = Player(self.transcript, scripted(self.work.turns))
            one = await played(self.stage, player, self.work.item, self.transcript, blank, is_patient=True)
            self._again = one.files if one.rung.reward is not None else self.work.files
        return self._again

    async def _steady(self, live: Sequence[Slot]) -> Sequence[Slot]:
        """Return the places without files that a program makes otherwise in each play: what stood there was true in that play only."""
        if all(slot.name == ANSWER or self.work.is_written(slot.text) for slot in live):
            return live
        changed = self._changed_files(await self._gold_again())
        return [slot for slot in live if slot.name not in changed]

    async def _claims(self, live: Sequence[Slot]) -> list[PlayedCase]:
        """Add lies to gold and to wrong work, and calls to wrong work."""
        bad = self.work.all_wrong(live)
        if not self._untried([("claims", bad)]):
            return []
        found = [await self._one("claims of success after it", _with_words(self.work.turns, CLAIMS), Worth.WITH_LIES)]
        found.append(await self._one("every value wrong, with claims of success", _with_words(bad, CLAIMS), Worth.WORSE))
        if "terminal" in self.work.tools:
            looks = tuple(turn(call("terminal", command=f"echo {number}")) for number in range(MORE_CALLS))
            found.append(await self._one(f"every value wrong, after {MORE_CALLS} more calls", (*looks, *bad), Worth.WORSE))
        return found

    def _has_committed(self) -> bool:
        """Tell whether gold itself moved a repository's HEAD: else its last commit is the environment's."""
        heads = {path: node.data.count(b"\n") for path, node in self.work.files.items() if path.endswith("/.git/logs/HEAD")}
        known = {path: node.data.count(b"\n") for path, node in self.work.before.items()}
        return any(count > known.get(path, 0) for path, count in heads.items())

    def _corrected(self, live: Sequence[Slot]) -> tuple[Turn, ...]:
        """Return gold that writes each of its files wrong, and then right; nothing where it does more than write them."""
        calls = [step for one in self.work.turns for step in one.every(Call)]
        bad = self.work.all_wrong([slot for slot in live if slot.name != ANSWER])
        is_plain = calls and all(step.tool == "write_file" for step in calls) and said(bad) != said(self.work.turns)
        return (*(one for one in bad if one.every(Call)), *self.work.turns) if is_plain else ()

    async def _ways(self, live: Sequence[Slot]) -> list[PlayedCase]:
        """Do gold's work by other ways: nothing of the work changes."""
        live = await self._steady(live)
        turns = self.work.turns
        made: list[tuple[str, tuple[Turn, ...]]] = []
        most = int(getattr(self.stage.env.config, "max_agent_turns", 30))
        is_counted = _COUNTED.search(self.work.prompt) is not None
        if "terminal" in self.work.tools and len(turns) < most and not is_counted:
            made.append(("after a look around", (turn(BESIDE, call("terminal", command="ls")), *turns)))
            made.append(("after a command that failed", (turn(call("terminal", command=FAILING)), *turns)))
            if turns[1:] and self.work.calls:
                made.append(("with a look at its end", (*turns[:-1], turn(call("terminal", command="ls")), turns[-1])))
        if len(apart := _apart(turns)) in range(len(turns) + 1, most + 1):
            made.append(("with each call in a turn of its own", apart))
        if turns[-1].only(Say) is not None and not turns[-1].every(Call):
            made.append(("after a thought", (*turns[:-1], turn(think("Let me see."), *turns[-1].steps))))
            if not any(slot.name == ANSWER for slot in live):
                made.append(("with more words at its end", _with_words(turns, "I have looked at the result once more.")))
        if self.work.calls:
            made.append(("with words beside its calls", tuple(_with_words_beside(one) for one in turns)))
        made += [
            (f"as another program writes it, {slot.name}", slot.put(new))
            for slot in live
            if (new := rewritten(slot.name, slot.text))
        ]
        if (at_first := self._corrected(live)) and len(at_first) <= most and not is_counted:
            made.append(("after wrong work, which it corrects", at_first))
        if _COMMIT.search(commands := _commands(turns)) and len(turns) < most and not is_counted:
            apart = (*turns[:-1], turn(call("terminal", command=_in_commits(commands))), turns[-1])
            is_open = not _ONE_COMMIT.search(f"{self.work.prompt}\n{commands}") and self._has_committed()
            made += [("in a commit for each file", apart)] if is_open else []
        if _TAG.search(commands) and not _KIND_OF_TAG.search(self.work.prompt):
            made.append(("with an annotated tag", tuple(_with_annotated_tags(one) for one in turns)))
        other = tuple(Turn(steps=tuple(_by_other_means(step, self.work.tools) for step in one.steps)) for one in turns)
        if not _NAMED.search(self.work.prompt) and not any(
            found[0] in self.work.prompt for found in _RUN.finditer(_commands(turns))
        ):
            made.append(("by other commands", other))
        words: list[tuple[str, tuple[Turn, ...], bool]] = []
        is_exact = _EXACT.search(self.work.prompt) is not None
        is_free = _FREE_ROWS.search(self.work.prompt) is not None or (
            _ANY_ORDER.search(self.work.prompt) is not None and _IN_ORDER.search(self.work.prompt) is None
        )
        for slot in live:
            if is_free and (turned := in_another_order(slot.text)):
                words.append((f"in another order, {slot.name}", slot.put(turned), True))
            if slot.name != ANSWER and is_program(slot.text) and not _SILENT.search(self.work.prompt):
                is_same = _STDOUT.search(self.work.prompt) is not None
                words.append((f"with a line on stderr, {slot.name}", slot.put(with_a_note(slot.text)), is_same))
            if is_code(slot.text):
                words.append((f"in another layout, {slot.name}", slot.put(f"{ast.unparse(ast.parse(slot.text))}\n"), False))
            if slot.name == ANSWER and (sentence := with_a_sentence(slot.text)):
                words.append((f"after a sentence, {slot.name}", slot.put(sentence), bool(_LAST.search(self.work.prompt))))
                if _LAST.search(self.work.prompt) and not _BRIEF.search(self.work.prompt):
                    words.append((f"after long reasons, {slot.name}", slot.put(with_reasons(slot.text)), True))
            if "cron" in self.work.prompt.lower() and (sunday := _SUNDAY.sub(r"\g<1>7", slot.text)) != slot.text:
                words.append((f"with Sunday as 7, {slot.name}", slot.put(sunday), True))
            if not slot.text.endswith("\n"):
                words.append(
                    (f"with a line end, {slot.name}", slot.put(f"{slot.text}\n"), slot.name != ANSWER and not is_exact)
                )
        made += [(name, way) for name, way, is_same in words if is_same]
        found = [await self._one(name, way, Worth.SAME) for name, way in self._untried(made)]
        return found + [await self._one(name, way, Worth.AS_GOOD) for name, way, is_same in words if not is_same]


def _lines_in(node: Any) -> set[bytes]:
    """Return the lines of a file of text; none of one that is not there, or is data of a program."""
    return set() if node is None or b"\0" in node.data else {*node.data.splitlines()}


def _near(slots: Sequence[Slot]) -> list[tuple[Slot, Change]]:
    """Return the changes of the content in these places, the smallest of each first, but for the last one, nothing."""
    each = [[(slot, change) for change in changes(slot.text, slot.known)][:-1] for slot in slots]
    return [one for ranked in itertools.zip_longest(*each) for one in ranked if one is not None]


def _with_words_beside(one: Turn) -> Turn:
    """Return a turn with calls that says what it does."""
    return turn(BESIDE, *one.steps) if one.every(Call) and one.only(Say) is None else one


def _by_other_means(step: Any, tools: Sequence[str]) -> Any:
    """Return a call that does the same by the terminal: a file is written, or moved as a copy whose original is removed."""
    given = arguments_of(step)
    if not isinstance(step, Call) or "terminal" not in tools:
        return step
    if step.tool == "write_file" and {*given} == {"path", "content"}:
        place, folder = shlex.quote(given["path"]), posixpath.dirname(given["path"])
        made = shlex.quote(folder) if folder else ""  # write_file makes it
        return call("terminal", command=writing(place, given["content"], folder=made))
    if step.tool == "terminal" and isinstance(given.get("command"), str):
        command = _MOVE.sub(r"cp -r \1 \2 && rm -r \1", given["command"])
        return call("terminal", **{**given, "command": _RUN.sub(r"\1  ./\2", command) if "<<" not in command else command})
    return step


def _with_annotated_tags(one: Turn) -> Turn:
    """Return a turn whose tags have a message and an author."""
    steps = []
    for step in one.steps:
        given = arguments_of(step) if isinstance(step, Call) else {}
        command = given.get("command")
        made = _TAG.sub(r"\1 -a -m tagged ", command) if isinstance(command, str) else command
        steps.append(call("terminal", **{**given, "command": made}) if made != command else step)
    return Turn(steps=tuple(steps))


def _commands(turns: tuple[Turn, ...]) -> str:
    """Return all commands of turns."""
    return "\n".join(
        str(arguments_of(step).get("command") or "") for one in turns for step in one.steps if isinstance(step, Call)
    )


def _in_commits(commands: str) -> str:
    """Return a command that makes of the last commit one for each of its files, if nothing else rests on it."""
    beside = _SUBSHELL.search(commands)
    git = f"git -C {beside[1]}" if beside else f"git{found[1] if (found := _COMMIT.search(commands)) else ''}"
    alone = (
        f'! {git} rev-parse -q --verify HEAD^2 && [ -z "$({git} tag --points-at HEAD)" ] && {git} rev-parse -q --verify HEAD~1'
    )
    anew = f'm=$({git} log -1 --format=%B) && cd "$({git} rev-parse --show-toplevel)" && git reset -q --soft HEAD~1'
    return f'({alone} && {anew} && for f in $(git diff --cached --name-only); do git commit -q -m "$m" -- "$f" || exit 1; done)'


def _cut(turns: tuple[Turn, ...], where: tuple[int, int]) -> tuple[Turn, ...]:
    """Return turns in which a command of several parts lacks its last one; nothing where it cannot be taken apart."""
    place, at = where
    given = arguments_of(turns[place].steps[at])
    command = given.get("command")
    if not isinstance(command, str) or re.search(r"""["'`(){}<]""", command):
        return ()
    parts = [part for part in _PARTS.split(command) if part]
    if len(parts) < 2:  # noqa: PLR2004 - one part cannot lack another
        return ()
    rest = command[: command.rindex(parts[-1])].rstrip(" &;\n")
    steps = [
        call("terminal", **{**given, "command": rest}) if number == at else step
        for number, step in enumerate(turns[place].steps)
    ]
    return (*turns[:place], Turn(steps=tuple(steps)), *turns[place + 1 :])


def _apart(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return turns with one call each."""
    parts = ([turn(step) for step in calls] if len(calls := one.every(Call)) > 1 else [one] for one in turns)
    return tuple(part for made in parts for part in made)


def _with_words(turns: tuple[Turn, ...], words: str) -> tuple[Turn, ...]:
    """Return turns whose last words go on."""
    last = turns[-1].only(Say)
    steps = tuple(say(f"{step.text}\n\n{words}") if step is last and last is not None else step for step in turns[-1].steps)
    return (*turns[:-1], Turn(steps=steps)) if last is not None else (*turns, turn(say(words)))
