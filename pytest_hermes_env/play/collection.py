"""What was played of one class, as rules read it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.play.class_record import ClassRecord, ConfigInit
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.play.unavailable import Unavailable


@dataclass(frozen=True, kw_only=True)
class CaseRules:
    """What the author's cases say about rewards: ``order`` and ``gap`` as in `Cases`."""

    order: tuple[tuple[str, ...], ...]
    gap: float
    is_strict: bool


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """How the process of a class ended, where it was not by itself: ``how`` as the end of a sentence, ``during`` a scenario or step."""

    how: str
    during: str
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The scenarios of one class that were collected, and what is known without one.

    ``cls`` is None where the class was never there: then ``import_error`` says why. ``world`` says what answered the tools.
    ``server_type`` is "openai" in chat mode, "vllm" or "sglang" in token mode. ``group_size`` is that of the configuration.
    ``fails_beside_another`` is why a set-up failed while other instances of the class were alive, and not later, alone.
    ``nothing_to_train`` is why the class is an evaluation by its own code; empty for a class that is meant to train.
    ``lines_run`` are lines, by file, that the rollouts ran of the files that were asked about. ``at_exit`` is what kept the process
    from ending after its last scenario.
    """

    cls: ClassRecord | None = None
    import_error: ProcessEnd | None = None
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    config_init: ConfigInit = field(default_factory=ConfigInit)
    cases: CaseRules | None = None
    world: str = ""
    server_type: str = "openai"
    group_size: int = 0
    nothing_to_train: str = ""
    fails_beside_another: Unavailable | None = None
    lines_run: dict[str, list[int]] = field(default_factory=dict)
    at_exit: ProcessEnd | None = None

    def without_scenarios(self, **changes: Any) -> Collection:
        """Return the same without its scenarios, which have lines of their own, and with other fields."""
        return replace(self, scenarios={}, **changes)

    @property
    def has_tokens(self) -> bool:
        """Whether the rollouts ran in token mode."""
        return self.server_type != "openai"
