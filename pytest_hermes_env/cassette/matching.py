"""Defines when two requests are equal: by content, regardless of the host, the order of keys, and ids that change in each run.

Place in the flow: the player indexes recorded requests by their `digest`, first of the exact text, then of its `normal_form`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace

from hermes_env_shared.logprob_check import NEUTRAL
from pytest_hermes_env.cassette.tape import ModelRequest
from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.types import JsonValue

RANDOM = r"[a-z0-9_]{8}"
"""The random suffix of ``tempfile``'s names."""

ROOTS = (r"(?:/private)?(?:/var)?/tmp", r"(?:/private)?/var/folders/\w+/\w+/T", r"/dev/shm")  # noqa: S108 - compared with, not written to

TEMPORARY = (
    r"pytest-of-[^/\s\"']+/pytest-\d+(?:/popen-gw\d+)?(?:/[\w.\[\]-]+?\d+(?=[/\s\"'\\]|$))?",
    rf"tmp{RANDOM}(?![\w-])",
    rf"(?:pytest-hermes|hermes|rollout)[\w.-]*-{RANDOM}(?![\w-])",
    rf"[\w.-]*[-_.](?=[a-z_]*[0-9]){RANDOM}(?![\w-])",
    r"world(?=/)|tmp(?=/rollout-)",
)
"""Names of directories that change in each run: pytest's, Python's ``tempfile``'s and this package's."""

_CALL_ID = re.compile(r'(?:"tool_call_id":|"id":(?="[^"\\]+","type":"function"))"([^"\\]+)"')
"""Ids of tool calls. Other ids are meaningful: an argument of a tool, a customer."""
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
LOOPBACK = ("127.0.0.1:", "localhost:", "0.0.0.0:", "[::1]:")
_PORT = re.compile(r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1\]):\d{2,5}\b")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Permitted differences between a request and its recording, besides ids, ports and temporary directories.

    ``ignored``: fields of the request's body to ignore, such as ``"user"``. ``volatile``: regular expressions; matches are replaced by
    the order of their first appearance. ``compares_rewards``: whether a reward that differs from the recorded one fails the test.
    """

    ignored: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    compares_rewards: bool = True

    def __post_init__(self) -> None:
        for pattern in self.volatile:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError(
                    f"a volatile pattern of Matching is not a valid regular expression: {error}.\n"
                    f"  seen      {shorten(pattern)}\n"
                    "  fix       escape literal text, for example with re.escape"
                ) from error


def canonical(request: ModelRequest, matching: Matching) -> str:
    """Return the whole request as one text, with sorted keys."""
    return f"{request.method} {request.path} {_text(_counting(request.body, matching))}"


def without_volatile(request: ModelRequest, matching: Matching) -> ModelRequest:
    """Return a request for a message: only compared fields, and numbers in place of values that change in each run."""
    return replace(request, body=json.loads(normal_form(_text(_counting(request.body, matching)), matching)))


def _counting(body: JsonValue, matching: Matching) -> JsonValue:
    if not isinstance(body, dict):
        return body
    counting = {name: value for name, value in _without_neutral(body).items() if name not in matching.ignored}
    if isinstance(sampling := body.get("sampling_params"), dict) and "sampling_params" in counting:
        counting["sampling_params"] = _without_neutral(sampling)
    if isinstance(messages := body.get("messages"), list) and "messages" in counting:
        counting["messages"] = [_without_tool_name(message) for message in messages]
    return counting


def _without_neutral(sampling: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return sampling settings without those that cut nothing, which token mode says and older recordings do not have."""
    return {name: value for name, value in sampling.items() if name not in NEUTRAL or value != NEUTRAL[name]}


def _without_tool_name(message: JsonValue) -> JsonValue:
    """Return a tool message without its tool's name, which the call has, and which older recordings do not have."""
    if isinstance(message, dict) and message.get("role") == "tool":
        return {name: value for name, value in message.items() if name != "name"}
    return message


def _text(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def normal_form(text: str, matching: Matching) -> str:
    """Return a canonical text with its volatile parts numbered: the n-th id, directory or port of each kind."""
    for number, call_id in enumerate(dict.fromkeys(_CALL_ID.findall(text)), start=1):
        text = text.replace(f'"{call_id}"', f'"<call {number}>"')
        if len(call_id) > len("call_123"):
            text = text.replace(call_id, f"<call {number}>")
    if "/" in text:
        text = temporary_directory().sub(_numbered("directory"), text)
    if "-" in text:
        text = _UUID.sub(_numbered("uuid"), text)
    if any(host in text for host in LOOPBACK):
        text = _PORT.sub(_numbered("port"), text)
    for pattern in matching.volatile:
        text = re.sub(pattern, _numbered("volatile"), text)
    return text


def _numbered(kind: str) -> Callable[[re.Match[str]], str]:
    """Return a replacement function that numbers matches by first appearance; equal matches get equal numbers."""
    seen: dict[str, int] = {}

    def replace(found: re.Match[str]) -> str:
        return f"<{kind} {seen.setdefault(found.group(), len(seen) + 1)}>"

    return replace


@functools.cache
def temporary_directory() -> re.Pattern[str]:
    """Return the pattern of the names of temporary directories."""
    own = re.escape(tempfile.gettempdir())
    return re.compile(rf"(?:{own}|{'|'.join(ROOTS)})(?:/(?:{'|'.join(TEMPORARY)}))+")


def digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def opening_of(value: object) -> str:
    """Return the digest of a rollout's item or first messages. It is the same in every process."""
    text = json.dumps(value, sort_keys=True, default=repr, skipkeys=True)
    return digest(normal_form(_ADDRESS.sub("0x", text), Matching()))
