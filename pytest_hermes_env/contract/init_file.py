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

from pytest_hermes_env.errors import BadCases, BadTarget, UsageError
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.play.cases.yaml_file import file_for, read_cases
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.redaction.shown_text import shown_path

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
    """What was written: ``file``, for ``items`` items of ``class_name``."""

    file: str
    class_name: str
    items: int


def start(target: str, *, output: str = "", is_forced: bool = False) -> Started:
    """Write the first file of cases for the environment that ``target`` names.

    Raises: not one environment, or it cannot be set up → BadTarget; the file is there already, or no place for it → UsageError.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    classes = find_class(target)
    if len(classes) > 1:
        names = ", ".join(cls.__name__ for cls in classes)
        raise BadTarget(f"{target} defines {len(classes)} environments: {names}. Name one: {target}:{classes[0].__name__}")
    (env_class,) = classes
    file = Path(output) if output else file_for(env_class, is_alone=_is_alone(target))
    if file.exists() and not is_forced:
        raise UsageError(f"{_shown(file)} already exists and may contain your cases: --force overwrites it")
    if file.suffix != ".yaml":
        raise UsageError(f"the file of cases is YAML: {file.name} should end in .yaml")
    record = _items_of(env_class)
    text = _text(env_class, record, target)
    _write(file, text)
    return Started(file=_shown(file), class_name=env_class.__name__, items=min(len({item.key for item in record.items}), FEW))


def _is_alone(target: str) -> bool:
    """Tell whether the module that a target names defines one environment."""
    module, separator, _ = target.rpartition(":")
    return not separator or len(find_class(module)) == 1


def _items_of(env_class: type) -> Scenario:
    """Return the record of the first training items. Raises: setup failed → BadTarget."""
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415 - heavy

    collector = Collector(env_class, timeout_s=TIMEOUT_S)
    record = collector.collect(("items",)).scenarios["items"]
    if record.unavailable or (record.error and not record.items):
        why = record.unavailable or record.error
        raise BadTarget(f"{env_class.__name__} returns no items: {why}")
    return record


def _text(env_class: type, record: Scenario, target: str) -> str:
    seen: dict[str, Any] = {}
    for item in record.items:
        seen.setdefault(item.key, item)
    entries = [_entry(number, item) for number, item in enumerate(list(seen.values())[:FEW])] or [[*_NO_ITEM]]
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
    return head + "\n".join("\n".join([*entry, *_CASES]) + "\n" for entry in entries)


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
