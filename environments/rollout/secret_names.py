"""Tells settings and variables that hold secrets by their names."""

from __future__ import annotations

import re

SHORTEST_KEY = 8
"""Characters. A shorter key is a placeholder like "none" or "local", which may be the value of another setting."""

_SECRET_NAME = re.compile(
    r"(api|access|auth|secret|private|judge|grader)[_-]?key$|secret$|password$|credentials?$|authorization$"
    r"|(^|access|auth|api|hf|bearer)[_-]?token$",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """Return whether a field or variable of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))
