"""Runs scripts in other shells: files of the machine, what ``bash`` and ``sh`` are given, and ``$(...)``."""

from __future__ import annotations

import re

from pytest_hermes_env.errors import UnknownCommand
from pytest_hermes_env.sandbox.bash.redirection import Refused
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Place, State
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import Script, Simple

__all__ = ["run_file", "run_script", "run_text", "substituted"]

FIRST_LINE = re.compile(rb"#!\s*\S*/(?:env\s+)?(?:ba|da)?sh(?:\s+-(\w+))?\s*")
"""How a script begins that is for a shell."""


def run_file(shell: Runner, words: tuple[str, ...], text: str, streams: Streams) -> int:
    """Run a file of the machine, when it is executable and one for a shell. Raises: else → UnknownCommand."""
    path = shell.path(words[0])
    if not shell.files.is_file(path) or not shell.files.is_executable(path):
        raise UnknownCommand(words, text)
    data = shell.files.read(path)
    first = FIRST_LINE.fullmatch(data.split(b"\n", 1)[0])
    if data.startswith(b"#!") and first is None:
        raise UnknownCommand(words, text)
    letters = first.group(1) if first is not None else None
    return run_script(shell, data, words, streams, options=set((letters or b"").decode()) & set("eux"))


def run_script(shell: Runner, data: bytes, words: tuple[str, ...], streams: Streams, *, options: set[str]) -> int:
    """Run a script in a new shell; ``words`` are its name and its arguments."""
    place = Place(name=words[0])
    text = data.decode(errors="surrogateescape")
    return run_text(shell, text, streams, place=place, arguments=words[1:], options=options, is_file=True)


def run_text(
    shell: Runner,
    text: str,
    streams: Streams,
    *,
    place: Place,
    arguments: tuple[str, ...],
    options: set[str],
    is_file: bool = False,
) -> int:
    """Run a text in a new shell, which knows the exported variables of this one and nothing else."""
    outer, traces = shell.state, shell.traces
    variables = outer.environment()
    shell.state = State(
        cwd=outer.cwd,
        variables=variables,
        exported=set(variables),
        place=place,
        options=set(options),
        arguments=arguments,
        name=place.name,
        is_file=is_file,
    )
    shell.traces = 1
    try:
        return shell.text(text, streams, place=place, recovers=is_file)
    except (Ended, Abandoned) as end:
        return end.code
    finally:
        shell.state, shell.traces = outer, traces


def substituted(shell: Runner, script: Script, streams: Streams) -> str:
    """Return what a script writes, without line breaks at the end. Its exit code becomes the status."""
    out = Sink()
    inner: Streams = {**streams, 1: out}
    state, guards = shell.state, shell.state.guards

    def body() -> int:
        shell.state.options.discard("e")
        reading = _reading(script)
        return shell.script(script, inner) if reading is None else _read(shell, reading, inner)

    state.guards = 0
    shell.traces += 1
    try:
        with shell.deeper("$(...)"):
            state.status = shell.last_substitution = shell.subshell(body)
    finally:
        state.guards = guards
        shell.traces -= 1
    data = bytes(out.buffer)
    if b"\0" in data:
        shell.say(streams, "warning: command substitution: ignored null byte in input")
        data = data.replace(b"\0", b"")
    return data.rstrip(b"\n").decode(errors="surrogateescape")


def _reading(script: Script) -> Simple | None:
    """Return the command of a script that is nothing but ``< file``."""
    node = script.commands[0][0] if len(script.commands) == 1 and script.problem is None else None
    if not isinstance(node, Simple) or node.words or node.assignments or len(node.redirects) != 1:
        return None
    return node if (node.redirects[0].operator, node.redirects[0].fd) == ("<", 0) else None


def _read(shell: Runner, node: Simple, streams: Streams) -> int:
    """Write what a file holds."""
    try:
        source = shell.redirected(node.redirects, streams)[0]
    except Refused as refused:
        return shell.say(streams, str(refused))
    out = streams[1]
    if isinstance(source, Source) and isinstance(out, Sink):
        out.buffer += source.rest
    return 0
