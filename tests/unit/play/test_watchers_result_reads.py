"""A result that records what it is asked for and does not have."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.play.journal import UnknownRead, recording
from pytest_hermes_env.play.watchers.result_reads import with_recorded_reads

from .bare import AgentResult, bare_layer
from .small_env import line_of


def read(act: Any) -> tuple[list[Any], list[Any]]:
    """Return the events of reading from a result, and the error."""
    (result,), _ = with_recorded_reads((AgentResult(messages=["hello"]),), {}, bare_layer())
    errors: list[Any] = []
    with recording() as journal:
        try:
            act(result)
        except (AttributeError, TypeError) as error:
            errors.append(str(error))
    return journal.events, errors


def attribute(result: Any) -> Any:
    """Read what older layers have."""
    return result.final_response


def guarded(result: Any) -> Any:
    """Read it with a default."""
    return getattr(result, "final_response", None)


def subscript(result: Any) -> Any:
    """Take it for a dict."""
    return result["messages"]


@pytest.mark.parametrize(
    ("act", "name", "is_guarded", "errors"),
    [
        (attribute, "final_response", False, ["'AgentResult' object has no attribute 'final_response'"]),
        (guarded, "final_response", True, []),
        (subscript, "['messages']", False, ["'AgentResult' object is not subscriptable"]),
    ],
    ids=["attribute", "guarded", "subscript"],
)
def test_an_unknown_read_is_recorded(act: Any, name: str, is_guarded: bool, errors: list[str]) -> None:
    """With its line; the error is Python's own."""
    events, raised = read(act)

    assert [(event.name, event.guarded, event.place.line) for event in events] == [(name, is_guarded, line_of(act, "return"))]
    assert (isinstance(events[0], UnknownRead), raised) == (True, errors)


def test_what_a_result_has_is_read_without_a_record() -> None:
    """Also what Python looks for by itself."""
    events, raised = read(lambda result: (result.messages, hasattr(result, "__array__"), repr(result)))

    assert (events, raised) == ([], [])


def test_a_result_is_equal_in_all_it_has() -> None:
    """Its class is a subclass of the same name; other arguments are left alone, and a recording result is kept."""
    original = AgentResult(messages=["hello"])
    (item, result), fields = with_recorded_reads(({"a": 1}, original), {"ctx": None}, bare_layer())
    (again,), _ = with_recorded_reads((result,), {}, bare_layer())

    assert (item, fields, vars(result)) == ({"a": 1}, {"ctx": None}, vars(original))
    assert (isinstance(result, AgentResult), type(result).__name__, again is result) == (True, "AgentResult", True)
