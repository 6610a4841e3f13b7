"""Texts that are cheap to write and could be dear to read: pieces that are repeated until a size is reached."""

# ruff: noqa: RUF001 - DeepSeek's tokens hold a full-width bar

from __future__ import annotations

SECTION = "<｜tool▁calls▁begin｜>"
CALL = "<｜tool▁call▁begin｜>"

ANYWHERE = {
    "braces": "{",
    "brackets": "[",
    "quotes": '"',
    "backslashes": "\\",
    "keys": '{"a":',
    "keys in strings": '{"',
    "alternating strings": '{"{":":",',
    "escaped quotes": '{"\\"',
    "lists": '{"a":[',
    "objects": '{"a":1}',
    "opened thoughts": "<think>",
    "closed thoughts": "</think>",
    "thoughts": "<think>x</think>",
    "spaces": " ",
    "angles": "<",
}
"""Name -> piece, for every format."""

OF_FORMAT = {
    "hermes": {
        "opening tags": "<tool_call>",
        "unclosed objects": '<tool_call>{"name": "a", "arguments": {"b":',
        "unclosed strings": '<tool_call>{"name": "',
        "spaces": "<tool_call>        ",
        "broken calls": '<tool_call>{"name": "a", "arguments": {}},</tool_call>',
        "calls": '<tool_call>{"name": "a", "arguments": {}}</tool_call>',
    },
    "longcat": {"opening tags": "<longcat_tool_call>", "unclosed": '<longcat_tool_call>{"name": "'},
    "mistral": {
        "markers": "[TOOL_CALLS]",
        "arrays": "[TOOL_CALLS][",
        "broken arrays": '[TOOL_CALLS][{"name": "a", "arguments": {}}, {bad}',
        "one broken array": ',{"name": "a", "arguments": {"b": [{',
        "names": "[TOOL_CALLS]a",
        "unclosed": '[TOOL_CALLS]a{"b":',
        "long name": "a",
        "calls": "[TOOL_CALLS]a{}",
    },
    "llama3_json": {
        "unclosed calls": '{"name": "a", "parameters": {"b": "c',
        "nested calls": '{"name": "a", "parameters": ',
        "calls": '{"name": "a", "parameters": {}}; ',
        "tags": "<|python_tag|>",
    },
    "deepseek_v3": {
        "sections": SECTION,
        "calls begun": SECTION + CALL + "function<｜tool▁sep｜>",
        "headers": f"{SECTION}{CALL}function<｜tool▁sep｜>a\n```json\n",
        "unclosed": f'{SECTION}{CALL}function<｜tool▁sep｜>a\n```json\n{{"b":',
    },
    "deepseek_v3_1": {
        "calls begun": SECTION + CALL,
        "headers": f"{SECTION}{CALL}a<｜tool▁sep｜>",
        "unclosed": f'{SECTION}{CALL}a<｜tool▁sep｜>{{"b":',
    },
    "kimi_k2": {
        "calls begun": "<|tool_calls_section_begin|><|tool_call_begin|>",
        "headers": "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>",
        "colons": "<|tool_calls_section_begin|><|tool_call_begin|>:1:1:1",
        "one id": "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    },
    "glm45": {
        "opening tags": "<tool_call>",
        "names": "<tool_call>a",
        "keys": "<tool_call>a<arg_key>",
        "values": "<tool_call>a<arg_key>b</arg_key><arg_value>",
        "arguments": "<arg_key>b</arg_key><arg_value>c</arg_value>",
        "calls": "<tool_call>a<arg_key>b</arg_key><arg_value>c</arg_value></tool_call>",
    },
    "qwen3_coder": {
        "opening tags": "<tool_call>",
        "functions": "<function=",
        "names": "<function=a",
        "parameters": "<function=a><parameter=b>",
        "values": "<parameter=b>",
        "unclosed": "<function=a><parameter=b>c</parameter>",
        "calls": "<tool_call><function=a><parameter=b>c</parameter></function></tool_call>",
    },
}
"""Name of a parser -> name -> piece."""

BEFORE = {
    ("mistral", "one broken array"): "[TOOL_CALLS][{bad}",
    ("mistral", "long name"): "[TOOL_CALLS]",
    ("glm45", "arguments"): "<tool_call>a",
    ("qwen3_coder", "values"): "<function=a>",
}
"""What stands once before the pieces."""


def hostile_text(parser: str, name: str, piece: str, size: int) -> str:
    """A text of about ``size`` characters."""
    return BEFORE.get((parser, name), "") + piece * (size // len(piece) + 1)


def all_pieces() -> list[tuple[str, str, str]]:
    """(parser, name, piece) of all that is tried."""
    own = [(parser, name, piece) for parser, pieces in OF_FORMAT.items() for name, piece in pieces.items()]
    return [*own, *((parser, name, piece) for parser in OF_FORMAT for name, piece in ANYWHERE.items())]
