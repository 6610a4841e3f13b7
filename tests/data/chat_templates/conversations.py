"""Conversations that a chat template renders in an agent's rollout, and the parts of the rendered text that are compared."""

from __future__ import annotations

from typing import Any

__all__ = ["CONVERSATIONS", "after_the_tools", "rendered"]

Message = dict[str, Any]

TOOL = {
    "type": "function",
    "function": {
        "name": "ls",
        "description": "List.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Look at é."}
MORE = {"role": "user", "content": "And now?"}
DONE = {"role": "assistant", "content": "Done."}
IDS = ("call00001", "call00002", "call00003")


def calls(*arguments: Any, content: str = "", first: int = 0) -> Message:
    made = [
        {"id": IDS[number], "type": "function", "function": {"name": "ls", "arguments": one}}
        for number, one in enumerate(arguments, first)
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def result(number: int, text: str) -> Message:
    return {"role": "tool", "tool_call_id": IDS[number], "name": "ls", "content": text}


CALL, TEXT_CALL = calls({"path": "/é", "deep": True}), calls('{"path": "/é", "deep": true}')
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nDone."}
REASONED = {"role": "assistant", "content": "Done.", "reasoning_content": "hm"}
THOUGHT_CALL = {**TEXT_CALL, "content": "<think>\nhm\n</think>\n\n"}

CONVERSATIONS: dict[str, dict[str, Any]] = {
    "a question": {"messages": [SYSTEM, USER], "prompt": True},
    "a question without a system message": {"messages": [USER], "prompt": True},
    "a question without thinking": {"messages": [SYSTEM, USER], "prompt": True, "options": {"enable_thinking": False}},
    "an answer": {"messages": [SYSTEM, USER, DONE]},
    "an answer with spaces around it": {"messages": [SYSTEM, USER, {"role": "assistant", "content": "  Done. "}]},
    "two questions in a row": {"messages": [SYSTEM, USER, MORE], "prompt": True},
    "a second question": {"messages": [SYSTEM, USER, DONE, MORE], "prompt": True},
    "a later system message": {"messages": [SYSTEM, USER, DONE, {"role": "system", "content": "Hurry."}, MORE], "prompt": True},
    "a thought": {"messages": [SYSTEM, USER, THOUGHT]},
    "a thought as a field": {"messages": [SYSTEM, USER, REASONED]},
    "an earlier thought": {"messages": [SYSTEM, USER, THOUGHT, MORE], "prompt": True},
    "a thought before a call": {"messages": [SYSTEM, USER, THOUGHT_CALL, result(0, "a")], "prompt": True},
    "a call": {"messages": [SYSTEM, USER, CALL]},
    "a call with its arguments as text": {"messages": [SYSTEM, USER, TEXT_CALL]},
    "a call after text": {"messages": [SYSTEM, USER, {**TEXT_CALL, "content": "I look."}, result(0, "a")], "prompt": True},
    "a result": {"messages": [SYSTEM, USER, CALL, result(0, "a")], "prompt": True},
    "a result of several lines": {"messages": [SYSTEM, USER, TEXT_CALL, result(0, "é\n\n<b>\n")], "prompt": True},
    "two calls": {"messages": [SYSTEM, USER, calls({}, {"path": "/"}), result(0, "a"), result(1, "b")], "prompt": True},
    "two calls with their arguments as text": {
        "messages": [SYSTEM, USER, calls("{}", '{"path": "/"}'), result(0, "a"), result(1, "b")],
        "prompt": True,
    },
    "two rounds": {"messages": [SYSTEM, USER, CALL, result(0, "a"), calls({}, first=1), result(1, "b")], "prompt": True},
    "an answer after a result": {"messages": [SYSTEM, USER, TEXT_CALL, result(0, "a"), DONE]},
    "a question after a result": {"messages": [SYSTEM, USER, TEXT_CALL, result(0, "a"), DONE, MORE], "prompt": True},
    "a question in place of an answer": {"messages": [SYSTEM, USER, TEXT_CALL, result(0, "a"), MORE], "prompt": True},
}
CONVERSATIONS |= {f"{name}, with tools": {**one, "tools": [TOOL]} for name, one in CONVERSATIONS.items()}


def rendered(tokenizer: Any, conversation: dict[str, Any], chat_template: str | None = None) -> str | None:
    """Return the text of a conversation, from the end of the tool descriptions on; None when the template refuses it."""
    try:
        text = tokenizer.apply_chat_template(
            conversation["messages"],
            tools=conversation.get("tools"),
            chat_template=chat_template,
            tokenize=False,
            add_generation_prompt=conversation.get("prompt", False),
            **conversation.get("options", {}),
        )
    except Exception:  # noqa: BLE001 -- Jinja passes on whatever an operation in a template raises
        return None
    return after_the_tools(str(text)) if conversation.get("tools") else str(text)


def after_the_tools(text: str) -> str:
    """Return the text from the message with the first question on: how tools are described to a model is each project's own words."""
    return text[text.index(USER["content"]) :]
