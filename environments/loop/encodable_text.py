"""Makes text encodable as UTF-8: a lone surrogate in a model's reply would otherwise fail far from where it came in.

Place in the flow: `HermesAgentLoop` and `token_mode.RolloutServer` pass every text through here that enters a conversation.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from environments.loop.end import current_record

logger = logging.getLogger(__name__)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def encodable(text: str, where: str) -> str:
    """Return ``text`` with every lone surrogate replaced by U+FFFD; two halves of a character are joined.

    A change is logged and counted in the current rollout's record. ``where`` names the text in the log.
    """
    if not _SURROGATE.search(text):
        return text
    current_record().changed_texts += 1
    logger.warning("%s is not encodable as UTF-8; its lone surrogates are replaced by U+FFFD: %.200r", where, text)
    return _joined(text)


def encodable_arguments(text: str, where: str) -> str:
    r"""Return the arguments of a tool call as `encodable` does. JSON may also hide a lone surrogate in an escape (``\\ud83d``)."""
    text = encodable(text, where)
    if not _ESCAPED_SURROGATE.search(text):
        return text
    try:
        value = json.loads(text)
        written = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return json.dumps(encodable_value(value, where), ensure_ascii=False) if _SURROGATE.search(written) else text


def encodable_value(value: Any, where: str) -> Any:
    """Return a JSON value with every text in it made encodable."""
    if isinstance(value, str):
        return encodable(value, where)
    if isinstance(value, list):
        return [encodable_value(element, where) for element in value]
    if isinstance(value, dict):
        return {encodable_value(key, where): encodable_value(element, where) for key, element in value.items()}
    return value


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
