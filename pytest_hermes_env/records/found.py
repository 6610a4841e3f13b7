"""One thing that `rescore`, `health` or `compare` found: the same in a terminal, in data and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Found:
    """``places`` are rollouts to look at, as `Line.place` names them; ``before`` and ``after`` are texts of two versions."""

    title: str
    text: str = ""
    places: Sequence[str] = ()
    before: str = ""
    after: str = ""
