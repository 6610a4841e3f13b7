"""HE409 shell-values-are-quoted
Values in a command of the tool context are quoted, or are the author's own.

What: A command for `ctx.terminal` (or `call_tool("terminal", ...)`) in `compute_reward` is built from constants,
numbers, settings and values that passed through `shlex.quote` or `shlex.join`. Fields of the item, text of the
transcript and output of the sandbox are not inserted unquoted, by f-string, `%`, `format`, `+` or `join`, through
locals or helpers. A field that is a command itself (its name contains cmd, command, script or shell) and a command that
is one value as a whole are not reported.

Why: A file named `it's.txt` ends the reward in a syntax error, which reads as a failed test, and a model that may
choose a file name writes `x; echo 1 > /tmp/score`. The verifier runs with the right to decide what is correct: a model
that controls its shell grades itself.

Fix: `ctx.terminal(f"cat {shlex.quote(path)}")`, `shlex.join([...])` for whole commands, or the file tools, which take
paths as they are: `ctx.read_file(path)`.

Source: Python's `shlex.quote`; `environments.tool_context.ToolContext.terminal` (bash receives the command unchanged).
"""

from __future__ import annotations

from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import ClassSource, finding_at, sorted_findings, terminal_commands
from pytest_hermes_env.source.finding import Severity


def static(source: ClassSource) -> Verdict:
    """Look at every command that compute_reward leads to."""
    if not source.has("compute_reward") and source.unreadable:
        return Verdict.undecided(f"compute_reward may come from {source.unreadable[0]}, which cannot be read")
    commands = terminal_commands(source, "compute_reward")
    if not commands:
        return Verdict.not_applicable("compute_reward runs no terminal command")
    findings = sorted_findings(
        finding_at(
            command.function,
            command.node,
            f"{command.function.name} puts {command.taint.what} into a command without quoting it",
        )
        for command in commands
        if command.taint.is_tainted and command.taint.is_interpolated
    )
    if findings:
        return Verdict.failed(findings)
    doubt = next((command for command in commands if command.taint.is_unknown and command.taint.is_interpolated), None)
    if doubt is not None:
        line = getattr(doubt.node, "lineno", 0)
        return Verdict.undecided(f"line {line}: the origin of {doubt.taint.what} cannot be followed")
    places = len({command.node for command in commands})
    return Verdict.passed(f"{places} {'command is' if places == 1 else 'commands are'} quoted or the author's own")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static)
