"""Runs what stands in ``$(...)``, and gives what it wrote."""

from __future__ import annotations

from pytest_hermes_env.sandbox.bash.redirection import Refused
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import Script, Simple

__all__ = ["substituted"]


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
