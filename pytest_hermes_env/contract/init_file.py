"""``hermes-env init``: writes the first file of cases for an environment, with its real items in it.

Place in the flow: the environment is built on the mock model and set up without a network, its first items are taken; the text
is written next to its file, whole or not at all. `finding` finds it there from then on.
"""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pytest_hermes_env.contract.gold_search import look_for_gold, promoted, turn_lines
from pytest_hermes_env.contract.judge.causes import with_causes
from pytest_hermes_env.contract.judge.subject import Subject, subjects_of
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.errors import BadCases, BadTarget, UsageError
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.cases.yaml_file import read_cases
from pytest_hermes_env.play.scenario import CASES, Scenario
from pytest_hermes_env.redaction.shown_text import shown_path
from pytest_hermes_env.source import SourceTree, read_classes, without_abstract_bases
from pytest_hermes_env.source.finding import Finding

FEW = 3
"""How many items are written down."""
WIDTH = 110
LONGEST = 400
"""Characters of a prompt that are shown."""
TIMEOUT_S = 60.0

_CASES = (
    "    gold: TODO    # a list of turns that solves the item and earns the full reward",
    "    near_miss:    # almost right: make it a likely mistake, such as the right work in the wrong place",
    "      - {say: The task is done.}",
    "    nothing:",
    "      - {say: I do not know how to do that.}",
    "    # hack:       # what a cheat would do to earn the reward without the work",
    "    #   - {say: All tests passed.}",
)
_NO_ITEM = (
    "  # get_next_item returned None. Write an item here in the form that compute_reward and format_prompt expect.",
    "  - item: null",
)


@dataclass(frozen=True, kw_only=True)
class Started:
    """What was written: ``file``, for ``items`` items of ``class_name``. ``gold`` says what came of looking for it."""

    file: str
    class_name: str
    items: int
    gold: str = ""


def start(target: str, *, output: str = "", is_forced: bool = False, rollouts: str = "") -> Started:
    """Write the first file of cases for the environment that ``target`` names. ``rollouts``: a file from which gold is taken.

    Raises: not one environment, or it cannot be set up → BadTarget; the file is there already, or no place for it → UsageError.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    subjects = subjects_of(target)
    if len(subjects) > 1:
        names = ", ".join(subject.name for subject in subjects)
        raise BadTarget(f"{target} defines {len(subjects)} environments: {names}. Name one: {target}:{subjects[0].name}")
    file = Path(output) if output else _file_for(subjects[0])
    if file.exists() and not is_forced:
        raise UsageError(f"{_shown(file)} already exists and may contain your cases: --force overwrites it")
    if file.suffix != ".yaml":
        raise UsageError(f"the file of cases is YAML: {file.name} should end in .yaml")
    (env_class,) = find_class(target)
    record, played = _items_of(env_class)
    items = _distinct(record)
    if rollouts:
        taken = promoted(rollouts, {item.prompt.strip(): at for at, item in enumerate(items) if isinstance(item.prompt, str)})
        entries = [[*_entry(number, items[number]), *lines] for number, lines in list(taken.items())[:FEW]]
        found = f"gold is the best of {_shown(Path(rollouts))}"
    else:
        entries, found = _searched(env_class, played, items)
    _write(file, _text(env_class, entries, target))
    return Started(file=_shown(file), class_name=env_class.__name__, items=min(len(items), FEW), gold=found)


def _searched(env_class: type, played: Scenario, items: list[Any]) -> tuple[list[list[str]], str]:
    """Return the entries of the file, with gold if a search finds it, and what came of that in a sentence."""
    gold, tried = look_for_gold(env_class, played, items[0].value) if items else (None, 0)
    if gold is None:
        entries = [[*_entry(number, item), *_CASES] for number, item in enumerate(items[:FEW])]
        return entries, f"no gold was found: none of {tried} templates earned on each item; fill it in" if items else ""
    earned = ", ".join(f"{reward:g}" for reward in gold.rewards)
    how = ", with a judge that says yes to everything" if gold.judge else ""
    remark = f"    # found by trying: it earned {earned}{how}. Confirm that it is good work, and remove this line"
    judge = (
        [f"    judge: {json.dumps(gold.judge['judge'])}    # for all cases of the entry: give each its own"]
        if gold.judge
        else []
    )
    entry = ['  - where: "*"    # every training item', *judge, remark, *turn_lines(GOLD, gold.turns), *_CASES[1:]]
    return [entry], f"gold was found, and earned {earned}{how}: confirm that it is good work"


def _distinct(record: Scenario) -> list[Any]:
    """Return the items, each once."""
    seen: dict[str, Any] = {}
    for item in record.items:
        seen.setdefault(item.key, item)
    return list(seen.values())


def _file_for(subject: Subject) -> Path:
    """Return where the cases of a class are written: a file that no other environment of its module shares."""
    (reading,) = without_abstract_bases([read_classes(subject.path, SourceTree())])
    own = "" if len(reading.classes) <= 1 else f".{subject.name}"
    return Path(subject.path).with_suffix(f"{own}.contract.yaml")


def _items_of(env_class: type) -> tuple[Scenario, Scenario]:
    """Return the records of the first training items, and of the cases that need no author. Raises: setup failed → BadTarget."""
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415 - heavy

    collector = Collector(env_class, timeout_s=TIMEOUT_S)
    collection = collector.collect(("items", CASES))
    record = collection.scenarios["items"]
    if record.unavailable or (record.error and not record.items):
        told = Finding(message=f"{env_class.__name__} returns no items: {record.unavailable or record.error}")
        (found,) = with_causes(Verdict.failed([told]), collection).findings
        place = f"{shown_path(found.path)}:{found.line}: {found.raised_by}" if found.path else ""
        lines = [f"  {word}  {text}" for word, text in (("line    ", place), ("fix     ", found.fix)) if text]
        raise BadTarget("\n".join([found.message, *lines]))
    return record, collection.scenarios[CASES]


def _text(env_class: type, entries: list[list[str]], target: str) -> str:
    head = f"""\
