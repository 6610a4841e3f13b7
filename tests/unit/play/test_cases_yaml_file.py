"""Cases in a YAML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.errors import BadCases
from pytest_hermes_env.inference import call, say, turn
from pytest_hermes_env.play.cases.values import Transcript
from pytest_hermes_env.play.cases.yaml_file import read_cases
from pytest_hermes_env.sandbox.answers import Answer

ITEM = {"name": "ann", "times": 3, "tags": ["a", "b"]}


def written(tmp_path: Path, text: str) -> Path:
    """Return a file with that text."""
    file = tmp_path / "env.contract.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_case_is_filled_with_parts_of_its_item(tmp_path: Path) -> None:
    """A text that is one part keeps the part's type; others are texts; what is not of the item stays as it is."""
    file = written(
        tmp_path,
        """
class: GreetEnv
order: [gold, [near_miss, nothing]]
gap: 0.3
judge: {say: outer}
files: {a.txt: wide, b.txt: wide}
items:
  - where: {name: ann}
    files: {b.txt: "of ${item.name}"}
    commands: [{on: "ls ${item.times}", output: "${HOME}", exit_code: 2}]
    tools: {web_search: {hits: "${item.tags}"}}
    gold:
      turns:
        - {call: terminal, with: {command: "echo ${item.name} ${item.tags.1}", timeout: "${item.times}"}}
        - {say: "${item}"}
      judge: [{say: first}, {say: second}]
    near_miss: TODO
    others:
      late: [{say: late}]
""",
    )

    found = read_cases(file)
    (entry,) = found.cases.items
    gold, near_miss, late = entry.cases
    assert (found.class_name, found.cases.order, found.cases.gap, found.cases.is_strict) == (
        "GreetEnv",
        (("gold",), ("near_miss", "nothing")),
        0.3,
        True,
    )
    assert (entry.kind, entry.which(ITEM), entry.which({"name": "bob"}), entry.line) == ("where", True, False, 8)
    assert [(case.name, case.of is None, case.line) for case in (gold, near_miss, late)] == [
        ("gold", False, 12),
        ("near_miss", True, 17),
        ("late", False, 19),
    ]
    assert gold.of is not None
    assert late.of is not None
    around = {
        "files": {"a.txt": "wide", "b.txt": "of ann"},
        "commands": (("ls 3", Answer(output="${HOME}", exit_code=2)),),
        "tools": (("web_search", {"hits": ["a", "b"]}),),
    }
    with pytest.raises(BadCases, match="'say' must be a string; got a mapping"):
        gold.of(ITEM)
    assert late.of(ITEM) == Transcript(turns=(turn(say("late")),), judge=(turn(say("outer")),), **around)


def test_turns_and_judges_are_those_of_scripts(tmp_path: Path) -> None:
    """A gold with arguments of the item's own types, and a judge of several answers."""
    file = written(
        tmp_path,
        """
items:
  - index: 1
    gold:
      turns:
        - {call: terminal, with: {command: "echo ${item.name}", timeout: "${item.times}"}}
        - {say: done}
      judge: [{say: first}, {say: second}]
      sandbox: local
""",
    )

    (entry,) = read_cases(file).cases.items
    assert entry.cases[0].of is not None
    assert (entry.kind, entry.which, entry.label) == ("index", 1, "training item 1")
    assert entry.cases[0].of(ITEM) == Transcript(
        turns=(turn(call("terminal", command="echo ann", timeout=3)), turn(say("done"))),
        judge=(turn(say("first")), turn(say("second"))),
        sandbox="local",
    )


