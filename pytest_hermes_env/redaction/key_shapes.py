"""The shapes of secrets: keys of known services, and values in the places of secrets, such as headers and assignments.

Every pattern takes time that is proportional to the text, whatever the text: no part of it is scanned again from each position.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_hermes_env.redaction.key_prefixes import KEY_PREFIXES, KeyPrefix, is_key_body

RANDOM_FROM, RANDOM_DIGITS, RANDOM_BITS = 12, 2, 3.0
USER_FROM = 20
_START = r"(?<![A-Za-z0-9])"
_ALPHANUMERIC = frozenset(string.ascii_letters + string.digits)
_BODY, _DOTTED_BODY = re.compile(r"[A-Za-z0-9_-]+"), re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAMES = r"api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|secret|passwd|password|auth[_-]?token|access[_-]?token|token"


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


def looks_random(text: str) -> bool:
    """Return whether a word looks like a key: letters mixed with digits, few of them repeated."""
    digits = sum(character.isdigit() for character in text)
    if len(text) < RANDOM_FROM or digits < RANDOM_DIGITS or digits == len(text):
        return False
    counts = Counter(text).values()
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
    return entropy >= RANDOM_BITS


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_user(text: str) -> bool:
    """Return whether the part of a URL before ``@`` has a password, or is a token."""
    return ":" in text or (len(text) >= USER_FROM and looks_random(text))


def _shape(kind: str, hints: str, pattern: str, is_secret: Callable[[str], bool] = bool, flags: int = 0) -> Shape:
    return Shape(kind=kind, hints=tuple(hints.split()), pattern=re.compile(pattern, flags), is_secret=is_secret)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixedKey:
    """The keys of one prefix. Found by ``str.find``, which is ten times as fast as a pattern that looks behind itself first."""

    key: KeyPrefix

    @property
    def hints(self) -> tuple[str, ...]:
        """A text without its prefix contains no such key."""
        return (self.key.prefix,)

    @property
    def kind(self) -> str:
        """The kind in the placeholder."""
        return self.key.kind

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each such key in ``text``."""
        prefix = self.key.prefix
        body = _DOTTED_BODY if "." in prefix else _BODY
        at = text.find(prefix)
        while at >= 0:
            found = body.match(text, at + len(prefix))
            end = found.end() if found else at + len(prefix)
            is_start = not at or text[at - 1] not in _ALPHANUMERIC
            if is_start and end - at - len(prefix) >= self.key.min_body and is_key_body(text[at + len(prefix) : end]):
                yield at, end
            at = text.find(prefix, end)


KEY_SHAPES: tuple[Shape | PrefixedKey, ...] = (
    _shape(
        "private-key",
        "KEY----- BLOCK-----",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|.*)",
        flags=re.DOTALL,
    ),
    _shape("private-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    *(PrefixedKey(key=key) for key in KEY_PREFIXES),
    _shape("aws-key", "AKIA ASIA ABIA ACCA", _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("google-key", "AIza", r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{30,}"),
    _shape("azure-key", "ccountKey= haredAccessKey=", r"(?i:(?:Account|SharedAccess)Key=)([A-Za-z0-9+/]{40,}={0,2})"),
    _shape("twilio-key", "SK AC", _START + r"(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("mailchimp-key", "-us", _START + r"[0-9a-f]{32}-us\d{1,2}\b"),
    Shape(
        kind="telegram-token",
        hints=(":",),
        pattern=re.compile(r":([A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"),
        before=re.compile(r"(?<!\d)\d{8,10}$"),
    ),
    _shape(
        "discord-token",
        ".",
        r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])",
        _has_digit,
    ),
    _shape(
        "webhook",
        "hooks.slack.com/ /api/webhooks/",
        r"(?:hooks\.slack\.com/(?:services|workflows)|/api/webhooks)/([\w/-]{20,})",
    ),
    _shape("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
)
"""Keys that are known by what they look like, wherever they stand; the most specific first."""

SHAPES: tuple[Shape | PrefixedKey, ...] = (
    *KEY_SHAPES,
    _shape("bearer", "earer EARER", r"(?i:\bbearer)[\s:=]{1,20}([A-Za-z0-9._~+/-]{8,}=*)", _has_digit),
    _shape(
        "authorization",
        "uthorization UTHORIZATION",
        r"(?i:\bauthorization)\\?[\"']?\s{0,9}[:=]\s{0,9}\\?[\"']?(?:(?i:basic|token|apikey)\s{1,9})?([A-Za-z0-9._~+/-]{8,}=*)",
        _has_digit,
    ),
    _shape(
        "cookie",
        'ookie: OOKIE: ookie":',
        r"(?i:\b(?:set-)?cookie)\\?\"?:\s{0,9}\\?\"?((?!\[redacted:)[^\s\"\\=:]{1,100}=[^\r\n\"\\]+)",
    ),
    _shape("url-user", "@", r"://((?!\[redacted:)[^\s/@\"'<>]+)@", _is_user),
    _shape(
        "url-parameter",
        "=",
        r"(?i)[?&](?:api[_-]?key|key|token|access_token|auth|sig|signature|secret|password)=([A-Za-z0-9._~+/%-]{8,}=*)",
        _has_digit,
    ),
    Shape(
        kind="assigned",
        hints=("=", ":"),
        pattern=re.compile(r"[:=]>?\s{0,9}\\{0,9}[\"']?([A-Za-z0-9_./+~-]{12,}=*)"),
        is_secret=looks_random,
        before=re.compile(rf"(?i)(?:{_NAMES})\\*[\"']?\s*$"),
    ),
)
"""The kinds of secrets: keys, and what stands in the places of secrets."""
