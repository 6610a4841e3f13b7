"""Builds AgentResults for tests of reward functions. They are valid by construction: the agent loop could have returned them.

Each method returns a new result; builders are immutable.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import ResultError, UsageError, shorten
from pytest_hermes_env.results import grammar
from pytest_hermes_env.results.expression import expression
from pytest_hermes_env.results.outcome import outcome
from pytest_hermes_env.results.result_classes import FIELDS, ResultLayer, default_layer, layer_from
from pytest_hermes_env.results.values import INCOMPLETE, History

__tracebackhide__ = True  # pytest shows the test's own line, not the builder's


class Result:
    """The result of a rollout, and a builder for more steps.

    A complete result **is** an AgentResult of the layer, with its fields. Reading a field of an incomplete one (a call without its
    result, reasoning without its turn) raises.

    Raises, in every method: a step that cannot follow, or an impossible argument → ResultError.
    """

    _history: History | None
    _layer: ResultLayer | None

    if TYPE_CHECKING:
        messages: list[dict[str, Any]]
        managed_state: dict[str, Any] | None
        turns_used: int
        finished_naturally: bool
        reasoning_per_turn: list[str | None]
        tool_errors: list[Any]

    def system(self, text: str) -> Result:
        """Add the system prompt, which must be first."""
        return self._then(grammar.system, text)

    def user(self, text: str) -> Result:
        """Add a user message, before the first turn. Without one, the user message is "…"."""
        return self._then(grammar.user, text)

    def offering(self, *tools: str) -> Result:
        """Set the rollout's tools, which the answer to an unknown tool lists.

        Default: hermes' terminal and file tools, and those that the rollout calls.
        """
        return self._then(grammar.offering, tools)

    def think(self, text: str) -> Result:
        """Add reasoning to the next turn; an empty text means none."""
        return self._then(grammar.think, text)

    def say(self, text: str) -> Result:
        """Add the model's text: the final answer, or the text of a message whose calls follow."""
        return self._then(grammar.say, text)

    def call(self, tool: str, raw: str | None = None, /, **arguments: Any) -> Result:
        """Add a tool call; several before the first `returns` are parallel calls of one turn.

        ``raw`` is the JSON text of the arguments, if its exact form matters.
        """
        return self._then(grammar.call, "valid", tool, raw, arguments)

    def returns(self, *results: Mapping[str, Any] | str) -> Result:
        """Add the results of the pending calls, in order: a string as it is, an object as JSON."""
        return self._then(grammar.returns, results)

    def raises(self, error: Exception | type[Exception]) -> Result:
        """Let the tool of the first pending call raise."""
        return self._then(grammar.raises, error)

    def unknown_tool(self, tool: str, raw: str | None = None, /, **arguments: Any) -> Result:
        """Add a call of a tool that is not offered, and the loop's answer; joins a turn with pending calls, like `call`."""
        return self._then(grammar.call, "unknown", tool, raw, arguments)

    def bad_arguments(self, tool: str, raw: str, /) -> Result:
        """Add a call whose arguments are not a JSON object, and the loop's answer; joins a turn with pending calls."""
        return self._then(grammar.call, "bad", tool, raw, {})

    def also(self) -> Result:
        """Add the next call to the last turn, although all its calls have results."""
        return self._then(grammar.also)

    def server_error(self) -> Result:
        """End with a failed model call, which counts as a turn and adds no message."""
        return self._then(grammar.end, "server_error")

    def hit_turn_limit(self) -> Result:
        """End at the turn limit: nothing can follow."""
        return self._then(grammar.end, "turn_limit")

    def cut_by_length(self) -> Result:
        """End with the last text or calls, as a reply that reached the limit of tokens: its calls did not run."""
        return self._then(grammar.cut, "cut_by_length")

    def aborted(self) -> Result:
        """End with the last text or calls, as a reply that the server aborted: its calls did not run."""
        return self._then(grammar.cut, "aborted")

    def of(self, environment: Any) -> Result:
        """Return the result as an AgentResult of the environment's layer. ``environment``: a class or an instance.

        Raises: not an environment → BadTarget.
        """
        return _result_of(self._current(), layer_from(environment))

    def build(self) -> Any:
        """Return a new plain AgentResult of the layer."""
        layer = self._layer or default_layer()
        history = self._current()
        if not _is_complete(history, layer):
            raise ResultError(_why_incomplete(history, layer))
        return layer.agent_result(**outcome(history, layer))

    def _then(self, step: Callable[..., History], *arguments: Any) -> Result:
        return _result_of(step(self._current(), *arguments), self._layer)

    def _current(self) -> History:
        """Return the steps so far. Raises: the fields were modified → ResultError."""
        if self._history is None or (isinstance(self, _Finished) and not self._is_unmodified()):
            raise ResultError(
                "this result was modified after it was built, so no step can be added.\n"
                f"  seen      {shorten(repr(self))}\n"
                "  fix       build the whole rollout first, then change the fields"
            )
        return self._history


