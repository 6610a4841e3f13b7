"""Secrets to plant, each put together from parts so that no scanner takes this file for a leak, and the forms that they may have."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

VARIABLE, KNOWN = "DEPLOY_PASSWORD", "Gk7pQ2x9" + "Zt4Lm8Rw1Yb5Nc3Vd6"
RANDOM = "Tq4WzX9cV2bN8mK1jH6gF3dS7aP5oI0uY4rE2wQ9lZ6xC3vB8n" * 3
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def _of(length: int, prefix: str) -> str:
    return prefix + RANDOM[:length]


SHAPED: Mapping[str, str] = {
    "OpenAI": _of(40, "sk-" + "proj-"),
    "OpenRouter": "sk-or-" + "v1-" + HEX,
    "Anthropic": _of(80, "sk-" + "ant-api03-"),
    "Groq": _of(48, "gsk" + "_"),
    "Hugging Face": _of(34, "hf" + "_"),
    "Weights & Biases": _of(40, "wandb" + "_v1_"),
    "Daytona": "dtn" + "_" + HEX,
    "Modal": _of(22, "as" + "-"),
    "Firecrawl": "fc" + "-" + HEX[:32],
    "Tavily": _of(32, "tvly" + "-dev-"),
    "DigitalOcean": "dop" + "_v1_" + HEX,
    "GitHub": _of(36, "ghp" + "_"),
    "GitHub, fine-grained": _of(22, "github" + "_pat_") + "_" + RANDOM[22:81],
    "GitLab": _of(20, "glpat" + "-"),
    "PyPI": _of(90, "pypi" + "-AgEIcHlwaS5vcmc"),
    "AWS": "AKIA" + "Z4WX9CV2BN8MK1JH",
    "Google": _of(35, "AIza"),
    "Azure storage": "AccountKey=" + RANDOM[:86] + "==",
    "Slack": "xoxb-" + "2401938475610-" + "2401938475610-" + RANDOM[:24],
    "SendGrid": "SG" + "." + RANDOM[:22] + "." + RANDOM[22:65],
    "Stripe": _of(24, "sk" + "_live_"),
    "Telegram": "123456789" + ":" + RANDOM[:35],
    "Discord": "M" + RANDOM[:25] + "." + RANDOM[25:31] + "." + RANDOM[31:58],
    "Twilio": "SK" + HEX[:32],
    "Databricks": "dapi" + HEX[:32],
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiI0MiJ9." + RANDOM[:43],
    "private key": "-----BEGIN " + "RSA PRIVATE KEY-----\n" + RANDOM[:64] + "\n-----END RSA PRIVATE KEY-----",
    "password in a URL": "postgres://bob:" + RANDOM[:12] + "@db.example/x",
    "bearer token": "Bearer " + RANDOM[:32],
}
"""One key of each kind, by what it opens."""

CORES: Mapping[str, str] = {
    "Azure storage": RANDOM[:86],
    "Telegram": RANDOM[:35],
    "password in a URL": RANDOM[:12],
    "bearer token": RANDOM[:32],
    "private key": RANDOM[:64],
}
"""The part that must not be shown, where it is not all of the text."""

PLAIN = "as it is"


def _every(text: str, code: str) -> str:
    return "".join(code.format(ord(letter)) for letter in text)


def _base64(before: str) -> Callable[[str], str]:
    return lambda text: base64.b64encode(f"{before}{text} and more".encode()).decode()


FORMS: Mapping[str, Callable[[str], str]] = {
    PLAIN: str,
    "base64": _base64(""),
    "base64, shifted by 1": _base64("="),
    "base64, shifted by 2": _base64("='"),
    "base64, URL-safe": lambda text: base64.urlsafe_b64encode(f"~?{text}".encode()).decode().rstrip("="),
    "base64 of base64": lambda text: _base64("=")(_base64("")(text)),
    "hexadecimal": lambda text: text.encode().hex(),
    "base64, in lines": lambda text: base64.encodebytes(f"{'and ' * 12}{text} and more".encode()).decode(),
    "UTF-16 in base64": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hexadecimal, separated": lambda text: text.encode().hex("-"),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
    "URL": lambda text: "https://x.test/?q=" + quote(text, safe=""),
    "URL, every character": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "JSON": lambda text: json.dumps({"said": text}),
    "JSON in JSON": lambda text: json.dumps({"said": json.dumps({"it": f'"{text}"'})}),
    "JSON, every character": lambda text: _every(text, "\\u{:04x}"),
    r"\x escapes": lambda text: _every(text, "\\x{:02x}"),
    "HTML": lambda text: html.escape(f"<{text}>"),
    "HTML, every character": lambda text: _every(text, "&#{:d};"),
    "cut by a colour": lambda text: f"{text[: len(text) // 2]}\x1b[31m{text[len(text) // 2 :]}",
    "cut by an invisible character": lambda text: f"{text[: len(text) // 2]}\u200b{text[len(text) // 2 :]}",
}
ONLY_KNOWN: Mapping[str, Callable[[str], str]] = {
    "UPPER CASE": str.upper,
    "lower case": str.lower,
    "its beginning": lambda text: text[:18] + "…",
    "its end": lambda text: "…" + text[-18:],
}
"""Forms in which only a value that is known can be found."""


def needle(kind: str, form: str) -> str:
    """Return what a report would contain if it showed a secret in that form: its longest word, without backslashes."""
    whole = KNOWN if kind == VARIABLE else SHAPED[kind]
    said = whole if "base64" in form else CORES.get(kind, whole)
    return max(re.split(r"(?:\x1b\[31m|[\s\"'<>:=?\u200b])+", {**FORMS, **ONLY_KNOWN}[form](said)), key=len).replace("\\", "")


def forms_of_known() -> dict[str, str]:
    """Return the known secret in every form."""
    return {name: form(KNOWN) for name, form in {**FORMS, **ONLY_KNOWN}.items()}
