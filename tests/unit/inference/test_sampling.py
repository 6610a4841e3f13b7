"""The step that says how a turn is sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference import MockServer, call, garbage, sampled, say, turn
from pytest_hermes_env.inference.steps import Sampled

Ask = Callable[..., httpx.Response]


@dataclass(frozen=True, kw_only=True)
class Impossible:
    """What cannot be sampled, and the error that says so."""

    make: Callable[[], object]
    error: str


IMPOSSIBLE = (
    Impossible(make=lambda: sampled(end=1), error="sampled(end=...) takes True or False; got int 1."),  # type: ignore[arg-type]
    Impossible(
        make=lambda: sampled(wrong_id="x"),  # type: ignore[arg-type]
        error="sampled(wrong_id=...) takes True or False; got str 'x'.",
    ),
    Impossible(
        make=lambda: sampled(broken_utf8=None),  # type: ignore[arg-type]
        error="sampled(broken_utf8=...) takes True or False; got NoneType None.",
    ),
    Impossible(
        make=lambda: sampled(drift=-1),
        error="sampled(drift=...) takes an integer from 0, or True for one token; got int -1.",
    ),
    Impossible(
        make=lambda: sampled(max_tokens=0),
        error="sampled(max_tokens=...) takes an integer from 1, or None for no limit; got int 0.",
    ),
    Impossible(
        make=lambda: sampled(logprobs="some"),  # type: ignore[arg-type]
        error="sampled(logprobs=...) takes one of all, short, null, missing; got str 'some'.",
    ),
    Impossible(
        make=lambda: turn("a", sampled(), sampled(end=False)),
        error="a turn has at most one sampled step; got say 'a' + sampled (default) + sampled (end=False).",
    ),
    Impossible(
        make=lambda: turn(garbage("x"), sampled(end=False)),
        error="garbage 'x' is a complete answer, so only hang() can be combined with it; got garbage 'x' + sampled (end=False).\n"
        "  fix       put the other steps into a separate turn; for a failure that a retry overcomes, use fail(500, times=1)",
    ),
)


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=lambda case: case.error[:40])
def test_what_cannot_be_sampled_is_refused_when_it_is_written(case: Impossible) -> None:
    """A wrong value fails where the script is written, with what was expected and seen."""
    with pytest.raises(ScriptError) as caught:
        case.make()

    assert str(caught.value) == case.error


def test_a_step_describes_what_is_unusual() -> None:
    """Errors and the journal name only what differs from an ordinary answer; True is a drift of one token."""
    described = [str(sampled()), str(sampled(drift=True, logprobs="short")), str(turn("ok", sampled(end=False, max_tokens=3)))]

    assert (described, sampled(drift=True)) == (
        ["sampled (default)", "sampled (drift=1, logprobs='short')", "say 'ok' + sampled (end=False, max_tokens=3)"],
        Sampled(drift=1),
    )


def test_chat_mode_pays_no_heed(ask: Ask) -> None:
    """A script for token mode says the same in chat mode, where there are no tokens."""
    plain, odd = turn(say("ok"), call("terminal", command="ls")), sampled(end=False, drift=1, logprobs="missing", max_tokens=1)
    with MockServer([plain]) as one, MockServer([turn(*plain.steps, odd)]) as other:
        answers = [ask(server).json() for server in (one, other)]

    assert answers[0] == answers[1]
