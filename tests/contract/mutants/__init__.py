"""Breakages of the sound environments, at least five for each rule, one file per group of rules."""

from __future__ import annotations

from .of_logging import MUTANTS as LOGGING
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*LOGGING,)
