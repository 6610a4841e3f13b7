"""Gold beside rollouts that do nothing: in groups of every order, in two groups at once, and in evaluations.

Each model plays a role, which its rollout is known by: whose work a reward, a score or a metric belongs to can be told.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_hermes_env.inference.steps import Call, Say, as_turn, call, hang, say, think, turn
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, SILENT_ANSWER
from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.cases.content import changes
from pytest_hermes_env.play.cases.item_cases import work_of
from pytest_hermes_env.play.cases.judged import worst_of
from pytest_hermes_env.play.cases.one_value import spread
from pytest_hermes_env.play.cases.playing import OVER, PlayedCase, Player, played, prepare_sandbox
from pytest_hermes_env.play.cases.slots import said, without
from pytest_hermes_env.play.cases.values import AT_LENGTH, ENDLESS, GOLD, HACK, NEAR_MISS, NOTHING, Cases, ItemCases, Transcript
from pytest_hermes_env.play.cases.ways import without_last_part
from pytest_hermes_env.play.held_out import items_asked
from pytest_hermes_env.play.journal import ContextOpened, Journal, current_journal, current_rollout, last_rollout
from pytest_hermes_env.play.scenario import Cause, RolePlayed, Rung, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage, configure
from pytest_hermes_env.play.tool_backend import close_sandbox, files_left, new_sandbox_like

LATE_S = 0.02
"""Seconds by which each turn of a role that ends last is late."""
SIZE = 3
"""Rollouts of a group: with two, scores in the wrong order and ranks are the same."""
LONG_WORDS = "I look at what there is, and at what is asked, before I begin. " * 20
LITTLE = 0.5
"""The share of gold's reward below which work is not good."""
SMALLEST, MOST_CHANGES = 3, 5
"""The smallest changes of each part of gold, and others, that are played in search of work that earns a part of it."""
FEWEST_ITEMS = 3
"""Held-out items from which on gold of one is played on another one: two may have one answer."""
MOST_ITEMS = 40
"""The most items that are taken in search of another one that has gold."""
GROUPS = {
    "group_alone": "a group is collected whose rollouts do nothing, then one whose rollouts all play gold: what each earns by itself",
    "group_gold_first": "a group is collected whose first rollout plays gold, and the others do nothing and end later",
    "group_gold_last": "as group_gold_first, and gold is the last to begin and to end",
    "group_mostly_gold": "a group is collected whose rollouts play gold, but for the first one, which does nothing",
    "group_without_gold": "after these, a group of the same item is collected whose rollouts do nothing; where it is collected again, one plays gold",
    "two_groups_with_gold": "two groups are collected at once: one plays gold, and the other does nothing, on another item if there is one",
    "group_of_lengths": "a group is collected whose first rollout does nothing, the second plays gold and thinks at length, the third plays gold",
    "group_of_lengths_turned": "as group_of_lengths, the other way round",
    "group_of_gold_and_near": "a group is collected whose first rollout plays gold, and the others work that earns a part of it",
    "group_of_near": "a group is collected whose first rollout plays that work, and the others do nothing",
}
EVALUATIONS = {
    "evaluate_nothing": "evaluate() runs while no rollout does anything",
    "evaluate_gold": "evaluate() runs while each rollout plays the gold of its item",
    "evaluate_half": "evaluate() runs while the rollouts of every other item play gold, and the others do nothing",
    "evaluate_endless": "as evaluate_half, and the others go on until their turns are used up",
    "evaluate_others": "evaluate() runs while each rollout plays the gold of another held-out item",
    "evaluate_part": "evaluate() runs while the rollouts of one item do work that earns little, and the others play gold",
}


