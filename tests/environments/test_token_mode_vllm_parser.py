"""vLLM's parsers in place of ours, with a double of vLLM's modules: vLLM itself is not a dependency."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from environments.tokens.chat_template import ChatTemplate
from environments.tokens.model_reply import ReplyReader, VllmProblem, VllmToolCallParser, check_parser

TOOLS = [{"type": "function", "function": {"name": "look"}}]


class Request:
    """Stands for ChatCompletionRequest."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Parser:
    """Reads ``CALL name``; keeps what it was made with."""

    made: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        self.made.append((tokenizer, tools))

    def extract_tool_calls(self, text: str, request: Any) -> Any:
        if text == "broken":
            raise RuntimeError("no")
        content, _, name = text.partition("CALL ")
        if not name:
            return SimpleNamespace(tools_called=False, tool_calls=[], content=text)
        call = SimpleNamespace(id="c1", function=SimpleNamespace(name=name, arguments="{}"))
        return SimpleNamespace(tools_called=True, tool_calls=[call], content=content)


class OldParser(Parser):
    """Parsers of earlier versions do not ask for the tools."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)


class Manager:
    """Stands for ToolParserManager."""

    parsers: ClassVar[dict[str, type]] = {"mine": Parser, "old": OldParser}

    @classmethod
    def get_tool_parser(cls, name: str) -> type:
        return cls.parsers[name]


@pytest.fixture(params=[0, 1], ids=["today's layout", "earlier layout"])
def vllm(request, monkeypatch) -> None:
    """vLLM's modules, where they are today or where they were."""
    parsers, protocol = [
        ("vllm.tool_parsers", "vllm.entrypoints.openai.chat_completion.protocol"),
        ("vllm.entrypoints.openai.tool_parsers", "vllm.entrypoints.openai.protocol"),
    ][request.param]
    monkeypatch.setattr(Parser, "made", [])
    for name, content in ((parsers, {"ToolParserManager": Manager}), (protocol, {"ChatCompletionRequest": Request})):
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
        for depth in range(1, name.count(".") + 1):
            package = ".".join(name.split(".")[:depth])
            if package not in sys.modules:
                monkeypatch.setitem(sys.modules, package, ModuleType(package))
                sys.modules[package].__path__ = []


@pytest.mark.usefixtures("vllm")
def test_content_and_calls_are_vllms():
    """The parser sees text and tools."""
    content, calls = VllmToolCallParser("mine", "tokenizer").parse("I look. CALL look", TOOLS)

    assert (content, [(call.id, call.function.name) for call in calls]) == ("I look. ", [("c1", "look")])
    assert Parser.made == [("tokenizer", TOOLS)]


@pytest.mark.usefixtures("vllm")
def test_earlier_parsers_take_the_tokenizer_alone():
    """The tools came later."""
    VllmToolCallParser("old", "tokenizer").parse("CALL look", TOOLS)

    assert Parser.made == [("tokenizer", None)]


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize("text", ["just text", "broken"])
def test_text_without_a_call_is_unchanged(text, caplog):
    """Also where vLLM's parser fails, which is logged."""
    assert VllmToolCallParser("mine", "tokenizer").parse(text, TOOLS) == (text, None)
    assert [record.getMessage() for record in caplog.records] == (
        ["vLLM's parser 'mine' failed; the reply is taken as text: 'broken'"] if text == "broken" else []
    )


@pytest.mark.usefixtures("vllm")
def test_unknown_parser_is_an_error():
    """With vLLM's own reason."""
    with pytest.raises(VllmProblem, match=r"^vLLM has no tool-call parser 'nope' that can be used here: 'nope'$"):
        VllmToolCallParser("nope", "tokenizer")


@pytest.mark.usefixtures("vllm")
def test_prefix_chooses_vllms_parser():
    """``vllm:mine`` in a reply reader; its calls become dicts."""
    check_parser("vllm:mine", "tokenizer")

    reply = ReplyReader(ChatTemplate(SimpleNamespace()), "vllm:mine").read("hm CALL look", end="", tools=TOOLS)

    assert reply.calls == [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    assert reply.content == "hm "


def test_unknown_parser_of_ours_is_an_error():
    """The way to vLLM's is named."""
    with pytest.raises(ValueError, match=r"or \"vllm:<name>\" for one of vLLM's where vLLM is installed$"):
        check_parser("nope", "tokenizer")
