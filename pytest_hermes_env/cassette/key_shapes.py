"""The shapes of secrets: known prefixes of API keys, and values in the places of secrets, such as headers and assignments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

__all__ = ["SHAPES", "Shape", "is_secret_name", "secrets_of", "secrets_sent"]

MIN_KNOWN = 8
LONG_KEY = 24
_CREDENTIAL_NAME = re.compile(
    r"(?:key|token|auth|sig|signature|secret|openai-(?:organization|project)|.*-token)", re.IGNORECASE
)
RANDOM_FROM, RANDOM_DIGITS, RANDOM_BITS = 12, 2, 3.0
_START = r"(?<![A-Za-z0-9])"
_NAMES = r"api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|secret|passwd|password|auth[_-]?token|access[_-]?token|token"
_SECRET_FIELD = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|apikey|secret(?:[_-]key)?|access[_-]?key|private[_-]?key|client[_-]?secret|passwd|password"
    r"|auth[_-]?token|access[_-]?token|refresh[_-]?token|authorization|(?:set-)?cookie)",
    re.IGNORECASE,
)
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One kind of secret. Group 1 of the pattern, if there is one, is the secret.

    ``hints``: a text without any of them contains no such secret. ``before``, if given, must match the text before it.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = bool
    before: re.Pattern[str] | None = None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each secret of this kind in ``text``."""
        if any(hint in text for hint in self.hints) or not self.hints:
            for found in self.pattern.finditer(text):
                group = 1 if self.pattern.groups else 0
                if self.is_secret(found[group]) and (
                    self.before is None or self.before.search(text[max(found.start() - 50, 0) : found.start()])
                ):
                    yield found.span(group)


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with names of secrets and sufficiently long values."""
    return {
        name: value for name, value in environ.items() if _SECRET_VARIABLE.fullmatch(name) and len(value.strip()) >= MIN_KNOWN
    }


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
            if len(secret) >= LONG_KEY or (len(secret) >= MIN_KNOWN and _has_digit(secret)):
                found[name.replace(":", "-")] = secret
    return found


def is_secret_name(name: str) -> bool:
    """Return whether the value of a field with this name is a secret."""
    return bool(_SECRET_FIELD.fullmatch(name))


def _looks_random(text: str) -> bool:
    """Return whether a word looks like a key: letters mixed with digits, few of them repeated."""
    digits = sum(character.isdigit() for character in text)
    if len(text) < RANDOM_FROM or digits < RANDOM_DIGITS or digits == len(text):
        return False
    counts = Counter(text).values()
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
    return entropy >= RANDOM_BITS


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _shape(kind: str, hints: str, pattern: str, is_secret: Callable[[str], bool] = bool, flags: int = 0) -> Shape:
    return Shape(kind=kind, hints=tuple(hints.split()), pattern=re.compile(pattern, flags), is_secret=is_secret)


SHAPES: tuple[Shape, ...] = (
    _shape(
        "private-key",
        "KEY----- BLOCK-----",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|.*)",
        flags=re.DOTALL,
    ),
    _shape("api-key", "sk-", _START + r"sk-(?=[\w-]*[A-Za-z0-9]{12})[A-Za-z0-9_-]{16,}", _has_digit),
    _shape("api-key", "sk_live_ sk_test_ rk_live_ whsec_", _START + r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    _shape(
        "api-key",
        "gsk_ nvapi- tvly- r8_ pplx- xai- fw_",
        _START + r"(?:gsk_|nvapi-|tvly-|r8_|pplx-|xai-|fw_)[A-Za-z0-9_-]{18,}",
        _has_digit,
    ),
    _shape("hugging-face-token", "hf_", _START + r"hf_[A-Za-z0-9]{20,}"),
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _START + r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _shape("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _shape("aws-key", "AKIA ASIA", _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("google-key", "AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    _shape("package-token", "npm_ pypi-", _START + r"(?:npm_|pypi-)[A-Za-z0-9_-]{30,}"),
    _shape("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    _shape("organisation", "org-", _START + r"org-[A-Za-z0-9]{20,}", _has_digit),
    _shape("bearer", "earer EARER", r"(?i:\bbearer)[\s:=]+([A-Za-z0-9._~+/-]{8,}=*)", _has_digit),
    _shape(
        "authorization",
        "uthorization UTHORIZATION",
        r"(?i:\bauthorization)\\?[\"']?\s*[:=]\s*\\?[\"']?(?:(?i:basic|token|apikey)\s+)?([A-Za-z0-9._~+/-]{8,}=*)",
        _has_digit,
    ),
    _shape(
        "cookie", 'ookie: OOKIE: ookie":', r"(?i:\b(?:set-)?cookie)\\?\"?:\s*\\?\"?((?!\[redacted:)[^\s\"\\]+=[^\r\n\"\\]+)"
    ),
    _shape("url-user", "@", r"://((?!\[redacted:)[^\s/@\"'<>:]*:[^\s/@\"'<>]+)@"),
    _shape(
        "url-parameter",
        "=",
        r"(?i)[?&](?:api[_-]?key|key|token|access_token|auth|sig|signature|secret|password)=([A-Za-z0-9._~+/%-]{8,}=*)",
        _has_digit,
    ),
    Shape(
        kind="assigned",
        hints=("=", ":"),
        pattern=re.compile(r"[:=]>?\s*\\*[\"']?([A-Za-z0-9_./+~-]{12,}=*)"),
        is_secret=_looks_random,
        before=re.compile(rf"(?i)(?:{_NAMES})\\*[\"']?\s*$"),
    ),
)
"""The kinds of secrets, the most specific first."""
