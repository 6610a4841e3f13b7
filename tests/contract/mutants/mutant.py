"""One breakage of one sound environment, and how it is put on disk."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

SOUND = Path(__file__).parent.parent / "sound"

CLASSES = {
    "ledger_books": "LedgerEnv",
    "graded_letters": "LetterEnv",
    "many_signals": "RenameEnv",
    "capitals_exam": "CapitalsExam",
}
"""The sound environments: file -> class."""

SHARED = {"many_signals": ("signals_base",)}
"""Files that an environment needs beside its own."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A breakage. Each pair of ``changes`` is a text that stands once in ``file`` (by default the environment's own), and its
    replacement. ``rule`` is the law that it breaks, ``name`` says what was done wrong.
    """

    rule: str
    name: str
    env: str
    changes: tuple[tuple[str, str], ...]
    file: str = ""
    mode: str = "openai"
    """The server type of its rollouts."""
    is_only_read: bool = False
    """Whether its source alone is judged: it cannot be imported, importing it would do harm, no rollout can differ, or what
    rollouts do with it breaks other laws, too.
    """

    @property
    def id(self) -> str:
        """The name in a test's id."""
        return f"{self.rule}-{self.env}-{self.name}".replace(" ", "-")

    def write(self, directory: Path) -> str:
        """Write the broken environment into a package below ``directory`` and return it as a target."""
        package = directory / f"mutant_{zlib.crc32(self.id.encode()):x}"  # a name of its own: modules stay imported
        package.mkdir()
        (package / "__init__.py").touch()
        changed = self.file or self.env
        for name in (self.env, *SHARED.get(self.env, ())):
            text = (SOUND / f"{name}.py").read_text(encoding="utf-8")
            if name == changed:
                text = self._changed(text)
            (package / f"{name}.py").write_text(text, encoding="utf-8")
            cases = SOUND / f"{name}.contract.yaml"
            if cases.is_file():
                (package / cases.name).write_text(cases.read_text(encoding="utf-8"), encoding="utf-8")
        return f"{package / self.env}.py:{CLASSES[self.env]}"

    def _changed(self, text: str) -> str:
        for old, new in self.changes:
            assert text.count(old) == 1, f"{self.id}: {old!r} stands {text.count(old)} times in {self.file or self.env}.py"
            text = text.replace(old, new)
        return text
