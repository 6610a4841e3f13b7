"""Scripts: which conversations they are for, and what cannot be one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference import Script, call, say, turn
from pytest_hermes_env.inference.script import When, as_scripts

if TYPE_CHECKING:
    from collections.abc import Callable


def starts_with_a(text: str) -> bool:
    """Return whether the text starts with an a."""
    return text.startswith("a")


def policy(_: object) -> str:
    """Return a turn, as a script function does."""
    return "done"


@dataclass(frozen=True, kw_only=True)
class Match:
    """A ``when``, a message it is for, one it is not for, and its words."""

    when: When
    words: str
    yes: str
    no: str | None


MATCHES = (
    Match(when=None, words="any conversation", yes="", no=None),
    Match(when="file a", words="first user message contains 'file a'", yes="write file a now", no="write file b"),
    Match(when=re.compile("^x+$"), words="first user message matches '^x+$'", yes="xx", no="axx"),
    Match(when=starts_with_a, words="starts_with_a(first user message) is true", yes="abc", no="bca"),
)


@pytest.mark.parametrize("case", MATCHES, ids=lambda case: case.words)
def test_when_chooses_conversations_by_their_first_user_message(case: Match) -> None:
    """A script is for the conversations that its ``when`` names, and says which these are."""
    script = Script(["x"], when=case.when)

    seen = (script.matches(case.yes), case.no is not None and script.matches(case.no), script.describe_when())

    assert seen == (True, False, case.words)


def test_a_script_lists_its_turns() -> None:
    """The description numbers the turns from 1, as errors show them."""
    script = Script([call("terminal", command="ls"), [say("a"), call("b")], "done"])

    assert script.describe() == "1. call terminal(command='ls')   2. say 'a' + call b()   3. say 'done'"


@pytest.mark.parametrize("written", ["done", say("done"), turn("done"), ["done"], (say("done"),), [["done"]]])
def test_one_turn_may_be_written_without_a_list(written: object) -> None:
    """Text, a step, a turn and lists of them all make the same script."""
    made = as_scripts(written)  # type: ignore[arg-type]  # the table holds what a script writer may write

    assert made == (Script([say("done")]),)


def test_several_scripts_and_functions_stand_side_by_side() -> None:
    """A list of scripts and functions is several scripts, in order."""
    made = as_scripts([Script(["a"], when="a"), policy])

    assert made == (Script(["a"], when="a"), Script(policy))


def broken(_: str) -> bool:
    """Fail, as a predicate with a mistake does."""
    raise KeyError("x")


async def slow(_: object) -> str:
    """Return a turn, but not at once."""
    return "done"


@dataclass(frozen=True, kw_only=True)
class Impossible:
    """Something that is no script, and the whole error."""

    make: Callable[[], object]
    error: str


IMPOSSIBLE = (
    Impossible(make=lambda: Script([]), error="a script needs at least one turn, such as Script([say('done')])."),
    Impossible(
        make=Script,
        error="a script needs turns, or a judge.\n"
        "  fix       Script([call('terminal', command='ls'), say('done')]), or Script(judge='0.5') to answer judge questions only",
    ),
    Impossible(
        make=lambda: Script([], judge="0.5"),
        error="a script needs at least one turn, such as Script([say('done')]).",
    ),
    Impossible(
        make=lambda: Script(3),  # type: ignore[arg-type]
        error="a script must be a list of turns or a function of the conversation; got int 3.\n"
        "  fix       Script([call('terminal', command='ls'), say('done')])",
    ),
    Impossible(
        make=lambda: Script(slow),  # type: ignore[arg-type]
        error="a script must be a plain function of the conversation; got the async function slow.\n"
        "  fix       def script(conversation): return say('done')",
    ),
    Impossible(
        make=lambda: Script(["x"], judge=int),  # type: ignore[arg-type]
        error="a judge must be a plain function of the conversation; got the class int.\n"
        "  fix       def judge(conversation): return say('done')",
    ),
    Impossible(
        make=lambda: Script(["x"], when=7),  # type: ignore[arg-type]
        error="`when` must be a string, a compiled pattern or a predicate on the first user message; got int 7.",
    ),
    Impossible(
        make=lambda: Script(["x"], name=""),
        error="the name of a script must be a non-empty string; got str ''.",
    ),
    Impossible(
        make=lambda: as_scripts([Script(["x"]), "y"]),
        error="a list holds either turns or scripts, not both.\n"
        "  seen      str 'y' next to a script\n"
        "  fix       wrap the turns: [Script([...]), Script([...])]",
    ),
    Impossible(
        make=lambda: Script(["x"], when=broken).matches("hello"),
        error="the `when` predicate broken raised KeyError: 'x'.\n  seen      first user message 'hello'",
    ),
)


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=lambda case: case.error[:40])
def test_what_is_no_script_is_refused(case: Impossible) -> None:
    """A wrong script fails where it is written, with what was seen and what to do."""
    with pytest.raises(ScriptError) as caught:
        case.make()

    assert str(caught.value) == case.error
