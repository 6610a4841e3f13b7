"""Calls into code that is not read, which may run the agent or the environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import is_standard
from pytest_hermes_env.source.frames import Call, Frame, calls_in
from pytest_hermes_env.source.layer_names import LAYER_CONTEXT, LAYER_LOOP
from pytest_hermes_env.source.values import Kind, Value, Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_RUNS_AGENT = re.compile(r"run|roll_?out|evaluat|agent|episode|trajector|drive|solve")
_FAMILIAR = frozenset({"server", "tokenizer", "config", "wandb"})


def unresolved_calls(frames: Iterable[Frame]) -> Iterator[Call]:
    """Yield the calls into code that is not read that may run the agent or the environment."""
    for call in calls_in(frames):
        if call.callee and all(map(_is_read, call.callee)):
            continue
        if (
            any(value.kind is Kind.SUPER for value in call.receiver)
            or any(map(_passes_environment, call.every_argument))
            or any(value.kind is Kind.ATTRIBUTE and value.name not in _FAMILIAR for value in call.callee)
            or (_RUNS_AGENT.search(call.name) and any(map(_is_unfamiliar, call.receiver)))
        ):
            yield call


def _is_unfamiliar(value: Value) -> bool:
    return value.kind in {Kind.ATTRIBUTE, Kind.PART} and value.name not in _FAMILIAR


def _is_read(value: Value) -> bool:
    if value.kind is Kind.EXTERNAL:
        return is_standard(value.name) or value.name.rpartition(".")[2] in {LAYER_LOOP, LAYER_CONTEXT}
    return value.kind in {Kind.METHOD, Kind.FUNCTION, Kind.LOCAL, Kind.BASE_METHOD, Kind.RUN}


def _passes_environment(values: Values) -> bool:
    return any(
        value.kind is Kind.SELF or (value.kind in {Kind.ATTRIBUTE, Kind.PART} and value.name == "server") for value in values
    )
