"""Writes what the model families' own chat templates make of the conversations: one JSON file per template of the mock model.

    pip install --no-deps trl==1.16.0
    pip install mistral-common==1.13.1
    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36
    python tests/data/chat_templates/regenerate.py llama_cpp_python-0.3.36.tar.gz

The templates stay in these packages (Apache-2.0; llama.cpp: MIT); the files hold only the texts of our conversations.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from conversations import CONVERSATIONS, rendered
from transformers import AutoTokenizer

from pytest_hermes_env.inference import build_tokenizer

TRL = {
    "qwen3": "qwen3.jinja",
    "qwen3_5": "qwen3_5_think.jinja",
    "llama3": "llama3_1.jinja",
    "deepseek_r1": "deepseekv3.jinja",
    "glm": "glm4moe.jinja",
}


GLM47 = "vendor/llama.cpp/models/templates/GLM-4.7-Flash.jinja"


def main(llama_cpp: str) -> None:
    spec = importlib.util.find_spec("trl")
    assert spec is not None, "install trl first"
    templates = Path(str(spec.origin)).with_name("chat_templates")
    real = {name: (templates / file).read_text(encoding="utf-8") for name, file in TRL.items()} | {"mistral": mistral()}
    with tarfile.open(llama_cpp) as archive:
        (file,) = [archive.extractfile(member) for member in archive if member.name.endswith(GLM47)]
        assert file is not None
        real["glm47"] = file.read().decode()
    for name, source in real.items():
        with tempfile.TemporaryDirectory() as directory:
            tokenizer = AutoTokenizer.from_pretrained(build_tokenizer(directory, template=name))
        texts = {title: rendered(tokenizer, one, source) for title, one in CONVERSATIONS.items()}
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def mistral() -> str:
    """Return the template of Mistral's tokenizers of version 7 (Mistral Small 3)."""
    from mistral_common.integrations.chat_templates.template_generator import TemplateConfig, build_chat_template
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    return str(build_chat_template(TemplateConfig(version=TokenizerVersion.v7)))


if __name__ == "__main__":
    main(sys.argv[1])
