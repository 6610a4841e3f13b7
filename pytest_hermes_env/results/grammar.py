"""What can follow what in a rollout: each function adds one step to a story, or says why no loop could do that.

Source: the order of things in ``HermesAgentLoop.run``: a model call, its tool calls, all their answers, the next model call; an
answer without a call is the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pytest_hermes_env.errors import ResultError, shorten
from pytest_hermes_env.results.expression import METHODS, call_source, expression
from pytest_hermes_env.results.inputs import read_arguments, read_failure, read_result, read_text, read_tool_name, why_bad
from pytest_hermes_env.results.values import Answer, Call, Story, Turn

__all__ = ["also", "call", "end", "offering", "raises", "returns", "say", "system", "think", "user", "why_not_whole"]


def system(story: Story, text: object) -> Story:
    """Add the system prompt."""
    _not_begun(story, "system")
    if story.system is not None or story.users:
        raise _impossible(
            story, "system(...) cannot follow: a conversation begins with its one system message.", "put it first"
        )
    return replace(story, system=read_text("system", text))


def user(story: Story, text: object) -> Story:
    """Add a user message."""
    _not_begun(story, "user")
    return replace(story, users=(*story.users, read_text("user", text)))


def offering(story: Story, names: tuple[object, ...]) -> Story:
    """Name the tools of the rollout."""
    tools = frozenset(read_tool_name("offering", name) for name in names)
    if missing := sorted(story.called("valid", "bad") - tools):
        raise _impossible(
            story,
            f"offering(...) leaves out {', '.join(missing)}, which this rollout calls.",
            "name every tool that is called; a call of one that is not offered is unknown_tool(...)",
        )
    if known := sorted(story.called("unknown") & tools):
        raise _impossible(
            story,
            f"offering(...) names {', '.join(known)}, which is unknown in this rollout.",
            "leave it out, or use call(...)",
        )
    return replace(story, offered=tools)


def think(story: Story, text: object) -> Story:
    """Add reasoning to the turn that follows."""
    _may_speak(story, "think")
    if story.thought is not None:
        raise _impossible(
            story,
            "think(...) cannot follow think(...): a turn has one reasoning text.",
            "join the texts, or let a turn stand between",
        )
    return replace(story, thought=read_text("think", text))


def say(story: Story, text: object) -> Story:
    """Add the text of a turn; with no call after it, it is the answer that ends the loop."""
    _may_speak(story, "say")
    turn = Turn(thought=story.thought, text=read_text("say", text))
    return replace(story, turns=(*story.turns, turn), thought=None)


def call(
    story: Story, kind: Literal["valid", "unknown", "bad"], tool: object, raw: object, arguments: dict[str, object]
) -> Story:
    """Add a tool call to the turn that is still open for calls, or else to a new one."""
    method = METHODS[kind]
    name = tool if kind == "unknown" and tool == "" else read_tool_name(method, tool)
    made = Call(kind=kind, tool=str(name), arguments=read_arguments(method, raw, arguments))
    if kind == "valid" and raw is not None and (reason := why_bad(made.arguments)):
        raise ResultError(
            f"the arguments of call({name!r}, ...) are no JSON object: {reason}.\n"
            f"  seen      {shorten(repr(made.arguments))}\n"
            f"  fix       bad_arguments({name!r}, text) makes the call whose arguments cannot be read"
        )
    if kind == "bad" and not why_bad(made.arguments):
        raise ResultError(
            f"the arguments of bad_arguments({name!r}, ...) are fine: the loop would run the tool.\n"
            f"  seen      {shorten(repr(made.arguments))}\n"
            f"  fix       call({name!r}, ...).returns(...)"
        )
    _is_offered(story, made)
    return _add_call(story, made)


def also(story: Story) -> Story:
    """Let the next call belong to the last turn."""
    last = story.last
    if last is None or not last.calls or story.thought is not None or story.joins or story.end is not None:
        raise _impossible(
            story,
            "also() has no call to join: it stands after a call or its answer, once.",
            "agent_result.unknown_tool('nope').also().call('terminal', command='ls').returns(...)",
        )
    return replace(story, joins=True)


def returns(story: Story, results: tuple[object, ...]) -> Story:
    """Answer the first calls that have no answer, in order."""
    if not results:
        raise ResultError("returns() takes the result of the call: an object or a text; it was given none.")
    for result in results:
        story = _answer(story, "returns", read_result(result))
    return story


def raises(story: Story, error: object) -> Story:
    """Let the first call that has no answer raise."""
    return _answer(story, "raises", Answer(failure=read_failure(error)))


def end(story: Story, how: Literal["server_error", "turn_limit"]) -> Story:
    """End the rollout without an answer."""
    method = "server_error" if how == "server_error" else "hit_turn_limit"
    _may_speak(story, method)
    if story.thought is not None:
        raise _impossible(
            story,
            f"{method}() cannot follow think(...): reasoning comes with a turn, and here is none.",
            "leave think(...) out",
        )
    return replace(story, end=how)


def why_not_whole(story: Story) -> str:
    """Return what a story lacks that is not whole, or an empty text."""
    if story.unanswered:
        waiting = call_source(story.unanswered[0])
        return _message(
            story,
            f"{waiting} has no result: the loop answers every call before it ends.",
            "add .returns({...}) or .raises(...)",
        )
    if story.thought is not None:
        return _message(
            story, "think(...) has no turn: reasoning comes with what the model says.", "add .say(...) or .call(...)"
        )
    if story.joins:
        return _message(story, "also() has no call to add.", "add .call(...)")
    return ""


def _add_call(story: Story, made: Call) -> Story:
    if story.end is not None:
        what = f"{call_source(made)} cannot follow: {_ENDS[story.end]}."
        raise _impossible(story, what, "put the call before the end")
    last = story.last
    if last is not None and (not last.calls or story.joins or _is_open(last)):
        joined = replace(last, calls=(*last.calls, made))
        return replace(story, turns=(*story.turns[:-1], joined), joins=False)
    _all_answered(story, METHODS[made.kind])
    turn = Turn(thought=story.thought, calls=(made,))
    return replace(story, turns=(*story.turns, turn), thought=None)


def _is_open(turn: Turn) -> bool:
    """Tell whether calls may still join a turn: it waits for results, and none was given yet."""
    return any(call.is_unanswered for call in turn.calls) and all(call.answer is None for call in turn.calls)


def _answer(story: Story, method: str, answer: Answer) -> Story:
    last = story.last
    if story.joins:
        raise _impossible(
            story, f"{method}(...) cannot follow also(): that takes a call.", "add .call(...), or leave also() out"
        )
    if last is None or not story.unanswered:
        raise _impossible(
            story,
            f"{method}(...) has no call to answer: no call of this rollout waits for a result.",
            "put .call('tool', ...) before it",
        )
    place = next(place for place, call in enumerate(last.calls) if call.is_unanswered)
    calls = (*last.calls[:place], replace(last.calls[place], answer=answer), *last.calls[place + 1 :])
    return replace(story, turns=(*story.turns[:-1], replace(last, calls=calls)))


def _is_offered(story: Story, made: Call) -> None:
    if made.kind != "unknown" and story.offered is not None and made.tool not in story.offered:
        raise _impossible(
            story,
            f"{call_source(made)} names a tool that is not offered: {', '.join(sorted(story.offered)) or 'none is'}.",
            f"name it in offering(...), or use unknown_tool({made.tool!r}, ...)",
        )
    if made.kind != "unknown" and made.tool in story.called("unknown"):
        raise _impossible(
            story,
            f"{call_source(made)} names a tool that was unknown before; a rollout's tools do not change.",
            "use another name",
        )
    known = story.called("valid", "bad") if story.offered is None else story.offered
    if made.kind == "unknown" and made.tool in known:
        raise _impossible(
            story, f"{call_source(made)} names a tool of this rollout: the loop would run it.", f"use call({made.tool!r}, ...)"
        )


_ENDS = {"server_error": "the server failed, which ended the loop", "turn_limit": "the turn limit ended the loop"}


def _may_speak(story: Story, method: str) -> None:
    """Raise unless the next model call can come now."""
    if story.end is not None:
        what = f"{method}(...) cannot follow: {_ENDS[story.end]}."
        raise _impossible(story, what, f"put {method}(...) before the end, or leave it out")
    if story.is_answered:
        raise _impossible(
            story,
            f"{method}(...) cannot follow: an answer without a tool call ended the loop.",
            "add the call to that answer, as in .say('I look first').call('terminal', command='ls'), or leave one of them out",
        )
    if story.joins:
        raise _impossible(
            story, f"{method}(...) cannot follow also(): that takes a call.", "add .call(...), or leave also() out"
        )
    _all_answered(story, method)


def _all_answered(story: Story, following: str) -> None:
    if story.unanswered:
        raise _impossible(
            story,
            f"{following}(...) cannot follow: {call_source(story.unanswered[0])} has no result, "
            "and the loop answers every call before it goes on.",
            "add .returns({...}) or .raises(...); what the model says beside a call stands before it",
        )


def _not_begun(story: Story, method: str) -> None:
    if story.turns or story.end is not None or story.thought is not None:
        raise _impossible(
            story,
            f"{method}(...) cannot follow: the loop adds no {method} message to a conversation.",
            f"put {method}(...) before the first turn",
        )


def _impossible(story: Story, what: str, fix: str) -> ResultError:
    return ResultError(_message(story, what, fix))


def _message(story: Story, what: str, fix: str) -> str:
    return f"{what}\n  so far    {shorten(expression(story))}\n  fix       {fix}"
