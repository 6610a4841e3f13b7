"""Breakages of the sound environments, at least five for each rule, one file per group of rules."""

from __future__ import annotations

from . import of_classes, of_evaluation, of_logging, of_results, of_rewards, of_sandbox
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_classes.MUTANTS,
    *of_results.MUTANTS,
    *of_rewards.MUTANTS,
    *of_sandbox.MUTANTS,
    *of_evaluation.MUTANTS,
    *of_logging.MUTANTS,
)
