"""A small shell on an in-memory machine: it runs command lines on `Files` and starts no process.

Place in the flow: the fake sandbox's ``terminal`` runs each line here. Unsupported syntax is refused as `UnsupportedSyntax`
instead of run wrongly.

Source: bash 5.2, and hermes-agent 0.19, tools/environments/base.py, for the state that lasts from one command line to the next.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.builtins import BUILTINS, PROGRAMS
from pytest_hermes_env.sandbox.bash.compounds import run_compound
from pytest_hermes_env.sandbox.bash.grammar import parse
from pytest_hermes_env.sandbox.bash.runner import Answer, Handlers, Knows, Runner
from pytest_hermes_env.sandbox.bash.scripts import run_file, substituted
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Place, State, first_variables
from pytest_hermes_env.sandbox.bash.streams import Sink, Source
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.outcome import Outcome

__all__ = ["Shell"]

HANDLERS = Handlers(
    builtins=BUILTINS,
    programs=PROGRAMS,
    compound=run_compound,
    script_file=run_file,
    substitution=substituted,
)

LINES_BEFORE = 2
"""Lines of hermes' wrapper before the command. bash continues counting at the line where the command ends."""


class Shell:
    """A session: its directory and its exported variables last from line to line.

    ``answer`` is called with the text and the words of every simple command, before the machine's own commands; ``knows``
    predicts whether ``answer`` will answer, without a change. ``running_in`` is the directory of the command that ``answer`` is
    called for.
    """

    def __init__(
        self, files: Files, *, cwd: str = "/workspace", answer: Answer | None = None, knows: Knows | None = None
    ) -> None:
        self.files = files
        self.cwd = files.resolve(cwd)
        self.running_in = self.cwd
        self.answer = answer
        self.knows = knows
        self._variables = first_variables(self.cwd)

    @property
    def variables(self) -> dict[str, str]:
        """The exported variables."""
        return dict(self._variables)

    def resume(self, cwd: str, variables: Mapping[str, str]) -> None:
        """Go on where another shell stopped."""
        self.cwd, self._variables = cwd, dict(variables)

    def copy(self, files: Files) -> Shell:
        """Return a session in the same state on other files, with the same answers."""
        other = Shell(files, cwd=self.cwd, answer=self.answer, knows=self.knows)
        other._variables = dict(self._variables)
        return other

    def run(self, command: str, *, stdin: bytes = b"") -> Outcome:
        """Run a line, or several.

        Raises: an unknown command → UnknownCommand, before the line runs if the source has its name; unsupported syntax →
        UnsupportedSyntax.
        """
        try:
            return self._run(command, stdin)
        except RecursionError:
            raise UnsupportedSyntax(command, "nesting this deep") from None

    def _run(self, command: str, stdin: bytes) -> Outcome:
        script = parse(command)
        terminal = Sink()
        variables = {**self._variables, "PWD": self.cwd, "OLDPWD": self.cwd}
        place = Place(name="/usr/bin/bash", before=LINES_BEFORE + command.count("\n"), syntax_name="/usr/bin/bash: eval")
        state = State(cwd=self.cwd, variables=variables, exported=set(variables), place=place)
        answer = self.answer

        def asked(text: str, words: tuple[str, ...]) -> Outcome | None:
            self.running_in = runner.state.cwd
            return answer(text, words) if answer is not None else None

        runner = Runner(self.files, state, HANDLERS, answer=asked, knows=self.knows)
        runner.check(script)
        lasts = True
        try:
            code = runner.script(script, {0: Source(stdin), 1: terminal, 2: terminal})
        except Abandoned as abandoned:
            code = abandoned.code
        except Ended as ended:
            code, lasts = ended.code, False
        if lasts:
            self.cwd = state.cwd
            self._variables = state.environment()
        return Outcome(output=terminal.buffer.decode(errors="replace"), exit_code=code)
