"""Plays gold, and wrong work, while the judge says other things than declared: its worst, half, nothing that is a score.

Place in the flow: the cases of an item whose gold asks a judge; HE406 compares the rewards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.inference.steps import Say, Turn, as_turn, fail, say
from pytest_hermes_env.play.cases.code_changes import is_code
from pytest_hermes_env.play.cases.content import changes, parts_of, wrong
from pytest_hermes_env.play.cases.one_value import spread
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, Work
from pytest_hermes_env.play.cases.values import JUDGED, SILENCES, Transcript
from pytest_hermes_env.play.cases.verdict_words import offered, uncounted
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.scenario import Rung, Worth
from pytest_hermes_env.play.stage import Stage

_KEY = re.compile(r"score|rating|grade|reward|points|value|correct|pass|verdict|result|answer", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SCALE = re.compile(r"(?<![\w.])(0|0\.0|1)\s*(?:to|-|\u2013|\.\.|and|through)\s*(10|5|100|1\.0|1|4|7|20)(?![\w.]*\d)")
_OF = re.compile(r"\d\s*(?:/|of|out of)\s*\d")
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_OPPOSITE = {
    "yes": "no",
    "correct": "incorrect",
    "right": "wrong",
    "pass": "fail",
    "passed": "failed",
    "true": "false",
    "good": "bad",
    "a": "b",
}
_WORDS = re.compile(rf"\b(?:{'|'.join(_OPPOSITE)})\b", re.IGNORECASE)
MOST_PARTS = 4
LONG_TEXT = 80
MUCH = 5
"""How much longer than gold wrong work is, for rewards that also count words."""
_WORD, _MARK = re.compile(r"\b[A-Za-z]{3,}\b"), re.compile(r"(?=\w*\d)\w[\w-]{7,}")
TINY = 1e-9
MOST_TRIED = 8
"""Changes of gold that are played until the judge is asked about one."""
MANY = 3
"""Scores above this are of a scale on which 1 is little."""
REASON = "{} would be all, and a good answer has {}"
"""A reason whose numbers, the first and the last, are the score that gold had."""
ON_GOLD = frozenset({Worth.JUDGED_WORST, Worth.JUDGED_LOW, Worth.JUDGED_HALF, Worth.JUDGED_BEST, Worth.JUDGED_VETO})
"""Verdicts on gold; others are tried on wrong work, since a fallback may pay for gold."""
SILENT: dict[str, Any] = dict(
    zip(
        SILENCES,
        (
            say(""),
            say("I would rather not judge this."),
            say('{"comment": "thank you"}'),
            say('{"error": {"message": "overloaded", "code": 529}}'),
            fail(500),
        ),
        strict=True,
    )
)


@dataclass(kw_only=True)
class Judged:
    """The judge of gold on one item, which was asked with ``gold.judged``."""

    stage: Stage
    gold: PlayedCase
    transcript: Transcript
    work: Work

    async def play(self) -> list[PlayedCase]:
        """Play gold with what the judge may say, wrong work with a judge that says nothing, and look for the work in what it was asked."""
        asked = json.dumps(self.gold.judged, default=str)
        said = [*_answers(self.transcript.judge), *_best(self.transcript.judge, asked)]
        found = [await self._one(name, self.work.turns, say(text), worth) for name, text, worth in said if worth in ON_GOLD]
        found += await self._of_words(asked)
        bad, unseen, is_asked = await self._worse()
        if worst := worst_of(self.transcript.judge):
            found += [
                await self._one(f"gave its worst to {name}", turns, say(worst), Worth.JUDGED_BAD)
                for name, turns in self._bad(bad)
            ]
        silent = [*((name, say(text)) for name, text, worth in said if worth not in ON_GOLD), *SILENT.items()]
        found += [await self._one(f"{name} to wrong work", bad, answer, Worth.JUDGED_SILENT) for name, answer in silent]
        found += await self._of_parts() if is_asked else await self._of_facts()
        return [*found, *unseen]

    def _bad(self, bad: tuple[Turn, ...]) -> Iterator[tuple[str, tuple[Turn, ...]]]:
        """Yield names and turns of worse work that rewards for length, and for words of the item, like."""
        yield "wrong work", bad
        slot = max(self.work.slots(), key=lambda one: len(one.text), default=None)
        if slot is not None and not is_code(slot.text):
            other = wrong(slot.text, slot.known)
            yield "much wrong work", slot.put("\n\n".join([other] * (MUCH * len(slot.text) // max(1, len(other)))))
            yield "the item's own words", slot.put("\n".join(dict.fromkeys(texts_of(self.work.item))))

    async def _of_words(self, asked: str) -> list[PlayedCase]:
        """Play gold with the words that the judge's prompt offers for its verdict; return those with one that must count and does not."""
        found, value = [], _declared(self.transcript.judge)[1]
        score = _key_of(value) if isinstance(value, dict) else ""
        for one in offered(value, asked):
            if score not in {"", one.at} and not one.is_list:
                continue  # the verdict is elsewhere
            tried = [
                await self._one(one.told(word), self.work.turns, say(json.dumps(verdict)), Worth.JUDGED_WORST)
                for word, verdict in zip(one.words, one.verdicts, strict=True)
            ]
            full = self.gold.rung.reward or 0.0
            costs = [full - (case.rung.reward or 0.0) for case in tried]
            word = uncounted(one, costs, counts_alone=not score)
            found += [case for case in tried if case.rung.change == one.told(word)] if word else []
        return found

    async def _of_facts(self) -> list[PlayedCase]:
        """Play the item's own words alone, where a check before the judge refuses all other worse work, with a judge that says nothing."""
        slot = max(self.work.slots(), key=lambda one: len(one.text), default=None)
        if slot is None:
            return []
        words = (text for text in texts_of(self.work.item) if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", slot.text))
        facts = "\n".join(dict.fromkeys(words))
        if not facts or len(facts) > len(slot.text) / 2:
            return []
        names = [(f"{name}, asked about the item's own words alone", answer) for name, answer in SILENT.items()]
        found = [await self._one(name, slot.put(facts), answer, Worth.JUDGED_PART) for name, answer in names]
        return [one for one in found if one.judged]

    async def _of_parts(self) -> list[PlayedCase]:
        """Play the work with one section or paragraph of its longest text left, which the judge finds worst but for one criterion that counts."""
        slot = max(self.work.slots(), key=lambda one: len(one.text), default=None)
        parts = parts_of(slot.text)[:MOST_PARTS] if slot is not None else []
        scores = _scores(self.transcript.judge)
        if slot is None or len(parts) < 2 or len(scores) < 2:  # noqa: PLR2004 - a part of several
            return []
        alone = {key: json.dumps({**scores, key: _worst(scores[key])}) for key in [*scores][:MOST_PARTS]}
        without = {key: await self._one(key, self.work.turns, say(text), Worth.UNKNOWN) for key, text in alone.items()}
        full = self.gold.rung.reward or 0.0
        counting = [key for key, one in without.items() if one.rung.reward is not None and one.rung.reward < full - TINY]
        only = {key: json.dumps({**{name: _worst(scores[name]) for name in scores}, key: scores[key]}) for key in counting}
        return [
            await self._one(
                f"gave its worst for all but {key} to one part of the work", slot.put(part), say(text), Worth.JUDGED_PART
            )
            for part in parts
            for key, text in (only.items() if len(only) > 1 else ())
        ]

    async def _one(self, name: str, turns: tuple[Turn, ...], answer: Any, worth: Worth) -> PlayedCase:
        transcript = replace(self.transcript, turns=turns, judge=(as_turn(answer),))
        blank = Rung(name=JUDGED, item=self.gold.rung.item, is_automatic=True, change=name, worth=worth)
        return await played(self.stage, Player(transcript, scripted(turns)), self.work.item, transcript, blank)

    async def _worse(self) -> tuple[tuple[Turn, ...], list[PlayedCase], bool]:
        """Return worse work, rungs for work that the judge was not shown, and whether it is asked about any worse work.

        It was not shown the work where it is asked the same about other work.
        """
        slots = self.work.slots()
        answer = [slot for slot in slots if slot.name == ANSWER]
        named = [slot for slot in slots if slot.name != ANSWER and self.work.is_asked_for(slot.name)]
        is_alike = bool(self.work.others) and not any(slot.known.others for slot in answer)  # it says the same of each item
        asked = [slot for slot in named if self.work.is_read(slot.name)] or (named if is_alike else [])
        bad, unseen = self.work.all_wrong(slots), []
        is_asked = False
        for slot in asked or answer:
            sure = [change.text for change in changes(slot.text, slot.known) if change.is_sure and change.text.strip()]
            tried = [_other_words(slot.text), wrong(slot.text, slot.known), *spread(sure, MOST_TRIED)]
            for text in [text for text in tried if text != slot.text]:
                one = await self._one(
                    f"was not shown {slot.name}", slot.put(text), self.transcript.judge[0], Worth.JUDGED_UNSEEN
                )
                if one.judged:  # what a check before the judge refuses says nothing
                    unseen += [one] if await self._is_unseen(one, f"{slot.text}\n{text}") else []
                    bad, is_asked = bad if is_asked else slot.put(text), True
                    break
            for part, text in () if unseen else _wrong_at_its_end(slot.text):
                name, verdict = f"was not shown {part} of {slot.name}", self.transcript.judge[0]
                one = await self._one(name, slot.put(text), verdict, Worth.JUDGED_UNSEEN)
                if one.judged:
                    unseen += [one] if await self._is_unseen(one, f"{slot.text}\n{text}") else []
                    bad, is_asked = bad if is_asked else slot.put(text), True
        return bad, unseen, is_asked

    async def _is_unseen(self, one: PlayedCase, known: str) -> bool:
        """Tell whether the judge was asked about other work what it was asked about gold, but for what is drawn anew each time; ``known`` is not."""
        if one.judged == self.gold.judged or _drawn(one.judged, known) != _drawn(self.gold.judged, known):
            return one.judged == self.gold.judged
        again = await self._one("was asked again", self.work.turns, self.transcript.judge[0], Worth.JUDGED_UNSEEN)
        return again.judged != self.gold.judged


def _drawn(asked: Sequence[str], known: str) -> list[str]:
    """Return what a judge was asked without what may be drawn: long words with digits that are not known."""
    return [_MARK.sub(lambda found: found[0] if found[0] in known else "", text) for text in asked]


def _wrong_at_its_end(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of a part of a long text, and the text with other words there, of the same lengths."""
    for part, start in (
        ("the second half", len(text) // 2),
        ("the last third", len(text) * 2 // 3),
        ("the last sixth", len(text) * 5 // 6),
    ):
        if len(text) >= LONG_TEXT:
            yield part, text[:start] + _other_words(text[start:])


def _other_words(text: str) -> str:
    """Return other words and numbers of the same lengths, so that nothing but the text itself tells them from gold's."""
    words = _WORD.sub(lambda found: ("otherwise" * len(found[0]))[: len(found[0])], text)
    return re.sub(r"\d", lambda found: str((int(found[0]) + 5) % 10), words)


def worst_of(judge: tuple[Any, ...]) -> str:
    """Return the worst verdict in the form of a declared one; empty where its form is not known."""
    return next((text for _, text, worth in _answers(judge) if worth is Worth.JUDGED_WORST), "")


def _declared(judge: tuple[Any, ...]) -> tuple[str, Any]:
    """Return the declared answer of a judge, and its value if it is JSON."""
    declared = next((step.text for one in judge if (step := as_turn(one).only(Say)) is not None), "")
    fenced = _FENCED.search(declared)
    try:
        return declared, json.loads(fenced[1] if fenced else declared)
    except ValueError:
        return declared, None


def _answers(judge: tuple[Any, ...]) -> Iterator[tuple[str, str, Worth]]:
    """Yield what a judge may say in the form of its declared answer: its worst, half of it, and a number in its reason before its worst."""
    declared, value = _declared(judge)
    fenced = _FENCED.search(declared)
    body = fenced[1] if fenced else declared
    if not isinstance(value, dict):
        yield from _in_words(declared)
        return
    for key in (name for name, part in value.items() if part is False):
        yield f"gave true for {key}", declared.replace(body, json.dumps({**value, key: True})), Worth.JUDGED_VETO
    for key in (name for name, part in value.items() if isinstance(part, list) and part):
        yield f"gave an empty list for {key}", declared.replace(body, json.dumps({**value, key: []})), Worth.JUDGED_SILENT
    if not (key := _key_of(value)):
        if (worst := _all_worst(value)) != value:
            yield "gave its worst in all places", declared.replace(body, json.dumps(worst)), Worth.JUDGED_WORST
        return

    part = value[key]
    reason = REASON.format(part, part)

    def said(new: Any, **more: Any) -> str:
        texts = (
            {name: reason if isinstance(part, str) and name != key else part for name, part in value.items()} if more else value
        )
        return declared.replace(body, json.dumps({**more, **texts, key: new}))

    yield f"gave {_worst(part)!r} for {key}", said(_worst(part)), Worth.JUDGED_WORST
    if isinstance(part, int | float) and not isinstance(part, bool) and part > MANY:
        yield f"gave 1 for {key}", said(1), Worth.JUDGED_LOW
    if isinstance(part, int | float) and not isinstance(part, bool):
        yield f"gave {part / 2:g} for {key}", said(part / 2 if isinstance(part, float) else part // 2), Worth.JUDGED_HALF
    reasons = {} if any(isinstance(one, str) and name != key for name, one in value.items()) else {"reasoning": reason}
    note = reasons or {"note": reason}
    yield f"gave {_worst(part)!r} for {key} after a reason with numbers", said(_worst(part), **note), Worth.JUDGED_SILENT
    behind = declared.replace(body, json.dumps({key: _worst(part), "note": reason}))
    yield f"gave {_worst(part)!r} for {key} before a reason with numbers", behind, Worth.JUDGED_SILENT
    yield f"gave null for {key}", said(None), Worth.JUDGED_SILENT


def _best(judge: tuple[Any, ...], asked: str) -> Iterator[tuple[str, str, Worth]]:
    """Yield the highest score of the scale that a judge was told of, in the form of its declared answer, if that is less."""
    half = next((one for one in _answers(judge) if one[2] is Worth.JUDGED_HALF), None)
    declared, value = _declared(judge)
    if half is None:  # its score is no number
        return
    score = str(value[_key_of(value)]) if isinstance(value, dict) else _score_in(declared)[0]
    if declared.count(score) != 1:
        return
    scales = [(float(low), high) for low, high in _SCALE.findall(asked)]
    best = next((high for low, high in scales if low <= float(score) < float(high)), "")
    if best:
        start = declared.index(score)
        yield f"gave {best}", f"{declared[:start]}{best}{declared[start + len(score) :]}", Worth.JUDGED_BEST


def _key_of(value: dict[str, Any]) -> str:
    """Return the key of an answer's score; empty where none is known."""
    scores = {key: part for key, part in value.items() if isinstance(part, bool | int | float | str)}
    keys = [key for key, part in scores.items() if _worst(part) not in (None, part)]
    return next((key for key in keys if _KEY.search(key)), next(iter(keys), ""))


def _score_in(declared: str) -> re.Match[str]:
    """Return the number of an answer in words that is its score: the first of "8 of 10", or the last."""
    numbers = [*_NUMBER.finditer(declared)]
    return numbers[0] if _OF.search(declared) else numbers[-1]


def _scores(judge: tuple[Any, ...]) -> dict[str, float]:
    """Return the criteria of a declared answer that is an object of numbers."""
    value = _declared(judge)[1]
    is_all = isinstance(value, dict) and all(isinstance(part, int | float) for part in value.values())
    return dict(value) if is_all else {}


def _in_words(declared: str) -> Iterator[tuple[str, str, Worth]]:
    numbers, words = list(_NUMBER.finditer(declared)), list(_WORDS.finditer(declared))
    if numbers:
        score = _score_in(declared)
        worst = f"{declared[: score.start()]}0{declared[score.end() :]}"
        yield "gave 0", worst, Worth.JUDGED_WORST
        reason = REASON.format(score[0], score[0])
        yield "gave 0 before a reason with numbers", f"{worst}\n{reason}", Worth.JUDGED_SILENT
        yield from _quoted("gave 0", declared, score, worst)
        half = float(score[0]) / 2
        if half * 2 > MANY:
            yield "gave 1", f"{declared[: score.start()]}1{declared[score.end() :]}", Worth.JUDGED_LOW
        yield f"gave {half:g}", f"{declared[: score.start()]}{half:g}{declared[score.end() :]}", Worth.JUDGED_HALF
    elif words:
        said = words[-1]
        opposite = _OPPOSITE[said[0].lower()]
        opposite = opposite.upper() if said[0].isupper() else opposite.title() if said[0].istitle() else opposite
        worst = f"{declared[: said.start()]}{opposite}{declared[said.end() :]}"
        yield f"said {opposite}", worst, Worth.JUDGED_WORST
        yield from _quoted(f"said {opposite}", declared, said, worst)


def _quoted(name: str, declared: str, said: re.Match[str], worst: str) -> Iterator[tuple[str, str, Worth]]:
    """Yield the worst verdict behind the declared one as a quote, where a judge gives its reasons first: they may quote."""
    line = declared.splitlines()[-1].strip()
    if said.start() > declared.rstrip().rfind("\n") >= 0:
        yield f"{name} after a quote of the answer", f'The answer says: "{line}".\n\n{worst}', Worth.JUDGED_SILENT


def _all_worst(value: Any) -> Any:
    """Return a value of JSON with each truth value in it false, and each number under a key of scores 0."""
    if isinstance(value, list):
        return [_all_worst(part) for part in value]
    if isinstance(value, dict):
        return {
            key: 0 if isinstance(part, int | float) and not isinstance(part, bool) and _KEY.search(key) else _all_worst(part)
            for key, part in value.items()
        }
    return False if value is True else value


def _worst(value: Any) -> Any:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return type(value)(0)
    opposite = _OPPOSITE.get(str(value).lower())
    if opposite is None:
        return "0" if _NUMBER.fullmatch(str(value)) else None
    return opposite.upper() if value.isupper() else opposite.title() if value.istitle() else opposite