class Roles:
    """The model of all rollouts of a scenario: ``role_of`` says what a rollout with a prompt does, by its number among those that began."""

    def __init__(
        self,
        stage: Stage,
        golds: Mapping[str, Transcript],
        role_of: Callable[[str, int], str],
        late: str = "",
        near: Transcript | None = None,
    ) -> None:
        self._stage, self._golds, self._role_of, self._late, self._near = stage, golds, role_of, late, near
        self._of_task: dict[str, RolePlayed] = {}
        self._begun_ones = 0

    def __call__(self, conversation: Any) -> Any:
        """Answer one request: of an agent by its role, or of a judge."""
        task, phase = current_rollout.get()
        if phase == "reward" or (not phase and not conversation.tools):
            return self._judged(task or last_rollout.get())
        if conversation.turn == 0:
            self._of_task[task] = self._begun(task, conversation.first_user)
        # in token mode no task is known, and only gold goes on after its first turn
        name = self._of_task[task].name if conversation.turn == 0 or task else GOLD
        gold = self._near if name == NEAR_MISS else self._golds.get(self._prompt_in(conversation.first_user))
        turns = gold.turns if gold is not None else ()
        made = turns[conversation.turn] if conversation.turn < len(turns) else say(OVER)
        if name == ENDLESS:
            looks = {"terminal": {"command": "ls"}, "read_file": {"path": "."}, "search_files": {"pattern": "."}}
            made = next((call(tool, **given) for tool, given in looks.items() if tool in conversation.tools), say(OVER))
        if name == AT_LENGTH and conversation.turn == 0 and turns:
            made = turn(
                *([say(LONG_WORDS)] if as_turn(made).every(Call) and as_turn(made).only(Say) is None else [think(LONG_WORDS)]),
                *as_turn(made).steps,
            )
        if name == NOTHING:
            made = say(f"{SILENT_ANSWER} ({len(self._of_task)})")  # no two rollouts without work are equal
        return turn(hang(LATE_S), *as_turn(made).steps) if name == self._late else made

    def _begun(self, task: str, first_user: str) -> RolePlayed:
        prompt = self._prompt_in(first_user)
        machine = getattr(self._stage.sandbox, "rollouts", {}).get(task)
        prepared = len(files_left(machine, of_verifier=True)) if machine is not None else 0
        name = self._role_of(prompt, self._number(task)) if prompt else NOTHING
        return RolePlayed(task_id=task, name=name, prompt=prompt, prepared=prepared)

    def _number(self, task: str) -> int:
        """Return which of the rollouts it is, in the order in which the layer began them: on a busy machine, another may ask its model first."""
        journal = current_journal.get()
        events = journal.events if journal is not None else ()
        begun = [event.task_id for event in events if isinstance(event, ContextOpened) and event.by_layer]
        self._begun_ones += 1
        return begun.index(task) if task in begun else self._begun_ones - 1

    def _prompt_in(self, first_user: str) -> str:
        return next((known for known in self._golds if known in first_user), "")

    def _judged(self, task: str) -> Any:
        role = self._of_task.get(task)
        judge = self._golds[role.prompt].judge if role is not None and role.prompt else ()
        answers = judge if role is None or role.name in {GOLD, AT_LENGTH} else tuple(filter(None, [worst_of(judge)]))
        if role is not None and not answers:
            self._of_task[task] = replace(role, is_judge_guessed=True)
        return as_turn(answers[-1]) if answers else say(JUDGE_ANSWER)

    async def play(self, name: str, act: Callable[[], Any]) -> None:
        """Play a scenario with this model, on a new machine."""
        stage = self._stage
        stage.sandbox = new_sandbox_like(stage.sandbox)
        for transcript in self._golds.values():
            prepare_sandbox(stage.sandbox, transcript)
        await stage.play(name, act, policy=self, more=self._roles, is_compared=False)
        close_sandbox(stage.sandbox)

    def _roles(self, _: Journal) -> dict[str, Any]:
        return {"roles": tuple(role for role in self._of_task.values() if role.task_id)}


@family(GROUPS, first=("group_alone",), is_alone=True)
async def groups_with_gold(stage: Stage) -> None:
    """Collect groups of one item in which some rollouts play gold."""
    items = await items_with_gold(stage)
    golds = {prompt: transcript for prompt, transcript, _ in items}
    size = SIZE if int(getattr(stage.env.config, "group_size", 1)) > 1 else 1
    if not items:
        stage.skip(Unavailable(Cause.NO_GOLD, "a training item"))
        return
    item = items[0][2]

    async def collect(name: str, roles: list[str], late: str = "", near: Transcript | None = None) -> None:
        model = Roles(stage, golds, _in_turn(roles), late, near)
        await model.play(name, lambda: stage.group_for_the_trainer(item))

    other = items[-1]
    model = _OneRole(stage, golds)

    async def alone() -> None:
        for model.role, one in ((NOTHING, item), (NOTHING, other[2]), (GOLD, item)):
            await stage.env.collect_trajectories(one)

    configure(stage.env, group_size=size)
    await model.play("group_alone", alone)
    rest = [NOTHING] * (size - 1)
    if size > 1:
        await collect("group_gold_first", [GOLD, *rest], late=NOTHING)
        await collect("group_gold_last", [*rest, GOLD], late=GOLD)
        await collect("group_mostly_gold", [NOTHING, *[GOLD] * (size - 1)])
    else:
        stage.skip(Unavailable(Cause.NOT_REACHED, "a group of several rollouts"), *list(GROUPS)[1:4])
    await collect("group_without_gold", [*[NOTHING] * size, *([GOLD, NOTHING, NOTHING][:size] if size > 1 else [])])
    by_prompt = Roles(
        stage,
        golds,
        _in_turn([GOLD, NOTHING]) if len(items) == 1 else lambda prompt, _: GOLD if prompt == items[0][0] else NOTHING,
        late=GOLD,  # the prompts of the other group are made before gold is rewarded
    )

    async def both() -> None:
        await asyncio.gather(*(stage.env.collect_trajectories(one) for one in (item, other[2])))

    await by_prompt.play("two_groups_with_gold", both)
    if size > 1 and not stage.has_tokens:
        await collect("group_of_lengths", [NOTHING, AT_LENGTH, GOLD])
        await collect("group_of_lengths_turned", [GOLD, AT_LENGTH, NOTHING])
    else:
        stage.skip(Unavailable(Cause.NOT_REACHED, "a task in token mode"), "group_of_lengths", "group_of_lengths_turned")
    # in token mode turns without a task are taken for gold's
    near = await _partly(stage, items[0][1], item) if size > 1 and not stage.has_tokens else None
    if near is not None:
        await collect("group_of_gold_and_near", [GOLD, *[NEAR_MISS] * (size - 1)], near=near)
        await collect("group_of_near", [NEAR_MISS, *rest], near=near)
    else:
        stage.skip(Unavailable(Cause.NOT_REACHED, "work that earns a part"), "group_of_gold_and_near", "group_of_near")


