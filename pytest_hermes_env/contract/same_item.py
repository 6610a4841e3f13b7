"""Whether two items are one task: prompts alone do not tell, because a task may lie in the sandbox or in the expected answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_hermes_env.play.buffers import picture

_LABELS = re.compile(r"(?:.*_)?(?:ids?|idx|index|[gpqrstu]?u?id|slug|seed|split|subset|fold|weight)|(?:doc|item|task|row)id")
"""Fields that name an item and do not change the task."""


def is_same_task(one: Any, other: Any) -> bool:
    """Whether the fields that both items have are equal, but for their labels; where they share no other field, all of them."""
    mine, others = _fields(one), _fields(other)
    common = [name for name in mine if name in others]
    telling = [name for name in common if not _is_label(name)]
    return bool(common) and all(repr(picture(mine[name])) == repr(picture(others[name])) for name in telling or common)


def _fields(item: Any) -> Mapping[Any, Any]:
    if isinstance(item, Mapping):
        return item
    return getattr(item, "__dict__", None) or {"": item}


def _is_label(name: object) -> bool:
    return isinstance(name, str) and _LABELS.fullmatch(name.lower()) is not None
