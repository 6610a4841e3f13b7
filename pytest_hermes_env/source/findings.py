"""Findings at a place in a file, and the calls after which the source cannot say what happens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import is_standard
from pytest_hermes_env.source.finding import Finding
from pytest_hermes_env.source.flow import Call, Frame, calls_in
from pytest_hermes_env.source.layer_names import LAYER_CONTEXT, LAYER_LOOP
from pytest_hermes_env.source.values import Kind, Value, Values

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.functions import Function

_LEADS_ON = re.compile(r"run|roll_?out|evaluat|agent|episode|trajector|drive|solve")
_FAMILIAR = frozenset({"server", "tokenizer", "config", "wandb"})


def breach(where: Function | ClassSource, node: ast.AST, message: str, seen: str = "") -> Finding:
    """Return the finding at ``node`` in the file of ``where``."""
    line, column = where.module.place(node)
    return Finding(message=message, path=where.path, line=line, column=column, seen=seen)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by place, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda item: (item.path, item.line, item.column, item.message)))


def doubts(frames: Iterable[Frame]) -> Iterator[Call]:
    """Yield the calls that lead, with the environment or its server in hand, into code that is not read."""
    for call in calls_in(frames):
        if call.callee and all(map(_is_read, call.callee)):
            continue
        if (
            any(value.kind is Kind.SUPER for value in call.receiver)
            or any(map(_hands_over, call.every_argument))
            or any(value.kind is Kind.ATTRIBUTE and value.name not in _FAMILIAR for value in call.callee)
            or (_LEADS_ON.search(call.name) and any(map(_is_unfamiliar, call.receiver)))
        ):
            yield call


def _is_unfamiliar(value: Value) -> bool:
    return value.kind in {Kind.ATTRIBUTE, Kind.PART} and value.name not in _FAMILIAR


def _is_read(value: Value) -> bool:
    if value.kind is Kind.EXTERNAL:
        return is_standard(value.name) or value.name.rpartition(".")[2] in {LAYER_LOOP, LAYER_CONTEXT}
    return value.kind in {Kind.METHOD, Kind.FUNCTION, Kind.LOCAL, Kind.BASE_METHOD, Kind.RUN}


def _hands_over(values: Values) -> bool:
    return any(
        value.kind is Kind.SELF or (value.kind in {Kind.ATTRIBUTE, Kind.PART} and value.name == "server") for value in values
    )