class _Unfinished(Result):
    """An incomplete result, including the empty one."""

    def __init__(self, history: History, layer: ResultLayer | None) -> None:
        self._history, self._layer = history, layer

    def __call__(self, *_: object, **__: object) -> Any:
        __tracebackhide__ = True
        raise UsageError('agent_result is no function: a result begins with a step, such as agent_result.say("Done.")')

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, [one for one in dir(Result) if not one.startswith("_")], n=1)
            meant = f": did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"an incomplete result has no attribute {name!r}{meant}")
        raise ResultError(_why_incomplete(self._current(), self._layer or default_layer()) or _NOTHING_YET)

    def __repr__(self) -> str:
        return expression(self._current(), layer=self._layer.environment if self._layer else "")


_NOTHING_YET = "agent_result is empty: it has no steps yet.\n  fix       begin with .say(...), .call(...) or .user(...)"


class _Finished(Result):
    """A complete result; `_class_for` combines it with the layer's AgentResult."""

    _plain: type[Any]
    _history: History | None = None
    _layer: ResultLayer | None = None

    def _is_unmodified(self) -> bool:
        """Return whether the fields still match the history; a copy with replaced fields has no history."""
        if self._history is None:
            return False
        expected = outcome(self._history, self._layer or default_layer())
        return all(getattr(self, name) == value for name, value in expected.items())

    def __eq__(self, other: object) -> bool:
        """Compare field by field, also with a plain AgentResult."""
        if not isinstance(other, self._plain):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self._plain) if field.compare]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # equality depends on mutable fields

    def __repr__(self) -> str:
        if self._history is not None and self._is_unmodified():
            return expression(self._history, layer=self._layer.environment if self._layer else "")
        names = [field.name for field in dataclasses.fields(self._plain) if field.repr]
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self._plain.__qualname__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._plain, dict(vars(self)))


def _result_of(history: History, layer: ResultLayer | None) -> Result:
    """Return the result of the history: an AgentResult if it is complete."""
    found = layer or default_layer()
    if not _is_complete(history, found):
        return _Unfinished(history, layer)
    result: Result = _class_for(found.agent_result)(**outcome(history, found))
    vars(result).update(_history=history, _layer=layer)
    return result


def _is_complete(history: History, layer: ResultLayer) -> bool:
    return history.is_complete and not _has_call_as_text(history, layer) and not _lacks_end(history, layer)


def _why_incomplete(history: History, layer: ResultLayer) -> str:
    """Return why no loop of the layer could return this, or ""."""
    if _lacks_end(history, layer):
        return f"{history.end}() needs a layer that names the ends of rollouts; this one takes such a reply as complete"
    if not _has_call_as_text(history, layer):
        return grammar.why_incomplete(history)
    return (
        "the answer contains a tool call as text, which the loop parses and runs: no rollout ends with it.\n"
        f"  seen      {shorten(repr(history.turns[-1].text))}\n"
        "  fix       .call('tool', ...).returns(...); or add the calls that follow this text"
    )


def _lacks_end(history: History, layer: ResultLayer) -> bool:
    """Return whether the rollout ends in a way that the layer does not know."""
    return history.end in INCOMPLETE and layer.ends is None


def _has_call_as_text(history: History, layer: ResultLayer) -> bool:
    """Return whether the answer contains a tool call as text. Without tools, the loop does not look for one."""
    text = history.last.text if history.last is not None and not history.last.calls else None
    return bool(text) and history.offered != frozenset() and layer.reads_calls_in(text or "")


def history_of(result: Result) -> History:
    """Return the history of a result. Raises: its fields were modified → ResultError."""
    return result._current()  # noqa: SLF001 - a function of the same module


@functools.cache
def _class_for(plain: type) -> Any:
    return type("BuiltResult", (_Finished, plain), {"_plain": plain, "__module__": __name__})


def _restored(plain: type, state: dict[str, Any]) -> Any:
    """Return a copied or unpickled result."""
    result = object.__new__(_class_for(plain))
    vars(result).update(state)
    return result


agent_result: Result = _Unfinished(History(), None)
"""The empty builder, with which every result begins."""
