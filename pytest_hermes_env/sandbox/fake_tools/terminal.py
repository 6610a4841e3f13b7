"""``terminal``: command lines, answered by the script, in memory if they are simple commands, or by real bash over the same files.

Source: hermes-agent 0.19, tools/terminal_tool.py and tools/environments/base.py.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.sandbox.answers import Answer, CommandCall, Outcome, Scripted, Scripts, ask, called, shell_words
from pytest_hermes_env.sandbox.composed_line import Part, function_for, simple_commands
from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState, Session
from pytest_hermes_env.sandbox.fake_tools.output import SHELL, cut_off, integer, shown, without_escapes
from pytest_hermes_env.sandbox.machine import InMemoryMachine
from pytest_hermes_env.sandbox.real_lines import RealProcess, Refusal
from pytest_hermes_env.sandbox.real_shell import Place
from pytest_hermes_env.sandbox.sandbox_errors import exhausted, not_a_result, unscripted_command, unscripted_line
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES, plain_words, run_simple

__all__ = ["Fault", "RefusedLine", "Terminal"]

NOT_FOUND = 127
TIMED_OUT = 124
NOT_RUNNABLE = 126
_COMPOSED = re.compile(r"[;&|<>()\n`$]")
"""Characters that, unquoted, are not part of a simple command without redirections."""
_SEPARATOR = re.compile(r"[;&|()`\n]+|\$\(")
_REDIRECTION = re.compile(r"\d*(?:>>?|<{1,3})&?\s*[^\s;&|()<>]+")
_BEFORE_COMMAND = re.compile(r"^(?:(?:if|then|elif|else|while|until|do|!|time|\{|\w+=\S*)\s+)+")
_NOT_INSTALLED = re.compile(rf"^{SHELL.rpartition(' ')[0]} \d+: ([^\s:]+): command not found$", re.MULTILINE)
_SILENT = (
    "background=true without notify_on_complete=true means this process runs SILENTLY — you will not be told when it exits. If this "
    "is a bounded task (test suite, build, CI poller, deploy, anything with a defined end), you almost certainly wanted "
    "notify_on_complete=true so the system pings you on exit. Re-launch with notify_on_complete=true, or call "
    "process(action='poll') / process(action='wait') yourself to learn the outcome. Only ignore this hint for genuine long-lived "
    "processes that never exit (servers, watchers, daemons)."
)
_BOTH = "watch_patterns ignored because notify_on_complete=True; these two flags produce duplicate notifications when combined"


@dataclass(frozen=True, kw_only=True)
class RefusedLine:
    """A line that needed real programs, and why none ran."""

    line: str
    refusal: Refusal

    def __str__(self) -> str:
        return f"`{shorten(self.line)}`, and real bash {self.refusal.reason}: {self.refusal.fix}"


class Fault(Exception):
    """Leaves a line with an answer that is not a command's output: exactly one of the arguments."""

    def __init__(
        self,
        *,
        result: Mapping[str, Any] | None = None,
        error: BaseException | None = None,
        timed_out: str | None = None,
    ) -> None:
        super().__init__()
        self.result = result
        self.error = error
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
        self.refused: list[RefusedLine] = []

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
        except Fault as fault:
            if fault.error is not None:
                raise fault.error from None
            result = self._after_fault(run, fault)
        else:
            result = self._started(run, outcome.output, outcome.exit_code) if background else self._ended(run, outcome)
        return cut_off(result) if run.broken_json else result

    def _after_fault(self, run: _Run, fault: Fault) -> dict[str, Any]:
        if fault.result is not None:
            return dict(fault.result)
        if run.arguments.get("background"):
            return self._started(run, fault.timed_out or "", None)
        text = f"{fault.timed_out}\n[Command timed out after {run.limit_s}s]"
        return _shown(run, Outcome(output=text, exit_code=TIMED_OUT))

    def _ended(self, run: _Run, outcome: Outcome) -> dict[str, Any]:
        """Take over the session of a line in the foreground, and return its result."""
        self._machine.session = run.session
        return _shown(run, outcome)

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
        parts = [part for part in simple_commands(run.line) if self._scripts.matching(part.text, shell_words(part.text))]
        if not parts and (files.is_plain or cells.refusal):
            outcome = run_simple(run.line, files, run.session.cwd, run.session.variables)
            if outcome is not None:
                return outcome
        if whole and (cells.refusal or not parts):
            return self._answer(run, whole, text, shell_words(text))
        if (refusal := cells.refusal) is None:
            return self._for_real(run, parts)
        if (refused := RefusedLine(line=run.line, refusal=refusal)) not in self.refused:
            self.refused.append(refused)
        return self._not_run(run, refusal)

    def _for_real(self, run: _Run, parts: list[Part]) -> Outcome:
        """Run a line in real bash, in the same directory with the same variables; the script answers ``parts`` of it.

        Raises: a command that is nowhere, or one that only the script answers and bash cannot ask for → UnexpectedToolCall; Fault.
        """
        if not parts and (part := self._scripted_part(run.line)):
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
        ran = real.run(line, place, timeout=run.limit_s)
        for name, entry in taken.items():
            if name not in ran.asked:
                self._scripts.give_back(entry)
        output = ran.output.decode(errors="replace") + (f"\n[{ran.limit}]" if ran.limit else "")
        if ran.timed_out:
            raise Fault(timed_out=output)
        run.session = Session(cwd=ran.cwd, variables=ran.variables)
        for name in dict.fromkeys(_NOT_INSTALLED.findall(output)):
            if self._missed is None:
                raise unscripted_command(name, run.line, self._names()).exception()
            self._missed.append(name)
        return Outcome(output=output, exit_code=ran.exit_code)

    def _with_answers(self, run: _Run, parts: list[Part]) -> tuple[str, str, dict[str, Scripted]]:
        """Return the line with a function for each scripted command, the functions, and the entries that they answer from."""
        line, at, functions, taken = "", 0, [], {}
        for number, part in enumerate(parts):
            words, name = shell_words(part.text), f"__hermes_scripted_{number}"
            matching = self._scripts.matching(part.text, words)
            taken[name] = self._scripts.ready(matching) or matching[0]
            answer = self._answer(run, matching, part.text, words)
            functions.append(function_for(name, answer.output, answer.errors, answer.exit_code))
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
        """Return the outcome of the first entry with an unused answer. Raises: there is none → UnexpectedToolCall; Fault."""
        entry = self._scripts.ready(matching)
        if entry is None:
            raise exhausted(text, matching[0].shown, matching[0].shown_answers).exception()
        answer = self._scripts.take(entry)
        if answer.slow_s:
            is_too_slow = answer.slow_s > run.limit_s and not run.arguments.get("background")
            time.sleep(run.limit_s if is_too_slow else answer.slow_s)
            if is_too_slow:
                raise Fault(timed_out="")
        for path, content in answer.writes.items():
            self._machine.files[self._machine.files.resolve(path, run.session.cwd)] = content
        run.broken_json = run.broken_json or answer.broken_json
        if answer.raises is not None:
            raise Fault(error=answer.raises if isinstance(answer.raises, BaseException) else answer.raises())
        if answer.result is not None:
            raise Fault(result=answer.result)
        call = CommandCall(text=text, words=words, arguments=run.arguments, sandbox=run.sandbox)
        outcome = _outcome(answer, call)
        if answer.timed_out:
            raise Fault(timed_out=outcome.output)
        return outcome


def _shown(run: _Run, outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {"output": shown(outcome.output), "exit_code": outcome.exit_code, "error": None}
    if meaning := rules.exit_code_meaning(run.command, outcome.exit_code):
        result["exit_code_meaning"] = meaning
    return result


def _outcome(answer: Answer, call: CommandCall) -> Outcome:
    """Return the outcome of an answer. Raises: a complete result → Fault; no tool result → NotAToolResult."""
    who = f"the function {called(answer.output)}, which answers a command,"
    said = ask(answer.output, who, call.text, call) if callable(answer.output) else answer.output
    if isinstance(said, Outcome):
        return said
    if isinstance(said, str):
        end = "" if said.endswith("\n") or not said else "\n"
        return Outcome(output=said + end, exit_code=answer.exit_code)
    if isinstance(said, Mapping):
        raise Fault(result=said)
    expected = "text, an Outcome, or a dict as the complete tool result"
    raise not_a_result(who, said, "", expected).exception()


def _refused(error: str, status: str) -> dict[str, Any]:
    return {"output": "", "exit_code": -1, "error": error, "status": status}
