"""Modules of hermes, imported when they are needed: a test of a reward loads none."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from pytest_hermes_env.errors import ShadowedModule

__all__ = ["hermes_module"]


def hermes_module(name: str) -> Any:
    """Return a module of hermes. Raises: a module of the project hides it → ShadowedModule."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        place = getattr(sys.modules.get("tools"), "__file__", None)
        raise ShadowedModule(
            f"hermes-agent's module {name} cannot be imported: {error}.\n"
            "  expected  the package `tools` of hermes-agent, not a module of the project\n"
            f"  seen      {place or 'no package of that name'}\n"
            "  fix       rename the project's module `tools`, or keep its directory off sys.path; is hermes-agent installed?"
        ) from error
