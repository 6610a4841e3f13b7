"""The shapes of secrets: keys of known services, and values in the places of secrets, such as headers and assignments.

Every pattern takes time that is proportional to the text, whatever the text: no part of it is scanned again from each position.

Source of the prefixes: the services' documentation; agent/redact.py of hermes-agent 0.19; the plugins of detect-secrets 1.5.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

RANDOM_FROM, RANDOM_DIGITS, RANDOM_BITS = 12, 2, 3.0
USER_FROM = 20
_START = r"(?<![A-Za-z0-9])"
_ALPHANUMERIC = frozenset(string.ascii_letters + string.digits)
_BODY, _DOTTED_BODY = re.compile(r"[A-Za-z0-9_-]+"), re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAMES = r"api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|secret|passwd|password|auth[_-]?token|access[_-]?token|token"

_RUN = re.compile(r"[A-Za-z0-9]+")
_MIN_RUN = 12


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
    return entropy(text) >= RANDOM_BITS


def entropy(text: str) -> float:
    """Return Shannon's entropy of a text, in bits for each character."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_user(text: str) -> bool:
    """Return whether the part of a URL before ``@`` has a password, or is a token."""
    return ":" in text or (len(text) >= USER_FROM and looks_random(text))


def _shape(kind: str, hints: str, pattern: str, is_secret: Callable[[str], bool] = bool, flags: int = 0) -> Shape:
    return Shape(kind=kind, hints=tuple(hints.split()), pattern=re.compile(pattern, flags), is_secret=is_secret)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixedKey:
    """Keys that begin with ``prefix``: the kind in their placeholder, and how many characters follow at least.

    Found by ``str.find``, which is ten times as fast as a pattern that looks behind itself first.
    """

    prefix: str
    kind: str
    min_body: int

    @property
    def hints(self) -> tuple[str, ...]:
        """A text without its prefix contains no such key."""
        return (self.prefix,)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each such key in ``text``."""
        body = _DOTTED_BODY if "." in self.prefix else _BODY
        at = text.find(self.prefix)
        while at >= 0:
            start = at + len(self.prefix)
            found = body.match(text, start)
            end = found.end() if found else start
            is_start = not at or text[at - 1] not in _ALPHANUMERIC
            if is_start and end - start >= self.min_body and is_key_body(text[start:end]):
                yield at, end
            at = text.find(self.prefix, end)


def is_key_body(body: str) -> bool:
    """Return whether what follows a prefix looks random: it has a digit and a long run, unlike words in hyphens.

    ``sk-toggleable-content`` and ``task-1234567890123`` are not keys.
    """
    longest = max((len(run) for run in _RUN.findall(body)), default=0)
    return longest >= min(_MIN_RUN, len(body) // 2) and any(map(str.isdigit, body))


def _of(kind: str, min_body: int, prefixes: str) -> list[PrefixedKey]:
    return [PrefixedKey(prefix=prefix, kind=kind, min_body=min_body) for prefix in prefixes.split()]


KEY_PREFIXES: tuple[PrefixedKey, ...] = (
    # models and inference
    *_of(
        "api-key",
        16,
        "sk- gsk_ nvapi- tvly- r8_ pplx- xai- fw_ fpk_ csk- pcsk_ jina_ tgp_v1_ fal_ exa_ hsk- mem0_ brv_ retaindb_",
    ),
    *_of("api-key", 20, "sk_ fw- fc- am_ gAAAA lsv2_pt_ lsv2_sk_"),
    *_of("hugging-face-token", 20, "hf_"),
    *_of("organisation", 20, "org-"),
    # machines that run the tools
    *_of("sandbox-key", 16, "dtn_ e2b_ rpa_ bb_live_"),
    *_of("modal-token", 20, "as- ak-"),
    *_of("digitalocean-token", 20, "dop_v1_ doo_v1_ dor_v1_"),
    *_of("databricks-token", 32, "dapi"),
    # code and packages
    *_of("github-token", 20, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    *_of("gitlab-token", 16, "glpat- gldt- glft- glsoat- glrt- glcbt- glptt- glagent- gloas- GR1348941"),
    *_of("package-token", 20, "npm_ pypi- dckr_pat_"),
    # payments, mail, messages, metrics
    *_of(
        "api-key", 16, "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0csp- sq0atp- shpat_ lin_api_ ntn_ syt_ sbp_ sntrys_ glc_"
    ),
    *_of("wandb-key", 20, "wandb_v1_"),
    *_of("sendgrid-key", 16, "SG."),
    *_of("slack-token", 10, "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-"),
    *_of("google-key", 16, "GOCSPX- ya29."),
    *_of("vault-token", 20, "hvs. hvb."),
)


KEY_SHAPES: tuple[Shape | PrefixedKey, ...] = (
    _shape(
        "private-key",
        "KEY----- BLOCK-----",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|.*)",
        flags=re.DOTALL,
    ),
    _shape("private-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    *KEY_PREFIXES,
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

BEARER = _shape("bearer", "earer EARER", r"(?i:\bbearer)[\s:=]{1,20}([A-Za-z0-9._~+/-]{8,}=*)", _has_digit)

SHAPES: tuple[Shape | PrefixedKey, ...] = (
    *KEY_SHAPES,
    BEARER,
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
        pattern=re.compile(r"[:=]>?\s{0,9}\\{0,9}[\"']?([A-Za-z0-9_./+~#$!@%^*?-]{12,}=*)"),
        is_secret=looks_random,
        before=re.compile(rf"(?i)(?:{_NAMES})\\*[\"']?\]?\s*$"),
    ),
    Shape(
        kind="assigned",
        hints=("-",),
        pattern=re.compile(r"(?<=[A-Za-z])\s{1,9}\\{0,9}[\"']?([A-Za-z0-9_./+~#$!@%^*?-]{12,}=*)"),
        is_secret=looks_random,
        before=re.compile(rf"(?i)--?[a-z0-9-]{{0,30}}(?:{_NAMES})$"),
    ),
    _shape("user", "-u --user", r"(?<!\S)(?:-u|--user)[\s=]{1,9}\\{0,9}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{8,})", _has_digit),
    _shape("registry", "auth", r"\\{0,9}\"auth\\{0,9}\"\s{0,9}:\s{0,9}\\{0,9}\"([A-Za-z0-9+/]{12,}={0,2})\\{0,9}\""),
    _shape("pgpass", ":5432: :6432: :*:", r":(?:5432|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s:\"'\\]{8,})", _has_digit),
    _shape("netrc", "login", r"\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}([^\s\"'\\]{8,})", _has_digit),
)
"""The kinds of secrets: keys, and what stands in the places of secrets."""
