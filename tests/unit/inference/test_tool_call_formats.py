"""Tool calls as the model families write them."""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.inference import call, call_raw
from pytest_hermes_env.inference.tool_call_formats import CALL_FORMATS, call_format

CALLS = (call("terminal", command='say "é"\n', timeout=5), call_raw("read_file", '{"path": '))
HERMES = """\
<tool_call>
{"name": "terminal", "arguments": {"command": "say \\"é\\"\\n", "timeout": 5}}
</tool_call>
<tool_call>
{"name": "read_file", "arguments": {"path": }
</tool_call>"""
LLAMA = '{"name": "terminal", "parameters": {"command": "say \\"é\\"\\n", "timeout": 5}}; {"name": "read_file", "parameters": {"path": }'
WRITTEN = {
    "hermes": HERMES,
    "qwen": HERMES,
    "longcat": HERMES.replace("tool_call>", "longcat_tool_call>"),
    "mistral": '[TOOL_CALLS][{"name": "terminal", "arguments": {"command": "say \\"é\\"\\n", "timeout": 5}, "id": "call00002"}, '
    '{"name": "read_file", "arguments": {"path": , "id": "call00003"}]',
    "llama3_json": LLAMA,
    "llama4_json": LLAMA,
    "deepseek_v3": """\
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>terminal
```json
{"command": "say \\"é\\"\\n", "timeout": 5}
```<｜tool▁call▁end｜>
<｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file
```json
{"path":\x20
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>""",
    "deepseek_v3_1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>terminal<｜tool▁sep｜>{"command": "say \\"é\\"\\n", "timeout": 5}'
    '<｜tool▁call▁end｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": <｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.terminal:2<|tool_call_argument_begin|>"
    '{"command": "say \\"é\\"\\n", "timeout": 5}<|tool_call_end|><|tool_call_begin|>functions.read_file:3'
    '<|tool_call_argument_begin|>{"path": <|tool_call_end|><|tool_calls_section_end|>',
    "glm45": """\
<tool_call>terminal
<arg_key>command</arg_key>
<arg_value>say "é"
</arg_value>
<arg_key>timeout</arg_key>
<arg_value>5</arg_value>
</tool_call>
<tool_call>read_file
{"path":\x20
</tool_call>""",
    "glm47": """\
<tool_call>terminal<arg_key>command</arg_key><arg_value>say "é"
</arg_value><arg_key>timeout</arg_key><arg_value>5</arg_value></tool_call>
<tool_call>read_file{"path": </tool_call>""",
    "qwen3_coder": """\
<tool_call>
<function=terminal>
<parameter=command>
say "é"

</parameter>
<parameter=timeout>
5
</parameter>
</function>
</tool_call>
<tool_call>
<function=read_file>
{"path":\x20
</function>
</tool_call>""",
}
WRITTEN["deepseek_v31"] = WRITTEN["deepseek_v3_1"]


@pytest.mark.parametrize("name", CALL_FORMATS)
def test_every_family_writes_calls_in_its_own_format(name: str) -> None:
    """Two calls of one turn, the second with malformed arguments, after two calls in earlier turns."""
    text = CALL_FORMATS[name](CALLS, 2)

    assert text == WRITTEN[name]


def test_an_unknown_family_is_named_with_the_known_ones() -> None:
    """A misspelt format says what there is."""
    with pytest.raises(UsageError) as caught:
        call_format("hermess")

    assert str(caught.value) == (
        "the mock model has no tool-call format 'hermess'.\n"
        "  known     hermes, qwen, longcat, mistral, llama3_json, llama4_json, deepseek_v3, deepseek_v3_1, deepseek_v31, "
        "kimi_k2, glm45, glm47, qwen3_coder"
    )
