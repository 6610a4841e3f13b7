"""What `hermes-env attack` asks of its searches: an item, a limit of time, and a file that remembers what was refused.

Place in the flow: the searches of `scenarios.tampering` ask it before each rollout.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.play.buffers import picture

MINUTE_S = 60
_RANDOM = re.compile(r"[0-9a-f]{12,}|tmp[._]?\w{6,10}")
"""Names and words that a verifier makes anew each time: other ones are no other attack."""


@dataclass(kw_only=True)
class AttackPlan:
    """``item`` is the number of a training item, from 0, or None for the first with gold. ``minutes`` end a search, which is then not judged.

    ``alone``: of gold, and around it, one item is enough.

    ``resume`` is a file: rollouts that earned less than an attack has to are noted in it, and not played again.
    """

    item: int | None = None
    alone: bool = False
    minutes: float = math.inf
    resume: str = ""
    began: float = field(default_factory=time.monotonic, repr=False)
    refused: dict[str, float] | None = field(default=None, repr=False)

    @staticmethod
    def checked(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of ``--hermes-attack``. Raises: an unknown name, or a value of another type → UsageError."""
        if unknown := sorted(given.keys() - _TYPES.keys()):
            raise UsageError(f"--hermes-attack: {unknown[0]!r} is unknown. Known: {', '.join(_TYPES)}")
        for name, value in given.items():
            is_fit = isinstance(value, _TYPES[name]) and isinstance(value, bool) == (name == "alone")
            if not is_fit or (name != "resume" and value < 0):
                raise UsageError(f"{name} of --hermes-attack is {value!r}. Expected: {_EXPECTED[name]}")
        fields = given | ({"resume": os.path.abspath(given["resume"])} if given.get("resume") else {})
        AttackPlan(**fields).known("")  # a wrong file is refused before anything is played
        return fields

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.began > self.minutes * MINUTE_S

    def why_over(self, what: str) -> str:
        """Return why a search is not judged, and how it goes on."""
        flag = self.resume or "FILE"
        return (
            f"after {self.minutes:g} minutes {what} were left: --resume {flag} goes on where it ended, more --minutes end later"
        )

    def key(self, env: Any, item: Any, *parts: str) -> str:
        """Return what tells one rollout from all others: the class's file, the item, and what is done; empty where nothing is remembered."""
        if not self.resume:
            return ""
        code = inspect.getsource(inspect.getmodule(type(env)) or type(env))
        said = _RANDOM.sub("*", json.dumps([code, repr(picture(item)), *parts]))
        return hashlib.sha256(said.encode()).hexdigest()

    def known(self, key: str) -> float | None:
        """Return what a rollout earned in an earlier search; None if it is to be played. Raises: the file is not one of these → UsageError."""
        if self.refused is None:
            self.refused = dict(self._read()) if self.resume else {}
        return self.refused.get(key)

    def note(self, key: str, reward: float) -> None:
        """Remember what a rollout earned that was refused, at once."""
        if self.resume:
            with open(self.resume, "a", encoding="utf-8") as file:
                file.write(json.dumps([key, reward]) + "\n")

    def _read(self) -> list[tuple[str, float]]:
        try:
            with open(self.resume, encoding="utf-8") as file:
                lines = [line for line in file if line.endswith("\n")]  # a killed search may leave a part of one
            return [(str(key), float(reward)) for key, reward in map(json.loads, lines)]
        except FileNotFoundError as error:
            if not os.path.isdir(os.path.dirname(self.resume)):
                raise UsageError(f"--resume: there is no directory {os.path.dirname(self.resume)}") from error
            return []
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(
                f"--resume: {self.resume} is not a file that a search wrote: {error}.\n  fix       name a new file: the search makes it"
            ) from error


_TYPES: dict[str, Any] = {"item": int, "minutes": int | float, "resume": str, "alone": bool}
_EXPECTED: dict[str, Any] = {
    "item": "the number of a training item, from 0",
    "minutes": "a number",
    "resume": "a file",
    "alone": "true or false",
}
