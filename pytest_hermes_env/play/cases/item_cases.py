"""Plays the cases of one item: those that are declared, the automatic ones, and the neighbours of its gold.

Place in the flow: the scenario `cases` calls `play_item` for each item.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_hermes_env.errors import HermesEnvError, shorten
from pytest_hermes_env.inference.steps import Turn, call, say
from pytest_hermes_env.play.auto_script import silent_policy, tool_using_policy
from pytest_hermes_env.play.buffers import fields_of, with_field
from pytest_hermes_env.play.cases.given_order import order_in
from pytest_hermes_env.play.cases.judged import Judged
from pytest_hermes_env.play.cases.neighbours import Around, Tried, near
from pytest_hermes_env.play.cases.one_value import OTHER
from pytest_hermes_env.play.cases.playing import PlayedCase, Player, played, scripted
from pytest_hermes_env.play.cases.slots import ANSWER, OF_HISTORY, Work, arguments_of, said
from pytest_hermes_env.play.cases.values import (
    ECHO,
    GOLD,
    HACK,
    NEIGHBOUR,
    NOTHING,
    OTHER_GOLD,
    TOOLS,
    WRONG_CONTENT,
    WRONG_PLACE,
    Case,
    ItemCases,
    Transcript,
)
from pytest_hermes_env.play.item_texts import texts_of
from pytest_hermes_env.play.probing.reward_constants import fields_unread
from pytest_hermes_env.play.scenario import Rung
from pytest_hermes_env.play.stage import Policy, Stage

_FILE_NAME = re.compile(r"(?<![\w/.-])[\w-][\w./-]*\.[A-Za-z]\w{0,4}\b")
_MOST_FILES, MOST_LESS = 3, 3
_LONG = 16
"""Characters from which on a text in a file is that of an item, and no coincidence."""
NEAR, NEAR_PROGRAMS, NEW = 90, 60, 6
"""Neighbours of gold on the first item, in memory and where real programs run: half of them on the second, a third on the third. On each
further item are those of names, or in places, that none before had.
"""


async def play_item(
    stage: Stage,
    entry: ItemCases | None,
    item: Any,
    label: str,
    others: tuple[Any, ...] = (),
    *,
    depth: int = 0,
    turn: int = 0,
    tried: Tried | None = None,
) -> list[PlayedCase]:
    """Play the cases of ``entry`` on one item, then the automatic ones that it does not replace, then neighbours of gold.

    ``others`` are other items of the entry. At ``depth`` 0 the cases are played as a whole, twice and with neighbours where ``tried`` counts
    them; the later the ``turn``, the fewer. At 1 there are gold and what is made from it, at 2 gold and wrong content.
    """
    cases = entry.cases if entry is not None else ()
    kept = {GOLD} if depth else {GOLD, HACK, NOTHING} if stage.attack.alone else {case.name for case in cases}
    declared = tuple(case for case in cases if case.name in kept)
    found = [await _declared(stage, case, item, label, is_repeated=depth == 0 and tried is not None) for case in declared]
    transcript = _gold(cases, item)
    found = [replace(one, rung=replace(one.rung, stale=_stale(one, item, others))) if one.files else one for one in found]
    gold = next((one for one in found if one.rung.name == GOLD), None)
    work = work_of(transcript, item, gold, tuple(one.turns for other in others if (one := _gold(cases, other)).turns))
    fields = fields_of(item)
    work = replace(work, unread=fields_unread(type(stage.env), type(stage.env).compute_reward, fields))
    template = entry.around if entry is not None else None
    if gold is not None:
        rung = replace(gold.rung, copied=_copied(gold, work), order=_order(gold, work))
        found = [replace(one, rung=rung) if one is gold else one for one in found]
    taken = {case.name for case in cases}
    for name, policy in _automatic_cases(stage, work, depth, turn).items():
        if policy is not None and name not in taken:
            made = await _automatic(stage, name, policy, item, label, template)
            if name == WRONG_PLACE and made.files and not work.changed_files(made.files):
                continue  # only a program has another name, which makes the same work
            is_of_label = name == OTHER_GOLD and work.is_label
            found.append(replace(made, rung=replace(made.rung, against="its own label")) if is_of_label else made)
    is_paid = gold is not None and gold.rung.reward and not gold.rung.problem and not gold.rung.is_judge_guessed
    if tried is None or gold is None or not is_paid:
        return found
    if depth:
        found += await Around(stage=stage, gold=gold, transcript=transcript, work=work, left=NEW, tried=tried).play_new()
    else:
        idle = next((one.files for one in found if one.rung.name == NOTHING), {})
        work = replace(work, before=idle, unread=work.unread | await _unread(stage, transcript, work, gold))
        left = stage.effort * (NEAR_PROGRAMS if gold.runs_programs else NEAR) // (1 + turn)
        if gold.judged and turn == 0:
            found += await Judged(stage=stage, gold=gold, transcript=transcript, work=work).play()
        is_judged = any(one.rung.name == WRONG_CONTENT and one.rung.is_judge_guessed for one in found)
        around = Around(stage=stage, gold=gold, transcript=transcript, work=work, left=left, tried=tried)
        found += await around.play(is_judged=is_judged)
    return found


async def _unread(stage: Stage, transcript: Transcript, work: Work, gold: PlayedCase) -> frozenset[str]:
    """Return the fields that gold writes or says whole and without which it earns as much: the reward works out itself what is right."""
    whole = {slot.text.strip() for slot in work.slots()}
    labels = [
        str(name) for name, value in fields_of(work.item).items() if str(value).strip() in whole and name not in work.unread
    ]
    found = []
    for name in labels:
        item, blank = with_field(work.item, name, OTHER), replace(gold.rung, name=NEIGHBOUR, is_automatic=True)
        if item is work.item:
            continue
        one = await played(stage, Player(transcript, scripted(work.turns)), item, transcript, blank)
        found += [name] if (one.rung.reward or 0.0) >= (gold.rung.reward or 0.0) else []
    return frozenset(found)


async def play_other_first(
    stage: Stage, entry: ItemCases | None, item: Any, label: str, others: tuple[Any, ...], turn: int
) -> list[PlayedCase]:
    """Play the gold of another item where the item's own was not played yet: a reward that is measured by the best so far is another one then."""
    work = (
        work_of(_gold(entry.cases, item), item, None, tuple(_gold(entry.cases, one).turns for one in others)) if entry else None
    )
    policy = _automatic_cases(stage, work, 0, turn)[OTHER_GOLD] if work is not None and work.turns else None
    return [await _automatic(stage, OTHER_GOLD, policy, item, label, entry.around)] if entry is not None and policy else []


