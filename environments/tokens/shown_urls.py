"""Removes credentials from the URLs in a text that is shown: user, password, and parameters such as ``api_key``."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)[^/\s\"'?#]+(?=@)")
_PARAMETER = re.compile(
    r"(?i)([?&](?:[\w-]*[_-])?(?:api[_-]?key|key|token|auth|sig|signature|secret|password|credential)=)[^&#\s\"']+"
)


def without_credentials(text: str) -> str:
    """Return a text with ``***`` for the user and password of its URLs, and for parameters that are named like secrets."""
    return _PARAMETER.sub(r"\1***", _USER.sub("***", text))
