"""Writes what vLLM's tool-call parsers make of the corpus, one file per format beside this one.

Run it in an environment of its own, never in the project's: vLLM is no dependency. vLLM needs no GPU for this::

    python -m venv vllm-only && vllm-only/bin/pip install vllm
    vllm-only/bin/python tests/data/vllm_parsers/regenerate.py

A whole installation is large. This much was enough for vLLM 0.33: `pip install --no-deps vllm`, then torch, and by the names in
vLLM's own metadata: transformers, regex, openai, mistral-common, ijson, partial-json-parser, numpy, pydantic, msgspec, cloudpickle,
psutil, pyzmq, cachetools, fastapi, aiohttp, cbor2, oss-harmony, pybase64, prometheus_client, py-cpuinfo, uvloop, and without their
dependencies xgrammar and apache-tvm-ffi.

Each line of a file is one output: its kind, its text, the content and the calls [name, arguments, id] that vLLM returned (the id only
for Kimi, and only where the model itself wrote it). A line without calls and content means that the text came back unchanged.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from corpus import outputs
from formats import FORMATS, TOOLS, Format

HERE = Path(__file__).parent


class Vocabulary:
    """All that vLLM's parsers ask of a tokenizer for whole texts: which special tokens there are."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}

    def get_vocab(self) -> dict[str, int]:
        return self._ids


def answer(form: Format, text: str) -> dict[str, Any]:
    """What vLLM makes of one output."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], tools=TOOLS, tool_choice="auto")
    parser = ToolParserManager.get_tool_parser(form.vllm)(Vocabulary(form.vocabulary), request.tools)
    found = parser.extract_tool_calls(text, request)
    calls = [[call.function.name, call.function.arguments] for call in found.tool_calls]
    if form.vllm == "kimi_k2":
        ids = [call.id if call.id in text else None for call in found.tool_calls]
        calls = [[*pair, call_id] for pair, call_id in zip(calls, ids, strict=True)]
    is_unchanged = not calls and found.content == text
    return {} if is_unchanged else {"content": found.content, "calls": calls}


def main() -> None:
    """Write all files."""
    import vllm

    logging.disable(logging.CRITICAL)  # vLLM logs a traceback for every malformed call
    for form in FORMATS:
        lines = [json.dumps({"vllm": vllm.__version__, "format": form.name})]
        lines += [
            json.dumps({"kind": kind, "text": text, **answer(form, text)}, ensure_ascii=False) for kind, text in outputs(form)
        ]
        (HERE / f"{form.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(form.name, len(lines) - 1)


if __name__ == "__main__":
    main()
