"""The words of a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference import (
    call,
    call_raw,
    empty_choices,
    fail,
    garbage,
    hang,
    say,
    think,
    turn,
    unoffered,
)
from pytest_hermes_env.inference.steps import Call, as_turn

if TYPE_CHECKING:
    from collections.abc import Callable


def test_call_holds_its_arguments_as_json_text() -> None:
    """A call holds what goes over the wire, and the argument names that will be checked."""
    made = call("terminal", command="ls", tool="an argument named tool")

    assert made == Call(
        tool="terminal",
        arguments_text='{"command": "ls", "tool": "an argument named tool"}',
        names=("command", "tool"),
    )


def test_call_does_not_see_later_changes_of_its_arguments() -> None:
    """A step is a value: changing a list after the call was written changes nothing."""
    names = ["a"]
    made = call("read", names=names)
    names.append("b")

    assert made.arguments_text == '{"names": ["a"]}'


@dataclass(frozen=True, kw_only=True)
class Described:
    """A turn, and its words."""

    turn: object
    words: str


DESCRIBED = (
    Described(turn="done", words="say 'done'"),
    Described(turn=say("x" * 100), words="say '" + "x" * 78 + "…"),
    Described(turn=call("terminal", command="ls", n=1), words="call terminal(command='ls', n=1)"),
    Described(turn=call("terminal"), words="call terminal()"),
    Described(turn=call_raw("terminal", "{bad"), words="call terminal('{bad')"),
    Described(turn=unoffered(call("nope")), words="call nope()"),
    Described(turn=[think("hm"), call("a"), call("b")], words="think 'hm' + call a() + call b()"),
    Described(turn=fail(503), words="fail 503"),
    Described(turn=(fail(503, times=2), "ok"), words="fail 503 (times=2) + say 'ok'"),
    Described(turn=(hang(0.5), "ok"), words="hang 0.5 s + say 'ok'"),
    Described(turn=garbage("<html>"), words="garbage '<html>'"),
    Described(turn=empty_choices(), words="empty choices"),
)


@pytest.mark.parametrize("case", DESCRIBED, ids=lambda case: case.words[:30])
def test_turns_describe_themselves(case: Described) -> None:
    """Each turn says in one short line what the model will say."""
    words = str(as_turn(case.turn))  # type: ignore[arg-type]  # the table holds what a script writer may write

    assert words == case.words


@dataclass(frozen=True, kw_only=True)
class Impossible:
    """Something that no script can say, and the whole error."""

    make: Callable[[], object]
    error: str


NO_STEP = (
    "\n  fix       use say(text), think(text), call(tool, ...), fail(status), hang(seconds), garbage(body), "
    "or a list of them for one turn"
)
BESIDE = "\n  fix       put the other steps into a separate turn; for a failure that a retry overcomes, use fail(500, times=1)"
CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)

IMPOSSIBLE = (
    Impossible(make=lambda: say(3), error="say() takes a string; got int 3."),  # type: ignore[arg-type]
    Impossible(make=lambda: think(None), error="think() takes a string; got NoneType None."),  # type: ignore[arg-type]
    Impossible(make=lambda: garbage(b"x"), error="garbage() takes a string; got bytes b'x'."),  # type: ignore[arg-type]
    Impossible(make=lambda: call(""), error="the first argument of call() must be the name of a tool; got str ''."),
    Impossible(
        make=lambda: call("a", x={1}),
        error="the arguments of call('a', ...) cannot be written as JSON: "
        "Object of type set is not JSON serializable.\n"
        "  seen      {'x': {1}}\n"
        "  fix       use strings, numbers, booleans, None, lists and dicts, or call_raw() for text that is not JSON",
    ),
    Impossible(
        make=lambda: call("a", x=CIRCLE),
        error="the arguments of call('a', ...) cannot be written as JSON: Circular reference detected.\n"
        "  seen      {'x': [[...]]}\n"
        "  fix       use strings, numbers, booleans, None, lists and dicts, or call_raw() for text that is not JSON",
    ),
    Impossible(
        make=lambda: call_raw("a", {}),  # type: ignore[arg-type]
        error="call_raw() takes a string; got dict {}.",
    ),
    Impossible(
        make=lambda: unoffered(say("x")),  # type: ignore[arg-type]
        error="unoffered() takes a call, such as unoffered(call('nope')); got Say Say(text='x').",
    ),
    Impossible(make=lambda: fail(200), error="fail() takes an HTTP error status from 400 to 599; got int 200."),
    Impossible(make=lambda: fail(600), error="fail() takes an HTTP error status from 400 to 599; got int 600."),
    Impossible(
        make=lambda: fail("500"),  # type: ignore[arg-type]
        error="fail() takes an HTTP error status from 400 to 599; got str '500'.",
    ),
    Impossible(
        make=lambda: fail(500, times=0),
        error="fail(times=...) takes an integer from 1, or None for always; got int 0.",
    ),
    Impossible(make=lambda: hang(-1), error="hang() takes a finite number of seconds from 0; got int -1."),
    Impossible(make=lambda: hang(float("nan")), error="hang() takes a finite number of seconds from 0; got float nan."),
    Impossible(make=turn, error="a turn needs at least one step, such as say('done')."),
    Impossible(make=lambda: as_turn([]), error="a turn needs at least one step, such as say('done')."),
    Impossible(
        make=lambda: as_turn(3),  # type: ignore[arg-type]
        error="a turn is made of steps; got int 3." + NO_STEP,
    ),
    Impossible(make=lambda: turn("a", "b"), error="a turn has at most one say step; got say 'a' + say 'b'."),
    Impossible(
        make=lambda: turn(fail(500), "b"),
        error="fail 500 is a complete answer, so only hang() can be combined with it; got fail 500 + say 'b'." + BESIDE,
    ),
    Impossible(
        make=lambda: turn(empty_choices(), garbage("x")),
        error="empty choices is a complete answer, so only hang() can be combined with it; got empty choices + garbage 'x'."
        + BESIDE,
    ),
)


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=lambda case: case.error[:40])
def test_impossible_steps_are_refused_when_they_are_written(case: Impossible) -> None:
    """What no model could say fails where it is written, with what was seen and what to do."""
    with pytest.raises(ScriptError) as caught:
        case.make()

    assert str(caught.value) == case.error
