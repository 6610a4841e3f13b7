"""``terminal``: command lines, answered by the script, in memory if they are simple commands, or by real bash over the same files.

A script may answer simple commands in a composed line, such as ``cd app && pytest -q 2>&1 | tail -n 1``: a function takes the place
of each, and real bash runs the line. Only lines of words, quotes, redirections, pipes, lists, groups and common keywords are taken
apart, not ``$( )``, backquotes, here-documents, background jobs or process substitutions.

Source: hermes-agent 0.19, tools/terminal_tool.py and tools/environments/base.py.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.faults.plan import half
from pytest_hermes_env.sandbox.answers import Answer, CommandCall, Outcome, Scripted, Scripts, ask, called, shell_words
from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState, Session
from pytest_hermes_env.sandbox.fake_tools.rules import SHELL, integer, shown, without_escapes
from pytest_hermes_env.sandbox.machine import InMemoryMachine, patience
from pytest_hermes_env.sandbox.real_lines import RealProcess, Refusal
from pytest_hermes_env.sandbox.real_shell import HOST_PYTHON, Place
from pytest_hermes_env.sandbox.sandbox_errors import exhausted, not_a_result, unscripted_command, unscripted_line
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES, plain_words, run_simple
from pytest_hermes_env.sandbox.wrapped_commands import handed_on, wrapped

NOT_FOUND = 127
TIMED_OUT = 124
NOT_RUNNABLE = 126
_COMPOSED = re.compile(r"[;&|<>()\n`$]")
"""Characters that, unquoted, are not part of a simple command without redirections."""
_SEPARATOR = re.compile(r"[;&|()`\n]+|\$\(")
_REDIRECTION = re.compile(r"\d*(?:>>?|<{1,3})&?\s*[^\s;&|()<>]+")
_BEFORE_COMMAND = re.compile(r"^(?:(?:if|then|elif|else|while|until|do|!|time|\{|\w+=\S*)\s+)+")
CELLS_PATH = f"{HOST_PYTHON}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a program lies that is installed for commands."""
_NOT_INSTALLED = re.compile(rf"^{SHELL.rpartition(' ')[0]} \d+: ([^\s:]+): command not found$", re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)
    |(?P<separator>&&|\|\|?|;|\n|[(){}](?=[\s;)]|$)|\()
    |(?P<redirection>(?:\d*(?:>>?|<)(?:&(?:\d|-)|[ \t]*(?:[^\s'"\\;&|<>()`]|'[^']*'|"[^"`$\\]*")+)|&>>?[ \t]*[^\s'"\\;&|<>()`]+))
    |(?P<word>(?:'[^']*'|"(?:[^"`$\\]|\\.|\$(?![({]))*"|\\.|\$(?:\w+|\?)|\$\{\w+\}|[^\s'"\\;&|<>()`$#]|(?<=\S)\#)+)""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"})
_ASSIGNMENT = re.compile(r"\w+=")
_SILENT = (
    "background=true without notify_on_complete=true means this process runs SILENTLY — you will not be told when it exits. If this "
    "is a bounded task (test suite, build, CI poller, deploy, anything with a defined end), you almost certainly wanted "
    "notify_on_complete=true so the system pings you on exit. Re-launch with notify_on_complete=true, or call "
    "process(action='poll') / process(action='wait') yourself to learn the outcome. Only ignore this hint for genuine long-lived "
    "processes that never exit (servers, watchers, daemons)."
)
_BOTH = "watch_patterns ignored because notify_on_complete=True; these two flags produce duplicate notifications when combined"


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One simple command: its place in the line, without assignments before it and redirections after it, and its text."""

    start: int
    end: int
    text: str


class _Whole(Exception):
    """Leaves a line whose answer is not a command's output: a complete ``result``, or the output of what ran out of time."""

    def __init__(self, *, result: Mapping[str, Any] | None = None, timed_out: str = "") -> None:
        super().__init__()
        self.result = result
        self.timed_out = timed_out


@dataclass(kw_only=True)
class _Run:
    """The state of one running line. ``command`` is the line as it was given; ``process``: the real line in the background."""

    command: str
    line: str
    arguments: Mapping[str, Any]
    sandbox: InMemoryMachine
    session: Session
    broken_json: bool = False
    process: RealProcess | None = None

    @property
    def limit_s(self) -> int:
        """The seconds that the line may take."""
        return integer(self.arguments.get("timeout"), 0) or integer(os.environ.get("TERMINAL_TIMEOUT"), 180)


class Terminal:
    """The terminal of one sandbox. ``missed`` collects unknown commands; if it is None, they are refused.

    ``refused`` are the lines that needed real programs where none may run.
    """

    def __init__(self, machine: MachineState, scripts: Scripts, *, missed: list[str] | None) -> None:
        self._machine = machine
        self._scripts = scripts
        self._missed = missed
        self.refused: list[Refusal] = []

    def call(self, arguments: Mapping[str, Any], sandbox: InMemoryMachine) -> dict[str, Any] | str:
        """Answer ``terminal``; ``sandbox`` is passed to functions that answer.

        Raises: no answer → UnexpectedToolCall; a scripted exception.
        """
        command, background = arguments.get("command"), bool(arguments.get("background", False))
        if not isinstance(command, str):
            return _refused(f"Invalid command: expected string, got {type(command).__name__}", "error")
        if "\0" in command:
            return {"output": "", "exit_code": -1, "error": "Command execution failed: ValueError: embedded null byte"}
        timeout = integer(arguments.get("timeout"), 0)
        most = integer(os.environ.get("TERMINAL_MAX_FOREGROUND_TIMEOUT"), 600)
        if not background and timeout > most:
            advice = "Use background=true with notify_on_complete=true for long-running commands."
            return {"error": f"Foreground timeout {timeout}s exceeds the maximum of {most}s. {advice}"}
        guidance = None if background else rules.background_guidance(command)
        if guidance:
            return _refused(guidance, "error")
        if (error := rules.blocked_error(command)) and not self._scripted_part(command):
            return _refused(error, "blocked")
        workdir = arguments.get("workdir")
        if workdir and (error := rules.workdir_error(str(workdir))):
            return _refused(error, "blocked")
        run = self._begin(command, arguments, sandbox)
        try:
            outcome = self._enter(run) or self._line(run)
        except _Whole as whole:
            if whole.result is not None:
                result = dict(whole.result)
            elif background:
                result = self._started(run, whole.timed_out, None)
            else:
                text = f"{whole.timed_out}\n[Command timed out after {run.limit_s}s]"
                result = _shown(run, Outcome(output=text, exit_code=TIMED_OUT))
        else:
            if background:
                result = self._started(run, outcome.output, outcome.exit_code)
            else:
                self._machine.session = run.session
                result = _shown(run, outcome)
        return half(json.dumps(result, ensure_ascii=False)) if run.broken_json else result

    def _started(self, run: _Run, output: str, exit_code: int | None) -> dict[str, Any]:
        """Return the result for a line in the background: a session that ``process`` reports, which has ended unless it is real."""
        notify = bool(run.arguments.get("notify_on_complete", False))
        patterns = tuple(run.arguments.get("watch_patterns") or ())
        session = self._machine.processes.start(
            run.command,
            cwd=run.session.cwd,
            output_buffer=without_escapes(output),
            exit_code=None if run.process else exit_code,
            real=run.process,
            pty=bool(run.arguments.get("pty", False)),
            notify_on_complete=notify,
            watch_patterns=() if notify else patterns,
        )
        started = {"output": "Background process started", "session_id": session.id, "pid": session.pid}
        result: dict[str, Any] = {**started, "exit_code": 0, "error": None}
        if not notify and not patterns:
            result["hint"] = _SILENT
        if notify and patterns:
            result["watch_patterns_ignored"] = _BOTH
        if notify:
            result["notify_on_complete"] = True
        elif patterns:
            result["watch_patterns"] = list(patterns)
        return result

    def _begin(self, command: str, arguments: Mapping[str, Any], sandbox: InMemoryMachine) -> _Run:
        line, session = command, self._machine.session
        for alias in self._machine.aliases:
            line = re.sub(rf"{re.escape(alias)}(?![\w.-])", lambda _: self._machine.home, line)
        if arguments.get("background"):  # hermes starts it without what earlier lines exported
            session = Session(cwd=session.cwd, variables={**FIRST_VARIABLES, "PYTHONUNBUFFERED": "1"})
        return _Run(command=command, line=line, arguments=arguments, sandbox=sandbox, session=session)

    def _enter(self, run: _Run) -> Outcome | None:
        """Change to the working directory of the call, if it has one; return the outcome if that fails."""
        workdir = run.arguments.get("workdir")
        if not workdir:
            return None
        place = self._machine.resolve(str(workdir))
        if self._machine.files.is_dir(place):
            run.session = replace(run.session, cwd=place)
            return None
        reason = "Not a directory" if self._machine.files.exists(place) else "No such file or directory"
        return Outcome(output=f"/usr/bin/bash: line 2: cd: {workdir}: {reason}\n", exit_code=NOT_RUNNABLE)

    def _line(self, run: _Run) -> Outcome:
        """Run a line: the script answers it, the machine in memory does, or real bash, for whose simple commands the script may answer."""
        text = run.line.strip()
        if not text:
            return Outcome(output="")
        is_simple = _COMPOSED.search(text) is None
        whole = self._scripts.matching(text, shell_words(text) if is_simple else ())
        exact = whole if is_simple else [entry for entry in whole if isinstance(entry.key, str)]
        if exact:
            return self._answer(run, exact, text, shell_words(text))
        cells, files = self._machine.real.cells, self._machine.files
        every = [self._unwrapped(part) for part in simple_commands(run.line)]
        parts = [part for part in every if self._scripts.matching(part.text, shell_words(part.text))]
        if not parts and (files.is_plain or cells.refusal):
            outcome = run_simple(run.line, files, run.session.cwd, run.session.variables)
            if outcome is not None:
                return outcome
        if whole and (cells.refusal or not parts):
            return self._answer(run, whole, text, shell_words(text))
        if (refusal := cells.refusal) is None:
            return self._for_real(run, parts)
        if (refused := replace(refusal, line=run.line)) not in self.refused:
            self.refused.append(refused)
        return self._not_run(run, refusal)

    def _unwrapped(self, part: _Part) -> _Part:
        """Return a command with what it runs in its place, where the script answers that and not the command itself."""
        inner = "" if self._scripts.matching(part.text, shell_words(part.text)) else wrapped(part.text)
        return replace(part, text=inner) if inner and self._scripts.matching(inner, shell_words(inner)) else part

    def _for_real(self, run: _Run, parts: list[_Part]) -> Outcome:
        """Run a line in real bash, in the same directory with the same variables; the script answers ``parts`` of it.

        Raises: a command that is nowhere, or one that only the script answers and bash cannot ask for → UnexpectedToolCall; _Whole.
        """
        given = next(filter(None, map(self._scripted_part, handed_on(run.line))), "")
        if part := given or ("" if parts else self._scripted_part(run.line)):
            return self._not_run(run, Refusal(reason=f"cannot ask the script for `{part}`", fix=""))
        real, session = self._machine.real, run.session
        line, functions, taken = self._with_answers(run, parts)
        place = Place(cwd=session.cwd, variables=session.variables, functions=functions)
        if run.arguments.get("background"):
            command = f"__hermes_asked=/dev/null; {functions}; {line}" if functions else line
            if self._machine.files.party == "verifier":  # without the "logout" of a login shell, as in the real tool context
                command = f"(\n{command}\n)"
            run.process = real.start(command, place, has_input=bool(run.arguments.get("pty", False)))
            return Outcome(output="")
        limit_s = patience.get().seconds_for(run.limit_s)
        ran = real.run(line, place, timeout=limit_s)
        if ran.timed_out and limit_s < run.limit_s:
            patience.get().was_over = True
        for name, entry in taken.items():
            if name not in ran.asked:
                self._scripts.give_back(entry)
        output = ran.output.decode(errors="replace") + (f"\n[{ran.limit}]" if ran.limit else "")
        if ran.timed_out:
            raise _Whole(timed_out=output)
        run.session = Session(cwd=ran.cwd, variables=ran.variables)
        for name in dict.fromkeys(_NOT_INSTALLED.findall(output)):
            if shutil.which(name, path=CELLS_PATH):  # the agent's own PATH hides it
                continue
            if self._missed is None:
                raise unscripted_command(name, run.line, self._names()).exception()
            self._missed.append(name)
        return Outcome(output=output, exit_code=ran.exit_code)

    def _with_answers(self, run: _Run, parts: list[_Part]) -> tuple[str, str, dict[str, Scripted]]:
        """Return the line with a function for each scripted command, the functions, and the entries that they answer from."""
        line, at, functions, taken = "", 0, [], {}
        for number, part in enumerate(parts):
            words, name = shell_words(part.text), f"__hermes_scripted_{number}"
            matching = self._scripts.matching(part.text, words)
            taken[name] = self._scripts.ready(matching) or matching[0]
            answer = self._answer(run, matching, part.text, words)
            functions.append(_function_for(name, answer.output, answer.errors, answer.exit_code))
            line += run.line[at : part.start] + name
            at = part.end
        return line + run.line[at:], "; ".join(functions), taken

    def _not_run(self, run: _Run, refusal: Refusal) -> Outcome:
        """Answer a line that nothing on this machine runs. Raises: such lines are refused → UnexpectedToolCall."""
        if self._missed is None:
            raise unscripted_line(run.line, refusal.reason, refusal.fix, self._names()).exception() from None
        self._missed.append(run.line)
        words = plain_words(run.line)
        said = f"{words[0]}: command not found" if words else f"{shorten(run.line)}: not available on this machine"
        return Outcome(output=f"{SHELL}: {said}\n", exit_code=NOT_FOUND)

    def _scripted_part(self, line: str) -> str:
        """Return the first simple command of any line that the script answers, as far as a look at its separators tells."""
        parts = _SEPARATOR.split(_REDIRECTION.sub(" ", line))
        texts = [_BEFORE_COMMAND.sub("", part.strip()) for part in parts]
        return next((text for text in texts if text and self._scripts.matching(text, shell_words(text))), "")

    def _names(self) -> list[str]:
        return [entry.name for entry in self._scripts.entries()]

    def _answer(self, run: _Run, matching: list[Scripted], text: str, words: tuple[str, ...]) -> Outcome:
        """Return the outcome of the first entry with an unused answer. Raises: there is none → UnexpectedToolCall; _Whole."""
        entry = self._scripts.ready(matching)
        if entry is None:
            raise exhausted(text, matching[0].shown, matching[0].shown_answers).exception()
        answer = self._scripts.take(entry)
        limit_s = math.inf if run.arguments.get("background") else run.limit_s
        answer.delay(limit_s)
        if answer.slow_s > limit_s:
            raise _Whole(timed_out="")
        for path, content in answer.writes.items():
            self._machine.files[self._machine.files.resolve(path, run.session.cwd)] = content
        run.broken_json = run.broken_json or answer.broken_json
        answer.fail()
        if answer.result is not None:
            raise _Whole(result=answer.result)
        call = CommandCall(text=text, words=words, arguments=run.arguments, sandbox=run.sandbox)
        outcome = _outcome(answer, call)
        if answer.timed_out:
            raise _Whole(timed_out=outcome.output)
        return outcome


def _shown(run: _Run, outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {"output": shown(outcome.output), "exit_code": outcome.exit_code, "error": None}
    if meaning := rules.exit_code_meaning(run.command, outcome.exit_code):
        result["exit_code_meaning"] = meaning
    return result


def _outcome(answer: Answer, call: CommandCall) -> Outcome:
    """Return the outcome of an answer. Raises: a complete result → _Whole; no tool result → NotAToolResult."""
    who = f"the function {called(answer.output)}, which answers a command,"
    said = ask(answer.output, who, call.text, call) if callable(answer.output) else answer.output
    if isinstance(said, Outcome):
        return said
    if isinstance(said, str):
        end = "" if said.endswith("\n") or not said else "\n"
        return Outcome(output=said + end, exit_code=answer.exit_code)
    if isinstance(said, Mapping):
        raise _Whole(result=said)
    expected = "text, an Outcome, or a dict as the complete tool result"
    raise not_a_result(who, said, "", expected).exception()


def _refused(error: str, status: str) -> dict[str, Any]:
    return {"output": "", "exit_code": -1, "error": error, "status": status}


def simple_commands(line: str) -> list[_Part]:
    """Return the simple commands of a line; none if it has what is not taken apart."""
    parts: list[_Part] = []
    start = end = -1
    is_complete = at = 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return []
        at = token.end()
        if token["separator"]:
            parts += [_Part(start=start, end=end, text=line[start:end])] if start >= 0 else []
            start, is_complete = -1, 0
        elif token["redirection"]:
            is_complete = int(start >= 0)
        elif token["word"] and start < 0:
            if token["word"] not in _KEYWORDS and not _ASSIGNMENT.match(token["word"]):
                start, end = token.span()
        elif token["word"]:
            if is_complete:  # words on both sides of a redirection
                return []
            end = token.end()
    return [*parts, *([_Part(start=start, end=end, text=line[start:end])] if start >= 0 else [])]


def _function_for(name: str, output: str, errors: str, exit_code: int) -> str:
    """Return bash's definition of a function that does what a script answers, and notes its name in ``$__hermes_asked``."""
    said = "".join(f" builtin printf %s {_quoted(text)}{where};" for text, where in ((output, ""), (errors, " >&2")) if text)
    return f'{name}() {{ builtin echo {name} >> "$__hermes_asked";{said} return {exit_code}; }}'


def _quoted(text: str) -> str:
    """Quote text on one line: bash counts the lines before a command."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"
