"""A file written by a command, as an agent writes one that has only a terminal."""

from __future__ import annotations

import base64
import re

_END = "END_OF_FILE"
_REFUSED = re.compile(
    rf"&|{_END}|\0|\r|\b(?:rm|drop|delete|truncate|chmod|chown|kill\w*|dd|mkfs|curl|wget|sudo|shutdown|reboot|halt|poweroff|init|systemctl|xargs)\b",
    re.IGNORECASE,
)
"""Words that hermes' terminal takes for those of the command, also in a here-document, and may refuse."""


def writing(place: str, text: str, *, folder: str = "") -> str:
    """Return a command that writes exactly this text. ``place`` and ``folder``, which is made, are words of the shell."""
    made = f"mkdir -p {folder} && " if folder else ""
    if text.endswith("\n") and not _REFUSED.search(text):
        return f"{made}cat > {place} << '{_END}'\n{text}{_END}"
    return f"{made}base64 -d > {place} << '{_END}'\n{base64.encodebytes(text.encode()).decode()}{_END}"
