"""The results that a reward is tried on: every form of transcript that a rollout can return, the smallest first.

They are built with `agent_result`, so ``repr`` is source for a test. Forms that this layer's loop never returns, but other layers
and recorded data hold (content that is None or a list of parts), are derived from them and marked.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NOTHING_SAID = "I do not know."
LONG = 20_000
"""Characters of a long text."""

UNICODE = "naïve 🦀 漢字 \u202eabc \ud7ff \u0000 é̂"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A result with a name. ``is_foreign``: see `record.Probe`."""

    name: str
    result: Any
    is_foreign: bool = False

    @property
    def expression(self) -> str:
        """Python source that makes the result."""
        return repr(self.result)


JSON_ANSWERS = {
    "a JSON list": '["yes", 1, null]',
    "a JSON text": '"yes"',
    "a JSON object without keys": "{}",
    "a JSON object of nulls": '{"answer": null, "score": null, "result": null}',
    "a JSON list in a code block": "Here it is:\n```json\n[[1, 2], {}]\n```",
}
"""Answers that parse, and are not what a reward expects."""


def candidates(start: Any, tool: str, arguments: dict[str, Any], claim: str = "") -> Iterator[Candidate]:
    """Yield results, plain ones first; ``tool`` is one that the environment offers, ``arguments`` are valid for it.

    ``claim`` is an answer in the form that the reward reads, so that it does not stop at "there is no answer".
    """
    done = start.call(tool, **arguments).returns({"output": "hello", "exit_code": 0})
    yield Candidate(name="an answer and no tool call", result=start.say(NOTHING_SAID))
    yield Candidate(name="a tool call and an answer", result=done.say("The task is done."))
    yield Candidate(name="an empty answer", result=start.say(""))
    yield Candidate(name="a server error in the first turn", result=start.server_error())
    yield Candidate(name="a server error after a tool call", result=done.server_error())
    yield Candidate(name="the turn limit, without an answer", result=done.hit_turn_limit())
    yield Candidate(name="malformed arguments", result=start.bad_arguments(tool, '{"command": ').say("Sorry."))
    for text in ("null", '"ls"', "[1]"):
        name = f"arguments that are not an object but {text}"
        yield Candidate(name=name, result=start.bad_arguments(tool, text).say("Sorry."))
    yield Candidate(name="an unknown tool", result=start.unknown_tool("no_such_tool", value=1).say("Sorry."))
    yield Candidate(
        name="a tool result that is not JSON", result=start.call(tool, **arguments).returns("not JSON").say("Done.")
    )
    yield Candidate(name="an empty tool result", result=start.call(tool, **arguments).returns("").say("Done."))
    yield Candidate(name="a tool that raised", result=start.call(tool, **arguments).raises(RuntimeError("no")).say("Sorry."))
    yield Candidate(name="two tool calls in one turn", result=two_calls(start, tool, arguments))
    yield Candidate(name="an answer with unusual characters", result=start.say(UNICODE))
    yield Candidate(name="a long answer", result=start.say("long " * (LONG // 5)))
    yield Candidate(name="an answer that looks like a number", result=start.say("nan"))
    yield Candidate(name="an answer that is broken JSON", result=start.say('{"score": '))
    for name, text in JSON_ANSWERS.items():
        yield Candidate(name=f"an answer that is {name}", result=start.say(text))
    if claim:
        yield Candidate(name="an answer in the form that the reward reads", result=done.say(claim))
    answered = plain(start.say(NOTHING_SAID))
    for name, content in (("None", None), ("a list of parts", [{"type": "text", "text": NOTHING_SAID}])):
        changed = copy.deepcopy(answered)
        changed.messages[-1]["content"] = content
        yield Candidate(name=f"content that is {name}", result=changed, is_foreign=True)


def two_calls(start: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """Return a rollout with two independent calls in one turn."""
    first = {"output": "hello", "exit_code": 0}
    second = {"output": "there", "exit_code": 0}
    return start.call(tool, **arguments).call(tool, **arguments).returns(first, second).say("The task is done.")


def plain(result: Any) -> Any:
    """Return a copy as a plain, mutable AgentResult of its layer, whose ``repr`` shows all fields."""
    cls = next(base for base in type(result).__mro__ if base.__name__ == "AgentResult")
    names = ("messages", "managed_state", "turns_used", "finished_naturally", "reasoning_per_turn", "tool_errors")
    return cls(**{name: copy.deepcopy(getattr(result, name)) for name in names})