async def play_less(stage: Stage, entry: ItemCases | None, item: Any, label: str) -> list[PlayedCase]:
    """Play gold with a few small changes: what each earns does not depend on whether better work was seen."""
    transcript = _gold(entry.cases, item) if entry is not None else Transcript(turns=())
    work = work_of(transcript, item, None, ())
    made: dict[bool, dict[str, tuple[Turn, ...]]] = {True: {}, False: {}}
    slots = work.slots() if work.turns else []
    for slot, change in near(
        [slot for slot in slots if slot.name != ANSWER] or slots
    ):  # with its files whole, gold's work is done
        made[change.is_sure].setdefault(change.name, slot.put(change.text))
    few = [one for names in made.values() for one in list(names.items())[:MOST_LESS]]
    blank = Rung(name=NEIGHBOUR, item=label, is_automatic=True)
    return [
        await played(
            stage,
            Player(replace(transcript, turns=turns, judge=()), scripted(turns)),
            item,
            transcript,
            replace(blank, change=name),
        )
        for name, turns in few
    ]


_OBJECTS = "/.git/objects/"


def _of_git(data: bytes) -> bytes:
    """Return the content of a file that git keeps as an object of its own."""
    with contextlib.suppress(zlib.error):
        head, _, content = zlib.decompress(data).partition(b"\0")
        return content if head.startswith(b"blob ") else b""
    return b""


def _copied(gold: PlayedCase, work: Work) -> str:
    """Return the prepared file that holds just what gold wrote itself, and that neither gold nor the prompt names; empty where none does."""
    told = "\n".join((work.prompt, str(work.turns)))
    made = [
        node.data.strip()
        for path, node in gold.files.items()
        if node.party == "agent" and len(node.data.strip()) >= _LONG and (work.is_read(path) or work.is_asked_for(path))
    ]
    written = {slot.text.strip().encode() for slot in Work(turns=work.turns, item=work.item).slots()}
    prepared = {path: node.data.strip() for path, node in gold.files.items() if node.party == "environment"}
    if not OF_HISTORY.search(work.prompt):
        kept = {path: node.data for path, node in gold.files.items() if path in prepared and _OBJECTS in path}
        there = {*prepared.values()}  # these files are judged by their own names
        contents = {path: _of_git(data).strip() for path, data in kept.items()}
        prepared |= {f"{path}, of git's history": held for path, held in contents.items() if held not in there}
    return next(
        (
            path
            for path, data in prepared.items()
            if data in written.intersection(made) and posixpath.basename(path) not in told
        ),
        "",
    )


def _order(gold: PlayedCase, work: Work) -> str:
    """Return in which order the prompt, or a prepared file, gives what gold puts into one."""
    prepared = (node.data.decode(errors="replace") for node in gold.files.values() if node.party == "environment")
    given = [work.prompt, *prepared]
    return next(filter(None, (order_in(slot.text, work.prompt, given) for slot in work.slots())), "")


def _stale(one: PlayedCase, item: Any, others: tuple[Any, ...]) -> str:
    """Return the prepared file that holds a text which only another item has; empty where none does."""
    own = "\n".join(texts_of(item))
    strange = [text for other in others for text in texts_of(other) if len(text) >= _LONG and text not in own]
    prepared = {path: node.data.decode(errors="replace") for path, node in one.files.items() if node.party == "environment"}
    return next((path for path, held in prepared.items() for text in strange if text in held), "")