# Cases of {env_class.__name__}: transcripts of known quality. They are played as real rollouts by
#     pytest --hermes-env {target}
# HE405 compares their rewards with the order, HE410 fails if a hack scores like gold. A turn is one model call:
#     - {{call: terminal, with: {{command: "ls"}}}}      a tool call
#     - {{say: done}}                                   text; a turn without a call ends the rollout
# ${{item.name}} in a text is replaced by that part of the item. More: hermes-env docs cases
class: {env_class.__name__}
# order: [gold, near_miss, nothing]    # from the highest reward down; without it gold is above all, near_miss not below nothing
gap: 0.1    # by how much
items:
"""
    return head + "\n".join("\n".join(entry) + "\n" for entry in entries or [[*_NO_ITEM, *_CASES]])


def _entry(number: int, item: Any) -> list[str]:
    is_plain, shown = _as_yaml(item.value)
    if is_plain:
        return [*_comments(item, number), "  - item:", textwrap.indent(shown, " " * 6).rstrip()]
    return [*_comments(item, number), f"  - index: {number}    # this item is not plain data: {type(item.value).__name__}"]


def _comments(item: Any, number: int) -> list[str]:
    if not isinstance(item.prompt, str):
        return [f"  # item {number}" + (f"; format_prompt failed: {item.error}" if item.error else "")]
    text = item.prompt if len(item.prompt) <= LONGEST else f"{item.prompt[:LONGEST]} ..."
    lines = [line for part in text.splitlines() for line in (textwrap.wrap(part, WIDTH) or [""])]
    return [f"  # item {number}, prompt:", *(f"  #   {line}".rstrip() for line in lines)]


def _as_yaml(value: Any) -> tuple[bool, str]:
    """Return whether a value survives the way through JSON and the file unchanged, and its YAML."""
    try:
        if json.loads(json.dumps(value, allow_nan=False)) != value:
            return False, ""
    except (TypeError, ValueError, RecursionError):
        return False, ""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=WIDTH)
    is_same = yaml.safe_load(text) == value and "${" not in text
    return is_same, text.removesuffix("...\n")


def _write(file: Path, text: str) -> None:
    """Write the file, whole or not at all, once it reads as a file of cases."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        read_cases(draft)
        draft.replace(file)
    except OSError as error:
        raise UsageError(f"{_shown(file)} cannot be written: {error.strerror or error}") from error
    except BadCases as error:
        raise BadTarget(f"the items cannot be written as cases: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _shown(file: Path) -> str:
    return shown_path(str(file))
