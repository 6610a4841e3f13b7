"""Builds AgentResults for tests of reward functions: valid by construction, as the agent loop would leave them.

Each method gives a new, longer result; a result at hand is never changed by building on it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import ResultError, shorten
from pytest_hermes_env.results import grammar
from pytest_hermes_env.results.expression import expression
from pytest_hermes_env.results.outcome import outcome
from pytest_hermes_env.results.result_classes import FIELDS, ResultLayer, default_layer, layer_from
from pytest_hermes_env.results.values import Story

__all__ = ["Result", "agent_result", "story_of"]


class Result:
    """What a rollout left, and what can still be added to it.

    A result that a loop could leave as it stands **is** an AgentResult of the layer, with its fields. One that cannot yet (a
    call without its result, reasoning without its turn) says so when a field is read.

    Raises, in every method: a step that cannot follow, or an argument that no rollout has → ResultError.
    """

    _story: Story | None
    _layer: ResultLayer | None

    if TYPE_CHECKING:
        messages: list[dict[str, Any]]
        managed_state: dict[str, Any] | None
        turns_used: int
        finished_naturally: bool
        reasoning_per_turn: list[str | None]
        tool_errors: list[Any]

    def system(self, text: str) -> Result:
        """Add the system prompt; it comes first."""
        __tracebackhide__ = True
        return self._then(grammar.system, text)

    def user(self, text: str) -> Result:
        """Add a user message, before the first turn. Without one, the user said "…"."""
        __tracebackhide__ = True
        return self._then(grammar.user, text)

    def offering(self, *tools: str) -> Result:
        """Name the rollout's tools, for what an unknown tool is told.

        Without it: those of hermes' terminal and file toolsets, and those that are called.
        """
        __tracebackhide__ = True
        return self._then(grammar.offering, tools)

    def think(self, text: str) -> Result:
        """Add reasoning to the turn that follows; an empty text is no reasoning."""
        __tracebackhide__ = True
        return self._then(grammar.think, text)

    def say(self, text: str) -> Result:
        """Add what the model says: the final answer, or the prose of a message whose calls follow."""
        __tracebackhide__ = True
        return self._then(grammar.say, text)

    def call(self, tool: str, raw: str | None = None, /, **arguments: Any) -> Result:
        """Add a tool call; several before the first `returns` are parallel calls of one turn.

        ``raw`` is the arguments' JSON text, where its very spelling matters.
        """
        __tracebackhide__ = True
        return self._then(grammar.call, "valid", tool, raw, arguments)

    def returns(self, *results: Mapping[str, Any] | str) -> Result:
        """Answer the calls that wait, in order: a text as it is, an object as JSON text."""
        __tracebackhide__ = True
        return self._then(grammar.returns, results)

    def raises(self, error: Exception | type[Exception]) -> Result:
        """Let the tool of the first call that waits raise."""
        __tracebackhide__ = True
        return self._then(grammar.raises, error)

    def unknown_tool(self, tool: str, raw: str | None = None, /, **arguments: Any) -> Result:
        """Add a call of a tool that is not offered, with what the loop answers; joins a turn whose calls wait, like `call`."""
        __tracebackhide__ = True
        return self._then(grammar.call, "unknown", tool, raw, arguments)

    def bad_arguments(self, tool: str, raw: str, /) -> Result:
        """Add a call whose arguments are no JSON object, with what the loop answers; joins a turn whose calls wait."""
        __tracebackhide__ = True
        return self._then(grammar.call, "bad", tool, raw, {})

    def also(self) -> Result:
        """Let the next call belong to the last turn, although all its calls are answered."""
        __tracebackhide__ = True
        return self._then(grammar.also)

    def server_error(self) -> Result:
        """End with a model call that failed: the turn counts, and leaves nothing."""
        __tracebackhide__ = True
        return self._then(grammar.end, "server_error")

    def hit_turn_limit(self) -> Result:
        """End because the turns are used up: nothing more can follow."""
        __tracebackhide__ = True
        return self._then(grammar.end, "turn_limit")

    def with_nodes(self, tokenizer: Any) -> Result:
        """Add the state that token mode leaves: nodes of tokens, masks and logprobs. ``tokenizer``: loaded, or its directory."""
        __tracebackhide__ = True
        from pytest_hermes_env.results.nodes import checked_tokenizer  # noqa: PLC0415 - only where it is used

        return _made(dataclasses.replace(self._told(), tokenizer=checked_tokenizer(tokenizer)), self._layer)

    def of(self, environment: Any) -> Result:
        """Make it the AgentResult of the layer below ``environment``, a class or an instance.

        Raises: not an environment → BadTarget.
        """
        __tracebackhide__ = True
        return _made(self._told(), layer_from(environment))

    def build(self) -> Any:
        """Return a plain AgentResult of the layer, with fields of its own."""
        __tracebackhide__ = True
        layer = self._layer or default_layer()
        story = self._told()
        if not _can_be_left(story, layer):
            raise ResultError(_why_not(story, layer))
        return layer.agent_result(**outcome(story, layer.tool_error))

    def _then(self, step: Callable[..., Story], *arguments: Any) -> Result:
        __tracebackhide__ = True
        return _made(step(self._told(), *arguments), self._layer)

    def _told(self) -> Story:
        """Return the story so far. Raises: the fields were changed since → ResultError."""
        __tracebackhide__ = True
        if self._story is None or (isinstance(self, _Finished) and not self._is_as_told()):
            raise ResultError(
                "this result was changed after it was built, so nothing can be built on it.\n"
                f"  seen      {shorten(repr(self))}\n"
                "  fix       build the whole rollout first, then change the fields"
            )
        return self._story


class _Unfinished(Result):
    """A result that no loop leaves as it stands, and the empty one that everything begins with."""

    def __init__(self, story: Story, layer: ResultLayer | None) -> None:
        self._story, self._layer = story, layer

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name not in FIELDS:
            raise AttributeError(f"a result that is being built has no attribute {name!r}")
        raise ResultError(_why_not(self._told(), self._layer or default_layer()) or _NOTHING_YET)

    def __repr__(self) -> str:
        return expression(self._told(), layer=self._layer.shown if self._layer else "")


_NOTHING_YET = "agent_result is empty: nothing has happened yet.\n  fix       begin with .say(...), .call(...) or .user(...)"


class _Finished(Result):
    """A result that is an AgentResult; `_class_for` joins it with the layer's own class."""

    _plain: type[Any]
    _story: Story | None = None
    _layer: ResultLayer | None = None

    def _is_as_told(self) -> bool:
        """Tell whether the fields are still those of the story; a copy with replaced fields has no story."""
        if self._story is None:
            return False
        told = outcome(self._story, (self._layer or default_layer()).tool_error)
        return all(getattr(self, name) == value for name, value in told.items())

    def __eq__(self, other: object) -> bool:
        """Compare field by field, also with an AgentResult that was not built."""
        if not isinstance(other, self._plain):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._field_names())

    __hash__ = None  # type: ignore[assignment]  # equal by fields that can change

    def __repr__(self) -> str:
        if self._story is not None and self._is_as_told():
            return expression(self._story, layer=self._layer.shown if self._layer else "")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._field_names())
        return f"{self._plain.__qualname__}({shown})"

    def _field_names(self) -> list[str]:
        return [field.name for field in dataclasses.fields(self._plain)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._plain, dict(vars(self)))