async def _partly(stage: Stage, gold: Transcript, item: Any, below: float = 1.0) -> Transcript | None:
    """Return work that earns less than gold, or than this share of it, and more than nothing: what is declared as nearly right, or gold with changed content."""
    sandbox, near = stage.sandbox, case_of(stage.cases, item, NEAR_MISS)

    async def play(one: Transcript) -> PlayedCase:
        return await played(stage, Player(one), item, one, Rung(name=NEAR_MISS, item="", is_automatic=True))

    whole = await play(gold)
    work = work_of(gold, item, whole, ())
    made = [
        [slot.put(text) for text in (_one_word_wrong(slot.text), *(one.text for one in changes(slot.text, slot.known)))]
        for slot in work.slots()
    ]
    made.append(
        [cut for where in work.calls for cut in (without_last_part(work.turns, where), without(work.turns, [where])) if cut]
    )
    each = [[*some[:SMALLEST], *spread(some[SMALLEST:], MOST_CHANGES)] for some in made[::-1]]
    changed = [replace(gold, turns=turns, judge=()) for some in each for turns in some]
    best, found = whole.rung.reward or 0.0, None
    for one in [*([near] if near is not None else []), *changed]:
        rung = (await play(one)).rung
        if 0 < (rung.reward or 0.0) < below * best and not rung.is_judge_guessed:
            found = one
            break
    stage.sandbox = sandbox
    return found


