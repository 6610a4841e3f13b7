"""The order of steps in a rollout: each function adds one step to a history, or raises if no loop could do that.

Source: ``HermesAgentLoop.run``: a model call, its tool calls, all their results, the next model call; an answer without a tool
call ends the loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pytest_hermes_env.errors import ResultError, shorten
from pytest_hermes_env.results.expression import METHODS, call_source, expression
from pytest_hermes_env.results.inputs import read_arguments, read_failure, read_result, read_text, read_tool_name, why_invalid
from pytest_hermes_env.results.values import Answer, Call, History, Turn


def system(history: History, text: object) -> History:
    """Add the system prompt."""
    _check_no_turn_yet(history, "system")
    if history.system is not None or history.users:
        raise _impossible(
            history, "system(...) cannot follow: a conversation begins with its one system message.", "put it first"
        )
    return replace(history, system=read_text("system", text))


def user(history: History, text: object) -> History:
    """Add a user message."""
    _check_no_turn_yet(history, "user")
    return replace(history, users=(*history.users, read_text("user", text)))


def offering(history: History, names: tuple[object, ...]) -> History:
    """Set the tools of the rollout."""
    tools = frozenset(read_tool_name("offering", name) for name in names)
    if missing := sorted(history.called("valid", "bad") - tools):
        raise _impossible(
            history,
            f"offering(...) does not name {', '.join(missing)}, which this rollout calls.",
            "name every called tool, or use unknown_tool(...) for a tool that is not offered",
        )
    if known := sorted(history.called("unknown") & tools):
        raise _impossible(
            history,
            f"offering(...) names {', '.join(known)}, which is unknown in this rollout.",
            "remove it, or use call(...)",
        )
    return replace(history, offered=tools)


def think(history: History, text: object) -> History:
    """Add reasoning to the next turn."""
    _check_turn_can_follow(history, "think")
    if history.thought is not None:
        raise _impossible(
            history,
            "think(...) cannot follow think(...): a turn has one reasoning text.",
            "join the texts, or add a turn between them",
        )
    return replace(history, thought=read_text("think", text))


def say(history: History, text: object) -> History:
    """Add the text of a turn; without a following call, it is the answer that ends the loop."""
    _check_turn_can_follow(history, "say")
    turn = Turn(thought=history.thought, text=read_text("say", text))
    return replace(history, turns=(*history.turns, turn), thought=None)


def call(
    history: History, kind: Literal["valid", "unknown", "bad"], tool: object, raw: object, arguments: dict[str, object]
) -> History:
    """Add a tool call to the last turn if that is still open for calls, else to a new one."""
    method = METHODS[kind]
    name = tool if kind == "unknown" and tool == "" else read_tool_name(method, tool)
    made = Call(kind=kind, tool=str(name), arguments=read_arguments(method, raw, arguments))
    if kind == "valid" and raw is not None and (reason := why_invalid(made.arguments)):
        raise ResultError(
            f"the arguments of call({name!r}, ...) are not a JSON object: {reason}.\n"
            f"  seen      {shorten(repr(made.arguments))}\n"
            f"  fix       for a call with unreadable arguments, use bad_arguments({name!r}, text)"
        )
    if kind == "bad" and not why_invalid(made.arguments):
        raise ResultError(
            f"the arguments of bad_arguments({name!r}, ...) are valid: the loop would run the tool.\n"
            f"  seen      {shorten(repr(made.arguments))}\n"
            f"  fix       call({name!r}, ...).returns(...)"
        )
    _check_offered(history, made)
    return _add_call(history, made)


def also(history: History) -> History:
    """Add the next call to the last turn."""
    last = history.last
    if last is None or not last.calls or history.thought is not None or history.joins or history.end is not None:
        raise _impossible(
            history,
            "also() must follow a call or its result, once.",
            "agent_result.unknown_tool('nope').also().call('terminal', command='ls').returns(...)",
        )
    return replace(history, joins=True)


def returns(history: History, results: tuple[object, ...]) -> History:
    """Add the results of the first pending calls, in order."""
    if not results:
        raise ResultError("returns() takes at least one result: an object or a string; got none.")
    for result in results:
        history = _answer(history, "returns", read_result(result))
    return history


def raises(history: History, error: object) -> History:
    """Let the first pending call raise."""
    return _answer(history, "raises", Answer(failure=read_failure(error)))


def end(history: History, how: Literal["server_error", "turn_limit"]) -> History:
    """End the rollout without an answer."""
    method = "server_error" if how == "server_error" else "hit_turn_limit"
    _check_turn_can_follow(history, method)
    if history.thought is not None:
        raise _impossible(
            history,
            f"{method}() cannot follow think(...): reasoning needs a turn, and this adds none.",
            "remove think(...)",
        )
    return replace(history, end=how)


def cut(history: History, how: Literal["cut_by_length", "aborted"]) -> History:
    """End the rollout with the last turn, which the server did not finish."""
    if history.end is not None:
        raise _impossible(history, f"{how}() cannot follow: {_ENDS[history.end]}.", f"remove {how}(), or the earlier end")
    last = history.last
    if last is None or history.thought is not None or history.joins:
        raise _impossible(
            history, f"{how}() must follow the text or the calls of the reply that it cuts.", "add .say('half a')"
        )
    if any(made.answer is not None for made in last.calls):
        raise _impossible(
            history,
            f"{how}() cannot follow the result of a call: the loop runs no call of an incomplete reply.",
            f"remove the results of the last turn, or add .say('half a').{how}()",
        )
    return replace(history, end=how)


def why_incomplete(history: History) -> str:
    """Return what an incomplete history lacks, or ""."""
    if history.pending:
        waiting = call_source(history.pending[0])
        return _message(
            history,
            f"{waiting} has no result: the loop runs every call before it ends.",
            "add .returns({...}) or .raises(...)",
        )
    if history.thought is not None:
        return _message(
            history, "think(...) has no turn: reasoning belongs to a text or a call.", "add .say(...) or .call(...)"
        )
    if history.joins:
        return _message(history, "also() has no call to add.", "add .call(...)")
    return ""


def _add_call(history: History, made: Call) -> History:
    if history.end is not None:
        what = f"{call_source(made)} cannot follow: {_ENDS[history.end]}."
        raise _impossible(history, what, "put the call before the end")
    last = history.last
    if last is not None and (not last.calls or history.joins or _is_open(last)):
        joined = replace(last, calls=(*last.calls, made))
        return replace(history, turns=(*history.turns[:-1], joined), joins=False)
    _check_no_pending_call(history, METHODS[made.kind])
    turn = Turn(thought=history.thought, calls=(made,))
    return replace(history, turns=(*history.turns, turn), thought=None)


def _is_open(turn: Turn) -> bool:
    """Return whether calls may still join a turn: it has pending calls, and no result yet."""
    return any(call.is_pending for call in turn.calls) and all(call.answer is None for call in turn.calls)


def _answer(history: History, method: str, answer: Answer) -> History:
    last = history.last
    if history.joins:
        raise _impossible(
            history, f"{method}(...) cannot follow also(), which needs a call.", "add .call(...), or remove also()"
        )
    if last is None or not history.pending:
        raise _impossible(
            history,
            f"{method}(...) has no pending call to answer.",
            "put .call('tool', ...) before it",
        )
    place = next(place for place, call in enumerate(last.calls) if call.is_pending)
    calls = (*last.calls[:place], replace(last.calls[place], answer=answer), *last.calls[place + 1 :])
    return replace(history, turns=(*history.turns[:-1], replace(last, calls=calls)))


def _check_offered(history: History, made: Call) -> None:
    if made.kind != "unknown" and history.offered is not None and made.tool not in history.offered:
        raise _impossible(
            history,
            f"{call_source(made)} names a tool that is not offered; offered: {', '.join(sorted(history.offered)) or 'none'}.",
            f"add it to offering(...), or use unknown_tool({made.tool!r}, ...)",
        )
    if made.kind != "unknown" and made.tool in history.called("unknown"):
        raise _impossible(
            history,
            f"{call_source(made)} names a tool that was unknown before; the tools of a rollout do not change.",
            "use another name",
        )
    known = history.called("valid", "bad") if history.offered is None else history.offered
    if made.kind == "unknown" and made.tool in known:
        raise _impossible(
            history,
            f"{call_source(made)} names a tool of this rollout: the loop would run it.",
            f"use call({made.tool!r}, ...)",
        )


_ENDS = {
    "server_error": "the server failed, which ended the loop",
    "turn_limit": "the turn limit ended the loop",
    "cut_by_length": "the last reply was cut by length, which ended the loop",
    "aborted": "the server aborted the last reply, which ended the loop",
}


def _check_turn_can_follow(history: History, method: str) -> None:
    """Raise unless the next model call can follow."""
    if history.end is not None:
        what = f"{method}(...) cannot follow: {_ENDS[history.end]}."
        raise _impossible(history, what, f"put {method}(...) before the end, or remove it")
    if history.is_answered:
        raise _impossible(
            history,
            f"{method}(...) cannot follow: an answer without a tool call ended the loop.",
            "add a call to that answer, as in .say('I look first').call('terminal', command='ls'), or remove one of them",
        )
    if history.joins:
        raise _impossible(
            history, f"{method}(...) cannot follow also(), which needs a call.", "add .call(...), or remove also()"
        )
    _check_no_pending_call(history, method)


def _check_no_pending_call(history: History, following: str) -> None:
    if history.pending:
        raise _impossible(
            history,
            f"{following}(...) cannot follow: {call_source(history.pending[0])} has no result, "
            "and the loop runs every call before it continues.",
            "add .returns({...}) or .raises(...); the text of a message goes before its calls",
        )


def _check_no_turn_yet(history: History, method: str) -> None:
    if history.turns or history.end is not None or history.thought is not None:
        raise _impossible(
            history,
            f"{method}(...) cannot follow: the loop adds no {method} messages later.",
            f"put {method}(...) before the first turn",
        )


def _impossible(history: History, what: str, fix: str) -> ResultError:
    return ResultError(_message(history, what, fix))


def _message(history: History, what: str, fix: str) -> str:
    return f"{what}\n  so far    {shorten(expression(history))}\n  fix       {fix}"
