"""Errors that a rollout survives are logged once for each cause, not once for each rollout.

A server that is down fails every rollout of every group with the same error; the counters of `environments.loop.end` have the number.
"""

from __future__ import annotations

import logging
import os
import re
import sysconfig
import traceback
from pathlib import Path

import openai
from tenacity import RetryError

LIMIT = 500
"""Characters of an error's text that are logged."""
FRAMES = 2
"""Frames of a traceback that are logged: as many of the last ones that are the environment's own, and of the last ones of all."""
_NOT_OWN = (
    *filter(None, map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))),
    *(str(Path(__file__).parents[2] / name) for name in ("environments", "hermes_env_shared", "pytest_hermes_env")),
)
"""Where Python, packages and this layer are. An environment that lies there, too, has no frames of its own."""
REPEATS = frozenset(10**power for power in range(1, 10))
"""A cause is logged again when it has occurred this often."""

VARYING = re.compile(r"\b[\w-]*\d[\w-]*\b")
"""Numbers and ids."""
MOST_CAUSES = 1000
"""Causes that are remembered; the table is emptied when it is full."""

OF_SERVERS = "The inference server failed"
"""How the message begins of what a server failed with."""

_first: list[BaseException | None] = []
"""The first error that came from no server since `forget` asked for it, which a test does: it holds all that its frames hold."""
_logged: dict[tuple[str, str, str], tuple[int, str]] = {}
"""How often each cause occurred, and the text of its first error."""


def log_once(logger: logging.Logger, error: BaseException, message: str, *args: object) -> None:
    """Log an error at its first occurrence, and again at the 10th, the 100th and so on; in between at level DEBUG.

    Errors are the same if they differ only in numbers and ids. A traceback is logged unless the error comes from the server.
    """
    error = cause_of(error)
    what, text = message % args, f"{type(error).__name__}: {error}"[: 2 * LIMIT]
    key = (logger.name, message, VARYING.sub("#", text)[:LIMIT])  # cut last: longer numbers move the end
    if len(_logged) >= MOST_CAUSES:
        _logged.clear()
    shown = text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
    frames = [*traceback.extract_tb(error.__traceback__)]
    own = [one for one in frames if not one.filename.startswith(_NOT_OWN)]
    place = f"\n            at {os.path.relpath(own[-1].filename)}:{own[-1].lineno}" if own else ""
    before, first = _logged.get(key, (0, shown + place))
    count = before + 1
    _logged[key] = count, first
    if count == 1:
        if not isinstance(error, openai.APIError | OSError):
            _first[:] = [_first[0] or error] if _first else []
            kept = [*own[-FRAMES:], *(one for one in frames[-FRAMES:] if one not in own[-FRAMES:])]
            shown = "\n".join([shown, *"".join(traceback.format_list(kept)).rstrip().splitlines()])
        logger.error("%s: %s (logged once)", what, shown, stacklevel=2)
    else:
        level = logging.ERROR if count in REPEATS else logging.DEBUG
        logger.log(level, "%s: %s (%d times)", what, shown, count, stacklevel=2)


def cause_of(error: BaseException) -> BaseException:
    """Return what was raised at the last of the attempts that tenacity gave up."""
    while isinstance(error, RetryError) and (cause := error.last_attempt.exception()) is not None:
        error = cause
    return error


def logged(beginning: str) -> dict[str, int]:
    """Return how often each error occurred whose message has this beginning."""
    return {first: count for (_, message, _), (count, first) in _logged.items() if message.startswith(beginning)}


def failures_of_servers() -> str:
    """Return the most frequent error of inference servers with its number; empty where none failed."""
    found = logged(OF_SERVERS)
    most = max(found, key=found.__getitem__, default="")
    times = f" ({found[most]:,} times)" if found.get(most, 0) > 1 else ""
    return f"{most.partition(chr(10))[0]}{times}" if most else ""


def first_error() -> BaseException | None:
    """Return the first error that was logged since `forget`, of those that did not come from a server."""
    return next(iter(_first), None)


def forget() -> None:
    """Log every cause anew, and keep the first error."""
    _logged.clear()
    _first[:] = [None]
