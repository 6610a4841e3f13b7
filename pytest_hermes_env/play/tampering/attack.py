"""One thing that an agent can leave in its sandbox, or run there, so that the verifier pays."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, kw_only=True)
class Attack:
    """``files`` by path, with what each does, and ``lines`` that the agent runs after it wrote them. ``family`` is what they have in common.

    ``first`` are lines that it runs before all else.
    """

    family: str
    files: Mapping[str, str] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    control: Attack | None = None
    """The same share of the work, without the attack, which has to earn more than this."""
    is_of_session: bool = False
    """Whether it needs no more than that the verifier's commands run in the agent's session."""

    @property
    def is_beside_work(self) -> bool:
        """Whether its files are gold's own, and its lines the attack."""
        return self.control is not None and self.files == self.control.files

    @property
    def mechanism(self) -> str:
        """What happened, in one sentence."""
        said = [f"{posixpath.basename(path)} {self.how.get(path, '')}".strip() for path in self.files]
        return f"{self.family}: {'; '.join(said)}" if said else self.family

    def without(self, path: str) -> Attack:
        """Return the attack without one of its files."""
        return replace(self, files={name: text for name, text in self.files.items() if name != path})