WRONG = {
    "items: [{index: 0, glod: [{say: x}]}]": (
        "1: an entry of 'items' has no field 'glod'.\n"
        "  known     gold, commands, index, judge, files, tools, others, nothing, sandbox, item, where, near_miss, hack"
    ),
    "gap: 1": "1: a file of cases needs the field 'items'.\n  fix       items: [{index: 0, gold: [{say: done}]}]",
    "items: []": "1: 'items' needs at least one entry.",
    "items: [{gold: [{say: x}]}]": (
        "1: an entry of 'items' has one of 'index', 'item' and 'where', which select its items; got none of them."
    ),
    "items: [{index: 0, item: 1, gold: [{say: x}]}]": (
        "1: an entry of 'items' has one of 'index', 'item' and 'where', which select its items; got 'index' and 'item'."
    ),
    "items: [{index: 0}]": "1: an entry of 'items' has no case.\n  known     gold, near_miss, nothing, hack, others",
    "items: [{index: -1, gold: [{say: x}]}]": "1: 'index' is the number of a training item, from 0; got int -1.",
    "items: [{where: easy, gold: [{say: x}]}]": (
        "1: 'where' is '*' for every item, or what an item must have; got str 'easy'.\n  fix       where: {level: easy}"
    ),
    "items: [{index: 0, gold: []}]": "1: the case 'gold' has no turn.\n  fix       gold: [{say: done}]",
    "items: [{index: 0, gold: {judge: {say: x}}}]": (
        "1: the case 'gold' needs the field 'turns'.\n  fix       gold: [{say: done}]"
    ),
    "items: [{index: 0, gold: {turns: [{say: x}], sandbox: docker}}]": "1: 'sandbox' is one of fake and local; got 'docker'.",
    "items: [{index: 0, gold: [{sya: x}]}]": (
        "1: 'sya' is not a step.\n  known     say, sampled, call, fail, hang, garbage, empty_choices, think"
    ),
    "items: [{index: 0, others: {Bad Name: [{say: x}]}}]": (
        "1: 'Bad Name' cannot name a case: use lower-case letters, digits and _, such as wrong_place"
    ),
    "items: [{index: 0, others: {gold: [{say: x}]}}]": "1: 'gold' must be next to 'others', not inside it.",
    "items: [{index: 0, commands: [{output: x}], gold: [{say: x}]}]": (
        "1: an entry of 'commands' has 'on' (the exact command) or 'on_matches' (a pattern)."
    ),
    "gap: -1\nitems: [{index: 0, gold: [{say: x}]}]": "1: the gap between rewards must be a number of at least 0, such as 0.2; got -1",
    "order: [gold, neer]\nitems: [{index: 0, gold: [{say: x}]}]": (
        "1: the order names 'neer', which is not a case.\n  known     near_miss, other_gold, wrong_place, echo, wrong_content, nothing, gold, hack, tools"
    ),
    "order: [gold]\nitems: [{index: 0, gold: [{say: x}]}]": (
        "1: the order needs at least two parts: a single one compares nothing. Example: [gold, near_miss, nothing]"
    ),
    "order: [gold, gold]\nitems: [{index: 0, gold: [{say: x}]}]": "1: the order names 'gold' a second time.",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_meant_is_refused(text: str, tmp_path: Path) -> None:
    """The message names file, line, what was expected and what comes nearest."""
    file = written(tmp_path, text)

    with pytest.raises(BadCases) as caught:
        read_cases(file)
    assert str(caught.value) == f"{file}:{WRONG[text]}"


def test_a_part_that_the_item_does_not_have_is_refused(tmp_path: Path) -> None:
    """The message names what the item has."""
    file = written(tmp_path, "items:\n  - index: 0\n    gold:\n      - {say: '${item.nam}'}\n")
    (entry,) = read_cases(file).cases.items

    assert entry.cases[0].of is not None
    with pytest.raises(BadCases) as caught:
        entry.cases[0].of(ITEM)
    assert str(caught.value) == f"{file}:4: the item has no 'nam'.\n  item      name, times, tags"


def test_a_part_of_the_item_may_stand_in_one_of_the_shell(tmp_path: Path) -> None:
    """Of those the shell's own stay."""
    text = "items:\n  - index: 0\n    gold:\n      - {say: 'n=${1:-${item.times}} ${items} ${HOME}'}\n"
    (entry,) = read_cases(written(tmp_path, text)).cases.items

    assert entry.cases[0].of is not None
    assert entry.cases[0].of(ITEM).turns == (turn(say("n=${1:-3} ${items} ${HOME}")),)
