from pytest_hermes_env.cassette.replay_errors import differences
from pytest_hermes_env.cassette.tape import ModelRequest

TOOL = {"type": "function", "function": {"name": "terminal", "parameters": {"properties": {"command": {"type": "string"}}}}}
CHANGED = {"type": "function", "function": {"name": "terminal", "parameters": {"properties": {"command": {"type": "object"}}}}}
USER = {"role": "user", "content": "hello"}


def _request(path="/chat/completions", **body):
    return ModelRequest(method="POST", path=path, body=body, body_kind="json")


def test_each_difference_is_one_line_with_both_values():
    """Fields, messages and tools are compared by name, at the place inside of them that differs."""
    call = {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    recorded = _request(messages=[USER, {"role": "assistant", "tool_calls": [call]}], tools=[TOOL], seed=1)
    other_call = {**call, "function": {"name": "terminal", "arguments": "{ }"}}
    seen = _request("/x", messages=[USER, {"role": "assistant", "tool_calls": [other_call]}, USER], tools=[CHANGED])

    assert differences(recorded, seen) == [
        'the endpoint: recorded "POST /chat/completions", now "POST /x"',
        'message 2 (assistant), tool_calls[0].function.arguments: recorded "{}", now "{ }"',
        'the schema of tool `terminal`, parameters.properties.command.type: recorded "string", now "object"',
        "seed: recorded 1, now <nothing>",
        'message 3 (user): recorded <nothing>, now {"role": "user", "content": "hello"}',
    ]


def test_no_more_than_five_differences_are_listed():
    """The others are counted."""
    lines = differences(_request(tools=[TOOL], **dict.fromkeys("abcde", 1)), _request(**dict.fromkeys("abcde", 2)))

    assert lines == [
        'the tools: recorded "terminal", now <nothing>',
        'the schema of tool `terminal`: recorded {"name": "terminal", "parameters": {"properties": {"command": {"type": "string"}…, '
        "now <nothing>",
        *(f"{name}: recorded 1, now 2" for name in "abc"),
        "and 2 more",
    ]
