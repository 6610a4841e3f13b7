"""A small shell on an in-memory machine: it runs command lines on `Files` and starts no process.

Place in the flow: the fake sandbox's ``terminal`` runs each line here. A line that this shell does not answer exactly as bash 5.2
and GNU's commands do is refused as `NotKnown`, and then nothing of it has happened.

Source: bash 5.2, and hermes-agent 0.19, tools/environments/base.py, for the state that lasts from one command line to the next.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_hermes_env.errors import NotKnown
from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.parser import parse
from pytest_hermes_env.sandbox.bash.runner import Answer, Knows, Runner
from pytest_hermes_env.sandbox.bash.state import Ended, NotExact, Sink, Source, State, Streams
from pytest_hermes_env.sandbox.bash.words import COMPUTED
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.node import HOME
from pytest_hermes_env.sandbox.outcome import Outcome

__all__ = ["Shell"]
FIRST_LINE = "/usr/bin/bash: line 3: "
"""How bash begins an error message about the one line of a command: two lines of hermes' wrapper stand before it."""

LOCALE = "C.UTF-8"
"""The locale of a session: the order of characters is that of their bytes."""


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
        self._variables = {
            "HOME": HOME,
            "LANG": LOCALE,
            "LOGNAME": "root",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PWD": self.cwd,
            "SHELL": "/bin/bash",
            "SHLVL": "1",
            "USER": "root",
        }

    @property
    def variables(self) -> dict[str, str]:
        """The exported variables."""
        return dict(self._variables)

    def resume(self, cwd: str, variables: Mapping[str, str]) -> None:
        """Go on where another shell stopped: in its directory, with its exported variables."""
        self.cwd = self.files.resolve(cwd)
        self._variables = dict(variables)

    def copy(self, files: Files) -> Shell:
        """Return a session in the same state on other files, with the same answers."""
        other = Shell(files, cwd=self.cwd, answer=self.answer, knows=self.knows)
        other._variables = dict(self._variables)
        return other

    def run(self, command: str) -> Outcome:
        """Run a line, or several. Raises: only real bash answers it exactly → NotKnown; the files and the session are as before."""
        before = self.files.copy()
        try:
            return self._run(command)
        except (NotExact, RecursionError) as error:
            self.files.restore(before)
            raise NotKnown(command, str(error) if isinstance(error, NotExact) else "nesting this deep") from None

    def _run(self, command: str) -> Outcome:
        if "\0" in command:
            raise NotExact("a null byte")
        script, simples = parse(command)
        for name, value in self._variables.items():
            if COMPUTED.fullmatch(name) and name not in HARMLESS and (name, value) != ("LANG", LOCALE):
                raise NotExact(f"the variable {name}")
        variables = {**self._variables, "PWD": self.cwd, "OLDPWD": self.cwd}
        prefix = None if "\n" in command else FIRST_LINE
        state = State(cwd=self.cwd, variables=variables, exported=set(variables), prefix=prefix)
        runner = Runner(
            Disk(self.files, self.cwd), state, answer=lambda text, words: self._asked(runner, text, words), knows=self.knows
        )
        runner.check(simples)
        terminal = Sink()
        try:
            code = runner.run(script, Streams(Source(), terminal, terminal))
        except Ended as ended:
            code = ended.code
        else:
            self.cwd = state.cwd
            self._variables = {name: variables[name] for name in sorted(state.exported) if name in variables}
        return Outcome(output=terminal.data.decode(errors="replace"), exit_code=code)

    def _asked(self, runner: Runner, text: str, words: tuple[str, ...]) -> Outcome | None:
        if self.answer is None:
            return None
        self.running_in = runner.state.cwd
        return self.answer(text, words)


HARMLESS = frozenset(
    {"SHLVL", "_", "HOSTNAME", "HOSTTYPE", "OSTYPE", "MACHTYPE", "COLUMNS", "LINES", "TZ", "TMPDIR", "HISTSIZE"}
)
"""Variables that may be exported: they change nothing that this shell does."""