def _made(story: Story, layer: ResultLayer | None) -> Result:
    """Return the story as a result: an AgentResult as soon as a loop could leave it."""
    found = layer or default_layer()
    if not _can_be_left(story, found):
        return _Unfinished(story, layer)
    result: Result = _class_for(found.agent_result)(**outcome(story, found.tool_error))
    vars(result).update(_story=story, _layer=layer)
    return result


def _can_be_left(story: Story, layer: ResultLayer) -> bool:
    return story.is_whole and not _hides_a_call(story, layer)


def _why_not(story: Story, layer: ResultLayer) -> str:
    """Return why no loop of the layer leaves this, or an empty text."""
    if not _hides_a_call(story, layer):
        return grammar.why_not_whole(story)
    return (
        "the answer holds a tool call as text, which the loop reads and runs: no rollout ends with it.\n"
        f"  seen      {shorten(repr(story.turns[-1].text))}\n"
        "  fix       .call('tool', ...).returns(...); or add the calls that stand beside this text"
    )


def _hides_a_call(story: Story, layer: ResultLayer) -> bool:
    """Tell whether the answer holds a call as text. A rollout without tools is not searched for them."""
    text = story.turns[-1].text if story.is_answered else None
    return bool(text) and story.offered != frozenset() and layer.reads_calls_in(text or "")


def story_of(result: Result) -> Story:
    """Return what a result was told. Raises: its fields were changed since → ResultError."""
    return result._told()  # noqa: SLF001 - a function of the same module


@functools.cache
def _class_for(plain: type) -> Any:
    return type("BuiltResult", (_Finished, plain), {"_plain": plain, "__module__": __name__})


def _restored(plain: type, state: dict[str, Any]) -> Any:
    """Return a copied or unpickled result."""
    result = object.__new__(_class_for(plain))
    vars(result).update(state)
    return result


agent_result: Result = _Unfinished(Story(), None)
"""The empty result that every other is built from."""
