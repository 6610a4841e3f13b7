"""What the checks of `health` found: as lines of a terminal, as findings of a page, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_hermes_env.records.checks import CHECKS
from pytest_hermes_env.records.found import Found

Status = Literal["healthy", "unhealthy", "unobserved"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a check found. ``seen``: how many cases it looked at; ``rollouts``: places to look at; ``why``: more about the value."""

    name: str
    status: Status
    says: str
    value: float | None
    limit: float
    seen: int
    rollouts: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        check = next(one for one in CHECKS if one.name == self.name)
        shown = "" if self.value is None else f"{self.value:.1%}" if check.is_share else f"{self.value:+.2f}"
        return " ".join(filter(None, [shown, self.says, f"({self.why})" if self.why else ""]))


def findings(verdicts: Iterable[Verdict]) -> list[Found]:
    """Return what is unhealthy."""
    unhealthy = (one for one in verdicts if one.status == "unhealthy")
    return [
        Found(title=one.name, text=f"{one} [limit {one.limit:g}, {one.seen:,} cases]", places=one.rollouts) for one in unhealthy
    ]


def verdict_lines(verdicts: Iterable[Verdict], *, is_long: bool = False) -> Iterator[str]:
    """Yield verdicts for a terminal: the unhealthy ones, or all of them."""
    found = list(verdicts)
    for one in found:
        if one.status == "unhealthy" or is_long:
            yield f"{one.status:<11}{one.name:<25}{one} [limit {one.limit:g}, {one.seen:,} cases]"
            yield from (f"             {place}" for place in (one.rollouts if one.status == "unhealthy" else ()))
    yield counted(found)


def counted(verdicts: Sequence[Verdict]) -> str:
    """Return how many checks have which status, and which are unobserved."""
    counts = {status: sum(one.status == status for one in verdicts) for status in ("unhealthy", "healthy", "unobserved")}
    names = ", ".join(one.name for one in verdicts if one.status == "unobserved")
    return ", ".join(f"{count} {status}" for status, count in counts.items()) + (f" ({names})" if names else "")


def as_json(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Return verdicts as plain data."""
    return {"format": "hermes-health/1", "checks": [asdict(one) for one in verdicts]}
