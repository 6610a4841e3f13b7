"""One breakage of one sound environment, and how it is written to disk."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

SOUND = Path(__file__).parent.parent / "sound"

CLASSES = {
    "ledger_books": "LedgerEnv",
    "graded_letters": "LetterEnv",
    "many_signals": "RenameEnv",
    "capitals_exam": "CapitalsExam",
    "terminal_tasks": "TerminalTasks",
}
"""The sound environments: file -> class."""

SHARED = {"many_signals": ("signals_base",)}
"""Files that an environment needs besides its own."""

MARK = "# <- here"
"""Ends each line where a finding is expected."""

END = '\n\nif __name__ == "__main__":\n'
"""The text of an environment's file behind its last method."""


READ = '        found = ctx.read_file(item["path"]).get("content", "")\n'
"""The first line of the reward of TerminalTasks."""
GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'
"""The reward of LedgerEnv."""
TOTAL = "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n"
CALLS = "        calls = len(names_of_calls(result))\n"
"""The reward of SignalsEnv, and what it counts."""
LETTER = "        letter = last_answer(result.messages)\n"
"""What LetterEnv grades."""

Change = tuple[str, str]
"""A text that occurs once in a file, and its replacement."""


def added(methods: str) -> Change:
    """Return the change that adds methods at the end of the class."""
    return END, f"\n{methods.rstrip()}\n{END}"


def after(line: str, lines: str) -> Change:
    """Return the change that adds lines below the end of one, which may be given without its line break."""
    whole = line.removesuffix("\n") + "\n"
    return whole, whole + lines


def before(line: str, lines: str) -> Change:
    """Return the change that adds lines above the beginning of one."""
    return line, lines + line


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A breakage. ``rule`` is the law that it breaks, or the laws that a lookalike keeps; ``name`` says what was done.

    Each pair of ``changes`` is a text that occurs once in ``file`` (by default the environment's own) and its replacement.
    Lines that end with `MARK` are those of the rule's findings; without a mark any line will do.
    """

    rule: str
    name: str
    env: str
    changes: tuple[Change, ...]
    file: str = ""
    beside: tuple[tuple[str, str], ...] = ()
    """Further files of its package: name and text."""
    mode: str = "openai"
    """The server type of its rollouts."""
    says: str = ""
    """A text in the message of a finding, or in what it saw."""
    has_cases: bool = True
    """Whether the author's cases are played."""
    is_only_read: bool = False
    """Whether its source alone is judged: it cannot be imported, importing it would do harm, no rollout can differ, or what
    rollouts do with it breaks other laws, too.
    """
    draws_no_warning: bool = False
    """Whether no other rule may even warn; by default no other rule may fail a run."""
    follow_up: str = ""
    """A second rule that fails: the breakage violates it as well, or leaves nothing for it to see."""

    @property
    def id(self) -> str:
        """The name in a test's id."""
        return f"{self.rule}-{self.env}-{self.name}".replace(" ", "-")

    @property
    def source(self) -> str:
        """The text of the changed file."""
        name = self.file or self.env
        text = (SOUND / f"{name}.py").read_text(encoding="utf-8")
        for old, new in self.changes:
            assert text.count(old) == 1, f"{self.id}: {old!r} occurs {text.count(old)} times in {name}.py"
            text = text.replace(old, new)
        return text

    @property
    def marked(self) -> list[int]:
        """The lines where findings are expected; empty when any line will do."""
        return [number for number, line in enumerate(self.source.splitlines(), 1) if line.endswith(MARK)]

    def write(self, directory: Path) -> str:
        """Write the broken environment into a package below ``directory`` and return it as a target."""
        package = directory / f"mutant_{zlib.crc32(self.id.encode()):x}"  # unique, because modules stay imported
        package.mkdir()
        (package / "__init__.py").touch()
        for name in (self.env, *SHARED.get(self.env, ())):
            text = self.source if name == (self.file or self.env) else (SOUND / f"{name}.py").read_text(encoding="utf-8")
            (package / f"{name}.py").write_text(text, encoding="utf-8")
            cases = SOUND / f"{name}.contract.yaml"
            if self.has_cases and cases.is_file():
                (package / cases.name).write_text(cases.read_text(encoding="utf-8"), encoding="utf-8")
        for name, text in self.beside:
            (package / name).write_text(text, encoding="utf-8")
        return f"{package / self.env}.py:{CLASSES[self.env]}"


def mutant(env: str, rule: str, name: str, *changes: Change, **further: Any) -> Mutant:
    """Return a mutant of a sound environment."""
    return Mutant(rule=rule, name=name, env=env, changes=changes, **further)


ledger_books = partial(mutant, "ledger_books")
graded_letters = partial(mutant, "graded_letters")
many_signals = partial(mutant, "many_signals")
signals_base = partial(mutant, "many_signals", file="signals_base")
capitals_exam = partial(mutant, "capitals_exam")
terminal_tasks = partial(mutant, "terminal_tasks")
"""Mutants of each sound environment, and of the base class of one."""
