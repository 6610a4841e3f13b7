"""Breakages of the sound environments: one table, at least five for each rule, one file per group of rules."""

from __future__ import annotations

from . import (
    of_classes,
    of_evaluation,
    of_grading,
    of_groups,
    of_items,
    of_judges,
    of_logging,
    of_names,
    of_play,
    of_reports,
    of_results,
    of_rewards,
    of_sandbox,
    of_shared_places,
    of_terminal_tasks,
    of_token_mode,
    of_usual_code,
    of_wrapped_methods,
)
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_classes.MUTANTS,
    *of_items.MUTANTS,
    *of_results.MUTANTS,
    *of_rewards.MUTANTS,
    *of_grading.MUTANTS,
    *of_judges.MUTANTS,
    *of_groups.MUTANTS,
    *of_sandbox.MUTANTS,
    *of_evaluation.MUTANTS,
    *of_logging.MUTANTS,
    *of_terminal_tasks.MUTANTS,
    *of_token_mode.MUTANTS,
    *of_play.MUTANTS,
    *of_names.MUTANTS,
    *of_reports.MUTANTS,
    *of_shared_places.MUTANTS,
    *of_wrapped_methods.MUTANTS,
)

REFACTORINGS: tuple[Mutant, ...] = of_terminal_tasks.REFACTORINGS
"""Changes that break nothing."""

LOOKALIKES: tuple[Mutant, ...] = (
    *of_groups.LOOKALIKES,
    *of_reports.LOOKALIKES,
    *of_rewards.LOOKALIKES,
    *of_shared_places.LOOKALIKES,
    *of_usual_code.LOOKALIKES,
    *of_wrapped_methods.LOOKALIKES,
)
"""Changes that break nothing, and look as if they broke their rule."""
