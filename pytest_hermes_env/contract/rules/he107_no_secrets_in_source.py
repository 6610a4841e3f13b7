"""HE107 no-secrets-in-source
API keys, tokens and passwords come from the environment, never from the source.

What: No string in the environment's files has the format of a known key (OpenAI, OpenRouter, Anthropic, Hugging Face,
GitHub, Google, AWS, Slack, sandboxes, payments, ...), and nothing named key, token, secret or password is set to a string that looks random.
Placeholders ("", "x", "none", "EMPTY", "sk-your-key") and `os.environ` are fine.

Why: Source is committed, copied into logs, images and datasets, and read by other people's agents. A key in it is
public from then on: scanners find it within minutes, and deleting the line does not delete it from the history.

Fix: Write `api_key=os.environ.get("OPENROUTER_API_KEY", "")`, and revoke the key that was in the file.

Source: The key formats of `pytest_hermes_env.redaction`, as the providers document them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Finding, Rule, Severity, Verdict
from pytest_hermes_env.redaction.key_shapes import KEY_SHAPES, RANDOM_BITS, entropy
from pytest_hermes_env.source import ClassSource, Module, constant_value, finding_at, sorted_findings

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api_?keys?|apikey|secret(?:_?key)?|access_?(?:key|token)|auth_?token|bearer_?token|password|passwd|private_?key|"
    r"(?:hf|wandb|github|openai|openrouter|anthropic)_?(?:key|token))$",
    re.IGNORECASE,
)
_NAMED = re.compile(rb"key|token|secret|passw", re.IGNORECASE)
_HINTS = re.compile("|".join(sorted({re.escape(hint) for shape in KEY_SHAPES for hint in shape.hints if len(hint) > 1})))
_HINTS_IN_A_FILE = re.compile(rb"%b|[\"'](?:sk|hf|gh)[\"']" % _HINTS.pattern.encode())
"""What a file must hold for a closer look to be worth its time: the start of a key, also where a key is put together."""
_PLACEHOLDER = re.compile(
    r"your|example|placeholder|dummy|changeme|change-me|replace|insert|xxx|\.\.\.|<|>|\$\{|redacted|fake|mock|test|not[-_ ]?needed|"
    r"empty|none|todo|\*{3}|(.)\1{7}|0123456|12345678|abcdef",
    re.IGNORECASE,
)
_SHORTEST = 16


def static(source: ClassSource) -> Verdict:
    """Look at every text of the files that the class and its bases stand in."""
    findings = [finding for module in source.modules for finding in _in_module(source, module)]
    return Verdict.of(sorted_findings(findings), "no string looks like a key")


def _in_module(source: ClassSource, module: Module) -> Iterator[Finding]:
    where = next(item for item in source.readable if item.module is module)
    seen: set[int] = set()
    may_be_named, may_have_shape = _NAMED.search(module.text), _HINTS_IN_A_FILE.search(module.text)
    for node in ast.walk(module.tree) if may_be_named else ():
        for name, value in _named_values(node):
            if _SECRET_NAME.search(name) and (text := _text_of(value, module)) and _looks_random(text) and not _shape(text):
                seen.add(value.lineno)
                yield finding_at(where, value, f"{name} is set to a string that looks like a real secret ({_start(text)})")
    for node in ast.walk(module.tree) if may_have_shape else ():
        text = _whole_text(node, module)
        what = _shape(text) if text else ""
        if what and getattr(node, "lineno", 0) not in seen:
            seen.add(getattr(node, "lineno", 0))
            yield finding_at(where, node, f"this string looks like {what}")


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of every place that gives a value a name: keywords, assignments, dict entries, defaults."""
    if isinstance(node, ast.Call):
        yield from ((word.arg, word.value) for word in node.keywords if word.arg)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"get", "getenv", "setdefault", "putenv"} and len(node.args) > 1:
            yield _word(node.args[0]), node.args[1]
    elif isinstance(node, ast.Assign):
        yield from ((_target(target), node.value) for target in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield _target(node.target), node.value
        if isinstance(node.value, ast.Call):  # api_key: str = Field(default="...")
            defaults = [*node.value.args[:1], *(word.value for word in node.value.keywords if word.arg == "default")]
            yield from ((_target(node.target), value) for value in defaults)
    elif isinstance(node, ast.Dict):
        yield from ((_word(key), value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)
    elif isinstance(node, ast.arguments):
        every = [*node.posonlyargs, *node.args]
        yield from ((item.arg, value) for item, value in zip(every[::-1], node.defaults[::-1], strict=False))
        yield from ((item.arg, value) for item, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value)


def _target(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _word(node.slice)
    return node.id if isinstance(node, ast.Name) else ""


def _word(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _text_of(node: ast.expr, module: Module) -> str:
    value = constant_value(node, module)
    return value if isinstance(value, str) else ""


def _whole_text(node: ast.AST, module: Module) -> str:
    if isinstance(node, ast.Constant):
        value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        return value if isinstance(value, str) else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not isinstance(node.left, ast.BinOp):
        whole = constant_value(node, module)
        return whole if isinstance(whole, str) else ""
    return ""


def _shape(text: str) -> str:
    """Return what known key a text holds, placeholders left out."""
    if len(text) < _SHORTEST or not _HINTS.search(text):
        return ""
    for shape in KEY_SHAPES:
        for start, end in shape.spans(text):
            found = text[start:end]
            if "PRIVATE KEY" in found or (not _PLACEHOLDER.search(found) and _is_mixed(found)):
                what = shape.kind.replace("-", " ")
                return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
    return ""


def _is_mixed(text: str) -> bool:
    """Whether a key's body has letters and digits, as random ones do and words joined by hyphens do not."""
    body = re.split(r"[-_]", text, maxsplit=1)[-1]
    return any(char.isdigit() for char in body) and any(char.isalpha() for char in body) and entropy(body) >= RANDOM_BITS


def _looks_random(text: str) -> bool:
    if len(text) < _SHORTEST or re.search(r"\s", text) or _PLACEHOLDER.search(text) or text.startswith(("http", "/", ".")):
        return False
    return _is_mixed(f"-{text}")


def _start(text: str) -> str:
    return f"{text[:3]}…, {len(text)} characters"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, holds_for_base_env=True)
