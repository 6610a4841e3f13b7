"""Tells secrets by the names of what holds them: variables of the environment, fields, headers, parameters of a URL."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

MIN_KNOWN = 8
"""Characters. A shorter value, such as "none", occurs in ordinary text."""
LONG_KEY = 24
_CREDENTIAL_NAME = re.compile(
    r"(?:key|token|auth|sig|signature|secret|openai-(?:organization|project)|.*-token)", re.IGNORECASE
)
_SECRET_FIELD = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|apikey|secret(?:[_-]key)?|access[_-]?key|private[_-]?key|client[_-]?secret|passwd|password"
    r"|auth[_-]?token|access[_-]?token|refresh[_-]?token|authorization|(?:set-)?cookie)",
    re.IGNORECASE,
)
_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|DSN)", re.IGNORECASE
)
_DUMMY = re.compile(
    r"(?:not|un)?[-_ ]?(?:needed|required|used|set)|(?:dummy|fake|mock|test|example|sample|local|placeholder|your|my)"
    r"(?:[-_ ](?:api|auth|hf|openai))?[-_ ]?(?:key|token|secret|password|value)?(?:[-_ ]here)?|password|changeme|change-me|x+|\*+|disabled",
    re.IGNORECASE,
)
"""What people set where a key is required and none is needed; such words occur in ordinary text."""


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the variables with names of secrets: those of at least `MIN_KNOWN` characters that are not dummies.

    Of a value with several lines, or with a JSON object (the credentials of a service account), the parts that are secrets by
    themselves are values, too.
    """
    found = {}
    for name in filter(_is_secret_variable, environ):
        for number, part in enumerate(dict.fromkeys(_parts(environ[name].strip()))):
            if len(part) >= MIN_KNOWN and not _DUMMY.fullmatch(part):
                found[f"{name}.{number}" if number else name] = part
    return found


@functools.lru_cache(maxsize=1024)
def _is_secret_variable(name: str) -> bool:
    return _SECRET_VARIABLE.fullmatch(name) is not None


def _parts(value: str) -> Iterator[str]:
    yield value
    if value.startswith("{"):
        try:
            document = json.loads(value)
        except (ValueError, RecursionError):  # a value that only begins like JSON is one secret
            return
        yield from (item for key, item in document.items() if is_secret_name(key) and isinstance(item, str))
    elif "\n" in value:
        yield from (line for line in value.splitlines() if len(line) >= LONG_KEY and "-----" not in line)


def secrets_sent(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials in a request's URL and headers, by name, whatever they look like.

    Short words without a digit, such as "not-needed", are dummies for servers that require any key, not secrets.
    """
    parts = urlsplit(url)
    fields = [("url-user", parts.password or ""), *parse_qsl(parts.query)]
    fields += [(name.lower(), value) for name, value in headers.items()]
    found = {}
    for name, value in fields:
        if name == "url-user" or is_secret_name(name) or _CREDENTIAL_NAME.fullmatch(name):
            scheme, _, rest = value.partition(" ")
            secret = rest if rest and scheme.isalpha() else value
            if len(secret) >= LONG_KEY or (len(secret) >= MIN_KNOWN and any(map(str.isdigit, secret))):
                found[name.replace(":", "-")] = secret
    return found


def is_secret_name(name: str) -> bool:
    """Return whether the value of a field with this name is a secret."""
    return bool(_SECRET_FIELD.fullmatch(name))