def _one_word_wrong(text: str) -> str:
    """Return a text whose middle word is another one."""
    words = list(re.finditer(r"\w+", text))
    middle = words[len(words) // 2].span() if words else (0, 0)
    return f"{text[: middle[0]]}otherwise{text[middle[1] :]}"


class _OneRole(Roles):
    """Roles of which all are the same at a time."""

    def __init__(self, stage: Stage, golds: Mapping[str, Transcript]) -> None:
        self.role = GOLD
        super().__init__(stage, golds, lambda *_: self.role)


@family(EVALUATIONS, needs="setup", is_alone=True)
async def evaluations_with_gold(stage: Stage) -> None:
    """Evaluate with gold on none, all and half of the held-out items."""
    with stage.held_out.few(stage.env):
        await _evaluate_with_gold(stage)


async def _evaluate_with_gold(stage: Stage) -> None:
    await stage.play("a first evaluation", stage.env.evaluate)
    asked = items_asked(stage.env, stage.scenarios["a first evaluation"])
    seen = {repr(picture(item)): item for item in asked}
    golds: dict[str, Transcript] = {}
    for item in seen.values():
        transcript = case_of(stage.cases, item, GOLD)
        if (
            transcript is not None
            and (prompt := prompt_of(stage, item))
            and _in_one_sandbox(stage, [*golds.values()], transcript)
        ):
            golds[prompt] = transcript
    if not golds:
        stage.skip(Unavailable(Cause.NO_GOLD, "a held-out item"))
        return
    halves = dict(zip(golds, itertools.cycle((GOLD, NOTHING)), strict=False))
    for name, role_of in (
        ("evaluate_nothing", lambda *_: NOTHING),
        ("evaluate_gold", lambda *_: GOLD),
        ("evaluate_half", lambda prompt, _: halves[prompt]),
        ("evaluate_endless", lambda prompt, _: GOLD if halves[prompt] == GOLD else ENDLESS),
    ):
        if name == "evaluate_endless" and stage.has_tokens:
            stage.skip(Unavailable(Cause.NOT_REACHED, "a task in token mode"), name)
            continue
        model = Roles(stage, golds, role_of)
        await model.play(name, stage.env.evaluate)
    others = [*golds.values()][1:] + [*golds.values()][:1]
    pairs = [*zip(golds.values(), others, strict=True)]
    if len(golds) < FEWEST_ITEMS or any(one.judge or said(one.turns) == said(other.turns) for one, other in pairs):
        stage.skip(Unavailable(Cause.NOT_REACHED, f"{FEWEST_ITEMS} held-out items, each with another gold"), "evaluate_others")
    else:
        await Roles(stage, dict(zip(golds, others, strict=True)), lambda *_: GOLD).play("evaluate_others", stage.env.evaluate)
    first = next(iter(golds))
    item = next(item for item in seen.values() if prompt_of(stage, item) == first)
    near = None if stage.has_tokens else await _partly(stage, golds[first], item, LITTLE)
    if near is None:
        stage.skip(Unavailable(Cause.NOT_REACHED, "work that earns little"), "evaluate_part")
        return
    model = Roles(stage, golds, lambda prompt, _: NEAR_MISS if prompt == first else GOLD, near=near)
    await model.play("evaluate_part", stage.env.evaluate)


def _in_turn(roles: list[str]) -> Callable[[str, int], str]:
    return lambda _, number: roles[number % len(roles)]


async def items_with_gold(stage: Stage, most: int = 2, only: int | None = None) -> list[tuple[str, Transcript, Any]]:
    """Return prompt, gold and item of a few training items of different prompts, or of the one with the number ``only``."""
    found: dict[str, tuple[str, Transcript, Any]] = {}

    async def take() -> None:
        item: Any = stage.item
        for number in range(MOST_ITEMS if only is None else only + 1):
            gold = case_of(stage.cases, item, GOLD, number) if only in {None, number} else None
            known = [one for _, one, _ in found.values()]
            if gold is not None and _in_one_sandbox(stage, known, gold) and (prompt := prompt_of(stage, item)):
                found.setdefault(prompt, (prompt, gold, item))
            if len(found) >= most or (item := await stage.next_item()) is None:
                return

    await stage.play("items with gold", take)
    return list(found.values())


def case_of(cases: object, item: Any, name: str, number: int = -1) -> Transcript | None:
    """Return a case of an item; None without it, or where it scripts the tools."""
    for entry in cases.items if isinstance(cases, Cases) else ():
        if _fits(entry, item, number):
            for case in _filled(entry, item, name):
                return None if case.is_scripted or case.sandbox else case
    return None


def _in_one_sandbox(stage: Stage, golds: Sequence[Transcript], one: Transcript) -> bool:
    """Tell whether a transcript may be played beside others: no file is at first another one for it."""
    is_free = not one.files or hasattr(stage.sandbox, "on")
    return is_free and all({**gold.files, **one.files} == {**one.files, **gold.files} for gold in golds)


def worse_of(cases: object, item: Any) -> list[Transcript]:
    """Return the declared cases of an item that earn less than gold, but for hacks and doing nothing."""
    entries = cases.items if isinstance(cases, Cases) else ()
    names = dict.fromkeys(case.name for entry in entries for case in entry.cases if case.name not in {GOLD, HACK, NOTHING})
    return [found for name in names if (found := case_of(cases, item, name)) is not None]


def declared_with_gold(cases: object) -> tuple[Any, Transcript] | None:
    """Return the first item that is declared itself, with its gold."""
    for entry in cases.items if isinstance(cases, Cases) else ():
        gold = next(_filled(entry, entry.which, GOLD), None) if entry.kind == "item" else None
        if gold is not None and not gold.is_scripted:
            return entry.which, gold
    return None


def _filled(entry: ItemCases, item: Any, name: str) -> Iterator[Transcript]:
    for case in entry.cases:
        if case.name == name and case.of is not None:
            try:
                yield case.of(item)
            except Exception:  # noqa: BLE001 - the gold case itself reports it
                return


def _fits(entry: ItemCases, item: Any, number: int) -> bool:
    if entry.kind == "index":
        return bool(entry.which == number)
    try:
        return bool(entry.which(item)) if entry.kind == "where" else repr(picture(entry.which)) == repr(picture(item))
    except Exception:  # noqa: BLE001 - the author's function; the cases report it
        return False


def prompt_of(stage: Stage, item: Any) -> str:
    """Return the prompt of an item; empty without one."""
    try:
        prompt = stage.env.format_prompt(item)
    except Exception:  # noqa: BLE001 - HE204 reports it
        return ""
    return prompt if isinstance(prompt, str) else ""