def work_of(transcript: Transcript, item: Any, gold: PlayedCase | None, others: tuple[tuple[Turn, ...], ...]) -> Work:
    """Return what is known of gold's work; of gold that was not played, its turns."""
    if gold is None or not gold.records:
        return Work(turns=transcript.turns, item=item, others=others)
    requests = [request for request in gold.records[0].requests if request.get("tools")]
    messages = requests[0]["messages"] if requests else ()
    prompt = next((message.get("content") for message in messages if message.get("role") == "user"), "")
    return Work(
        turns=transcript.turns,
        item=item,
        prompt=prompt if isinstance(prompt, str) else str(prompt),
        tools=tuple(requests[0]["tools"]) if requests else (),
        files=gold.files,
        reads=gold.rung.reads,
        others=others,
    )


def _automatic_cases(stage: Stage, work: Work, depth: int, turn: int) -> dict[str, Policy | None]:
    """Return the policies of the automatic cases; None where there is none."""
    bad = work.all_wrong(work.slots()) if work.turns else ()
    wrong = scripted(bad) if said(bad) != said(work.turns) else _wrong_content
    others = [turns for turns in work.others if turns and said(turns) != said(work.turns)]
    other = scripted(others[(depth + turn) % len(others)]) if others else None  # of another item for each
    if depth > 1:
        return {WRONG_CONTENT: wrong, OTHER_GOLD: other}
    misplaced = _misplaced(work.turns, tuple(path for path, node in work.files.items() if node.party == "agent"))
    return {
        TOOLS: None if depth else tool_using_policy(getattr(stage.env.config, "max_agent_turns", 30)),
        WRONG_CONTENT: wrong,
        WRONG_PLACE: scripted(misplaced) if misplaced else None,
        OTHER_GOLD: other,
        ECHO: _echo,
        NOTHING: silent_policy,
    }


async def _declared(stage: Stage, case: Case, item: Any, label: str, *, is_repeated: bool = True) -> PlayedCase:
    blank = Rung(name=case.name, item=label, is_automatic=False, path=case.path, line=case.line)
    if case.of is None:
        rung = replace(blank, unavailable=f"{case.name} of {label} is not filled in", is_unfilled=True)
        return PlayedCase(rung=rung)
    try:
        transcript = case.of(item)
    except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
        return PlayedCase(rung=replace(blank, problem=_as_text(error)))
    first = await played(stage, Player(transcript), item, transcript, blank)
    if first.rung.reward is None or first.rung.problem or first.rung.is_judge_guessed or not is_repeated:
        return first
    again = await played(stage, Player(transcript), item, transcript, blank)
    rung = replace(first.rung, again=again.rung.reward, again_error=again.rung.error)
    return replace(first, rung=rung, records=first.records + again.records)


def _as_text(error: Exception) -> str:
    return str(error) if isinstance(error, HermesEnvError) else f"{type(error).__name__}: {shorten(str(error))}"


async def _automatic(
    stage: Stage,
    name: str,
    policy: Policy,
    item: Any,
    label: str,
    around: Callable[[Any, tuple[Turn, ...]], Transcript] | None,
) -> PlayedCase:
    blank = Rung(name=name, item=label, is_automatic=True)
    try:
        # without the judge's answers: they are about work that the author knows
        transcript = replace(around(item, ()), judge=()) if around is not None else Transcript(turns=())
    except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
        return PlayedCase(rung=replace(blank, problem=_as_text(error)))
    return await played(stage, Player(transcript, policy), item, transcript, blank)


# The automatic cases


def _gold(cases: tuple[Case, ...], item: Any) -> Transcript:
    """Return gold of an item; without any, a transcript without turns."""
    for case in cases:
        if case.name == GOLD and case.of is not None:
            with contextlib.suppress(Exception):  # the gold case itself reports it
                return case.of(item)
    return Transcript(turns=())


def _misplaced(turns: tuple[Turn, ...], paths: tuple[str, ...]) -> tuple[Turn, ...]:
    """Return turns in which these files have other names; nothing where none is named."""
    names = {posixpath.basename(path) for path in paths}
    if not names:
        return ()
    pattern = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, sorted(names)))})(?![\w-])")

    def elsewhere(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(r"misplaced_\1", value)
        if isinstance(value, dict):
            return {key: elsewhere(part) for key, part in value.items()}
        return [elsewhere(part) for part in value] if isinstance(value, list) else value

    def moved(step: Any) -> Any:
        return call(step.tool, **elsewhere(given)) if (given := arguments_of(step)) else step

    made = tuple(Turn(steps=tuple(moved(step) for step in turn.steps)) for turn in turns)
    return made if said(made) != said(turns) else ()


def _echo(conversation: Any) -> Any:
    return say(conversation.first_user or NOTHING)


def _wrong_content(conversation: Any) -> Any:
    """Write the files that the prompt names, with wrong content; if it names none, give a wrong answer."""
    names = list(dict.fromkeys(_FILE_NAME.findall(conversation.first_user)))[:_MOST_FILES]
    tools = conversation.tools
    if conversation.turn or not names:
        return say(OTHER)
    if "write_file" in tools:
        return [call("write_file", path=name, content=OTHER) for name in names]
    if "terminal" in tools:
        return call("terminal", command="; ".join(f"echo {OTHER} > {name}" for name in names))
    return say(OTHER)
