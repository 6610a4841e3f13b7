"""The evidence that the dynamic half of a rule reads: records of the class and of every scenario, and the class's source."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hermes_env.contract.judge.scored_data import items_of, rows_of
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.play.cases.values import Cases
from pytest_hermes_env.play.class_record import ClassRecord, ConfigInit
from pytest_hermes_env.play.journal import Place, Reward
from pytest_hermes_env.play.probing.record import RewardProbes
from pytest_hermes_env.play.scenario import CASES, PROBES, CaseRules, Collection, ItemsEnd, Rung, Scenario, Unavailable
from pytest_hermes_env.source import REQUIRED_METHODS, ClassSource
from pytest_hermes_env.source.finding import Finding, Severity

WITH_TOKENS = "with_tokens"
NO_TOKENS = "chat mode has no sampled tokens: pytest --hermes-mode token"


class NewerPlayNeeded(Exception):
    """The evidence has no record of the scenario that this names: it was written before a rule asked for it, or for other rules."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that a rule's dynamic half may look at: what was played of the class, and its source."""

    collection: Collection
    source: ClassSource | None

    @property
    def cls(self) -> ClassRecord:
        """What the class is."""
        assert self.collection.cls is not None, "a class that could not be imported is judged by no rule"
        return self.collection.cls

    @property
    def config_init(self) -> ConfigInit:
        """What config_init returned."""
        return self.collection.config_init

    def scenario(self, name: str) -> Scenario:
        """Return the record of one scenario. Raises: it was not played, because nobody asked for it → NewerPlayNeeded."""
        found = self.collection.scenarios.get(name)
        if found is None:
            raise NewerPlayNeeded(name)
        return found

    def scenarios(self, *names: str) -> list[Scenario]:
        """Return the records of those scenarios that were run."""
        return [scenario for name in names if (scenario := self.scenario(name)).happened]

    @property
    def probes(self) -> RewardProbes:
        """What probing the reward found out; ``unavailable`` says why it was not probed."""
        scenario = self.scenario(PROBES)
        if scenario.probes is not None:
            return scenario.probes
        return RewardProbes(unavailable=str(scenario.unavailable or scenario.error or "the reward was not probed"))

    def without_probes(self) -> Verdict | None:
        """Return the verdict of a rule about probed rewards when there are none; None when there are."""
        missing = self.scenario(PROBES).unavailable or self.probes.unavailable
        if missing:
            return Verdict.not_exercised(missing, "HE204", "HE108")
        if all(trial.is_foreign for trial in self.probes.trials):
            return Verdict.not_exercised("every call of compute_reward stopped at a read that HE301 reports", "HE301")
        return None

    @property
    def played_cases(self) -> tuple[Scenario, ...]:
        """The record of each rollout of a case, those of the author and the automatic ones."""
        return self.scenario(CASES).played

    def without_rewards(self, *names: str) -> Verdict | None:
        """Return the verdict of a rule about the rewards of rollouts when none was computed; None when one was."""
        ran = self.scenarios(*names)
        if any(scenario.of(Reward) for scenario in (*ran, *self.played_cases)):
            return None
        if not ran:
            return Verdict.not_exercised(self.why_missing(*names))
        scores_itself = bool(self.collection.nothing_to_train) or any(rows_of(scenario) for scenario in ran)
        reason = "compute_reward was never called" + (": the class scores its rollouts itself" if scores_itself else "")
        return Verdict.not_applicable(reason) if scores_itself else Verdict.not_exercised(reason, "HE511", "HE701")

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What each case earned, those of the author and the automatic ones; empty where none was played."""
        return self.scenario(CASES).rungs

    @property
    def cases(self) -> CaseRules:
        """What the author's cases say about rewards; without any, what holds by default."""
        return self.collection.cases or Cases(items=()).rules

    def why_missing(self, *names: str) -> Unavailable | None:
        """Return why one of these scenarios was not run; None when all were."""
        return next((reason for name in names if (reason := self.scenario(name).unavailable)), None)

    def reported_elsewhere(self, scenario: Scenario) -> Verdict | None:
        """Return the verdict where the error of a scenario came from a method that has a rule of its own; None where it did not."""
        if any(reward.error and not reward.injected for reward in scenario.of(Reward)):
            return Verdict.not_exercised(f"compute_reward raised in {scenario.name}, which HE403 reports", "HE403", "HE301")
        if scenario.error_place.function == "format_prompt":
            return Verdict.not_exercised(f"format_prompt raised {scenario.error}, which HE204 reports", "HE204")
        return None

    def without_items(self) -> Verdict | None:
        """Return the verdict of a rule about training items when there are none; None when there are."""
        scenario = self.scenario("items")
        if scenario.items:
            return None
        if self.collection.nothing_to_train or scenario.items_end is ItemsEnd.STUB:
            return Verdict.not_applicable(self.collection.nothing_to_train or scenario.note)
        if not scenario.happened:
            return Verdict.not_exercised(scenario.unavailable)
        return Verdict.not_exercised(scenario.error or scenario.note, "HE206", "HE202", "HE102")

    def without_groups(self, *names: str) -> Verdict | None:
        """Return the verdict of a rule about scored data when none of these scenarios gave any; None when one did."""
        ran = self.scenarios(*names)
        if any(rows_of(scenario) or items_of(scenario) for scenario in ran):
            return None
        if not ran:
            return Verdict.not_exercised(self.why_missing(*names))
        return self.no_group(ran)

    def no_group(self, ran: Iterable[Scenario]) -> Verdict:
        """Return the verdict of a rule about groups where scenarios were played and gave none."""
        reasons = "; ".join(f"{scenario.name}: {scenario.error}" for scenario in ran if scenario.error)
        return Verdict.not_exercised(reasons or "collect_trajectories returned no group", "HE511", "HE403", "HE204")

    def with_tokens(self, *names: str) -> list[Scenario]:
        """Return the records of those scenarios that ran in token mode: all, or in chat mode the one that is played in it."""
        return self.scenarios(*(names if self.collection.has_tokens else (WITH_TOKENS,)))

    def without_tokens(self, *names: str) -> Verdict | None:
        """Return the verdict of a rule about sampled tokens when there are none; None when there are."""
        if missing := self.without_groups(*names):
            return missing
        ran = self.with_tokens(*names)
        if not ran:
            return Verdict.not_applicable(NO_TOKENS)
        if not any(rows_of(scenario) or items_of(scenario) for scenario in ran):
            return self.no_group(ran)
        if not any(scenario.sampled for scenario in ran):
            reason = "the model server was never asked for tokens: rollouts fell back to chat mode"
            return Verdict.not_exercised(reason)
        return None

    def is_own(self, method: str) -> bool:
        """Tell whether a method is the environment's, or inherited from another one, and not the layer's."""
        return method in self.cls.methods

    @property
    def lacked_methods(self) -> list[str]:
        """The required methods that the class lacks, leaves abstract, or replaces by what cannot be called."""
        defined = [name for name, method in self.cls.methods.items() if method.is_callable and not method.is_abstract]
        return [name for name in REQUIRED_METHODS if name not in defined]

    def finding(
        self,
        message: str,
        *methods: str,
        place: Place | None = None,
        scenario: str = "",
        seen: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding at the first of ``methods`` that the environment defines, else at the class; ``place`` is the exact line, if known."""
        path, line = (place.path, place.line) if place is not None and place.line else self.at_method(*methods)
        return Finding(message=message, path=path, line=line, scenario=scenario, seen=seen, severity=severity)

    def recorded_finding(self, message: str, place: Place, *methods: str, scenario: str) -> Finding:
        """Return a finding at a place that a scenario recorded; without a line of the environment, at the first of ``methods``."""
        return finding_in(scenario, place, message) if place.line else self.finding(message, *methods, scenario=scenario)

    def finding_of_reward(self, value: object, message: str, *, scenario: str, seen: str = "") -> Finding:
        """Return a finding at the return statement of compute_reward that gave ``value``, else at compute_reward."""
        path, line = self.at_return("compute_reward", value)
        return Finding(message=message, path=path, line=line, scenario=scenario, seen=seen)

    def at_class(self) -> tuple[str, int]:
        """Return path and line of the class statement."""
        return self.cls.place.path, self.cls.place.line

    def at_method(self, *methods: str) -> tuple[str, int]:
        """Return path and line of the first of these methods that the environment defines, else of the class."""
        places = (self.cls.methods[name].place for name in methods if name in self.cls.methods)
        return next(((place.path, place.line) for place in places if place.path), self.at_class())

    def at_return(self, method: str, value: object) -> tuple[str, int]:
        """Return path and line of the return statement that gave ``value``, where the source tells, else of the method."""
        path, line = self.at_method(method)
        function = self.source.methods.get(method) if self.source is not None else None
        returns = [node for node in function.own_nodes() if isinstance(node, ast.Return)] if function is not None else []
        constant = [node for node in returns if _gives(node, value)]
        if len(constant) == 1:
            return path, constant[0].lineno
        if len(returns) == 1 and value is not None:
            return path, returns[0].lineno
        return path, line


def finding_in(scenario: str, place: Place, message: str, seen: str = "") -> Finding:
    """Return a finding at a place that a scenario recorded."""
    return Finding(message=message, path=place.path, line=place.line, seen=seen, scenario=scenario)


def _gives(node: ast.Return, value: object) -> bool:
    if node.value is None:
        return value is None
    if not isinstance(node.value, ast.Constant):
        return False
    return node.value.value is value or (type(node.value.value) is type(value) and node.value.value == value)
