"""What the redaction finds, and what it leaves alone."""

from __future__ import annotations

import base64
import gzip
import hashlib
import quopri
import random
import re
import textwrap
import time
import uuid
from collections.abc import Callable

import pytest
from agent import redact as hermes
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hermes_env.redaction.file_check import leaks_in
from pytest_hermes_env.redaction.key_shapes import KEY_PREFIXES
from pytest_hermes_env.redaction.redactor import TextRedactor
from pytest_hermes_env.redaction.secret_names import secrets_of
from tests.unit.redaction.planted import FORMS, KNOWN, RANDOM, SHAPED, VARIABLE, forms_of_known

ODD = 'p4ss/w+rd "ä\\ß" <b>&c\n2nd line'
"""A password with every character that some encoding escapes."""


UNDOES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "quoted-printable": (
        lambda text: quopri.encodestring(f"{'before ' * 9}{text} after".encode(), quotetabs=True).decode(),
        lambda text: quopri.decodestring(text).decode(),
    ),
    "quoted-printable, every character": (
        lambda text: "".join(f"={byte:02X}" for byte in text.encode()),
        lambda text: quopri.decodestring(text).decode(),
    ),
    "UTF-16": (lambda text: text.encode("utf-16-le").decode("latin-1"), lambda text: text.replace("\0", "")),
    "hexadecimal list": (
        lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
        lambda text: bytes(int(byte, 16) for byte in re.findall("0x(..)", text)).decode(),
    ),
    "base64 in indented lines": (
        lambda text: textwrap.indent(base64.encodebytes(f"{'and ' * 20}{text} and more".encode()).decode(), "    "),
        lambda text: "".join(re.findall("[A-Za-z0-9+/]{4,}", text)),
    ),
}


@pytest.mark.parametrize("said", [KNOWN, SHAPED["OpenAI"]], ids=["known", "shaped"])
@pytest.mark.parametrize("form", UNDOES)
def test_forms_that_mail_and_dumps_have(said: str, form: str) -> None:
    """Nothing that says a part of it is left."""
    write, undo = UNDOES[form]

    left = undo(TextRedactor(known={VARIABLE: KNOWN}).text(write(said)))

    middle = said[-12:-4] if "base64" not in form else base64.b64encode(said.encode()).decode()[12:20]
    assert middle not in left
    assert middle in undo(write(said)) or "base64" in form


@pytest.mark.parametrize(("form", "text"), forms_of_known().items(), ids=forms_of_known())
def test_a_known_secret_is_found_in_every_form(form: str, text: str) -> None:
    """The text around it stays, and the placeholder has the variable's name."""
    redactor = TextRedactor(known={VARIABLE: KNOWN})

    found = redactor.text(f"before, {text}, after")

    assert text not in found
    assert f"[redacted:{VARIABLE}:1]" in found
    assert (found[:8], found[-7:]) == ("before, ", ", after")


@pytest.mark.parametrize("form", FORMS)
def test_a_known_secret_with_odd_characters_is_found_in_every_form(form: str) -> None:
    """Quotes, backslashes, spaces, umlauts and line feeds are escaped differently by each encoding."""
    redactor = TextRedactor(known={"ODD_TOKEN": ODD})

    assert "[redacted:ODD_TOKEN:1]" in redactor.text(f"it says {FORMS[form](ODD)} here")


@pytest.mark.parametrize("kind", SHAPED)
def test_what_looks_like_a_key_is_found_in_every_form(kind: str) -> None:
    """A key of each kind, also where its value is not known."""
    redactor = TextRedactor()
    texts = {name: form(SHAPED[kind]) for name, form in FORMS.items()}
    found = {name: redactor.text(f"it says {text} here") for name, text in texts.items()}

    assert [name for name, text in found.items() if "[redacted:" not in text or texts[name] in text] == []


@pytest.mark.parametrize("key", KEY_PREFIXES, ids=lambda key: key.prefix)
def test_every_prefix_of_the_table_is_found(key) -> None:
    """With the shortest body, at the beginning of a text and after a quote; not within a word."""
    secret = key.prefix + RANDOM[: key.min_body]
    placeholder = f"[redacted:{key.kind}:1]"

    assert [TextRedactor().text(text) for text in (secret, f"x='{secret}'", f"word{secret}"[:4])] == [
        placeholder,
        f"x='{placeholder}'",
        "word",
    ]


def test_every_prefix_that_hermes_knows_is_known_here() -> None:
    """hermes-agent keeps a list of keys that its tools use; a new release may name more."""
    examples = {pattern: _example(pattern) for pattern in hermes._PREFIX_PATTERNS}

    assert len(examples) > 30
    assert [pattern for pattern, text in examples.items() if TextRedactor().text(text) == text] == []


def _example(pattern: str) -> str:
    """Return a text that one of hermes' patterns matches: its prefix, and a body."""
    prefix = pattern.replace("[baprs]", "b").partition("[")[0].replace("\\", "").replace("d+-", "1-")
    body = RANDOM[:40].upper()[:16] if "AKIA" in prefix else RANDOM[:40]
    return prefix + body


def _ordinary() -> dict[str, str]:
    chance = random.Random(4)
    return {
        "hashes of git": "\n".join(f"commit {hashlib.sha1(bytes([n])).hexdigest()}" for n in range(200)),
        "short hashes": " ".join(hashlib.sha1(bytes([n])).hexdigest()[:12] for n in range(200)),
        "digests": "\n".join(f"sha256:{hashlib.sha256(bytes([n])).hexdigest()}  file{n}.txt" for n in range(200)),
        "uuids": "\n".join(str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(500)),
        "ids of calls": "\n".join(
            f"call_{chance.getrandbits(96):024x} chatcmpl-{chance.getrandbits(96):x}" for _ in range(500)
        ),
        "pictures": "data:image/png;base64," + base64.b64encode(chance.randbytes(300_000)).decode(),
        "packed data": base64.b64encode(gzip.compress(b"nothing to see here " * 5_000)).decode(),
        "hexadecimal data": chance.randbytes(30_000).hex(),
        "numbers": " ".join(str(chance.random()) for _ in range(3_000)),
        "times": "2026-11-22T23:54:39.123456Z as-of-20261122 at 127.0.0.1:54321, [::1]:8000, line 12:345678901",
        "words in hyphens": "sk-toggleable-content hf_transformer_module risk-averse-organisation task-1234567890123 fc-layers-12",
        "code": "token = tokens[i]; password = getpass(prompt); key=lambda pair: pair[1]; api_key=os.environ['A']; as_of = am_parser(x)",
        "paths": "/usr/lib/python3.11/site-packages/atroposlib/envs/base.py:1333 environments/web_research_env/items2.py",
        "addresses": "https://docs.example.org/page?query=a+b%20c&key=name#x mailto:someone@example.org git@github.com:a/b.git",
        "escapes": '100 % \\n \\u00e4 caf\\xc3\\xa9 %20 &amp; &#8212; {"a": "\\ud83d\\ude00"}',
        "dummies": "api_key='not-needed' base_url='http://localhost:9004/v1' token=EMPTY secret: none",
    }


@pytest.mark.parametrize("kind", _ordinary())
def test_ordinary_text_stays(kind: str) -> None:
    """Also with known secrets to look for; nor does the check of a file report it."""
    text = _ordinary()[kind]

    assert TextRedactor(known={VARIABLE: KNOWN}).text(text) == text
    assert leaks_in(text, {VARIABLE: KNOWN}) == []


def test_dummies_in_variables_are_no_secrets() -> None:
    """What people set where a server needs no key occurs in ordinary text."""
    dummies = ("not-needed", "dummy-key", "test-api-key", "placeholder", "your-key-here", "xxxxxxxxxx", "changeme", "disabled")

    environ = {f"N{n}_API_KEY": value for n, value in enumerate(dummies)}

    assert secrets_of(environ | {"A_KEY": KNOWN, "HF_TOKEN": "x", "HOME": "/home/someone", "KEYS": KNOWN}) == {"A_KEY": KNOWN}


def test_the_parts_of_a_variable_with_a_file_in_it_are_secrets() -> None:
    """A private key is printed line by line; of a service account's JSON, its private key is."""
    key = SHAPED["private key"]

    found = secrets_of({"DEPLOY_KEY": key, "GOOGLE_CREDENTIALS": f'{{"type": "x", "private_key": "{RANDOM[:40]}"}}'})

    assert {key, RANDOM[:64], RANDOM[:40]} <= set(found.values())


def test_a_bomb_in_a_text_is_not_unpacked() -> None:
    """What is too big to look into is replaced as a whole, and named so."""
    bomb = base64.b64encode(gzip.compress(bytes(50_000_000))).decode()

    assert TextRedactor().text(f"a {bomb} b") == "a [redacted:undecoded:1] b"


@pytest.mark.parametrize("text", [KNOWN, "key=" + KNOWN, SHAPED["OpenAI"], "ghp" + "_" + RANDOM[:36]])
def test_a_key_without_its_middle_is_found(text: str) -> None:
    """pytest shows the beginning and the end of a long text in an assertion."""
    cut = f"assert '{text[:15]}...{text[-13:]}' == ''"

    found = TextRedactor(known={VARIABLE: KNOWN}).text(cut)

    assert (text[4:15] in found, text[-13:] in found) == (False, False)
    assert found.endswith(":1]' == ''")


@settings(max_examples=300, deadline=None)
@given(st.text("AZaz09+/=-_\n\r \\ux%&#;.:\"'{[]}@~\x1b\ud83dé", max_size=200), st.text("Aa0=\n", min_size=20, max_size=120))
def test_any_text_can_be_redacted(text: str, run: str) -> None:
    """Whatever looks like the beginning of an encoding; and what is redacted once stays."""
    redactor = TextRedactor(known={VARIABLE: KNOWN})

    once = redactor.text(f"{text}{run}{KNOWN}{text}")

    assert KNOWN not in once
    assert redactor.text(once).count("[redacted:") >= 1


HOSTILE = {
    "beginnings of keys": "sk-",
    "beginnings of tokens": "eyJ",
    "cookies": "cookie:",
    "cookies with names": "cookie: a",
    "bearers": "bearer ",
    "authorizations": "authorization: basic ",
    "users": "://a:",
    "assignments": "token=",
    "codes": "%41a",
    "escapes": "\\u0041",
    "backslashes": "\\",
    "entities": "&#65;",
    "dots": "a.",
    "begins": "-----BEGIN PRIVATE KEY-----",
    "digits": "123456789:",
    "lines": "A" * 60 + "\n",
    "quotes": '{"a": "\\"',
    "nested": "[",
    "cuts": "a.........",
    "beginnings and cuts": "sk-aaaaaaaa...",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(kind: str) -> None:
    """Of the processor, 80 KB take about four times what 20 KB take; the search of before took minutes for some of these."""
    costs = []
    for size in (20_000, 80_000):
        text = (HOSTILE[kind] * size)[:size]
        start = time.process_time()
        TextRedactor(known={VARIABLE: KNOWN}).text(text)
        costs.append(time.process_time() - start)

    assert costs[1] < 12 * costs[0] + 0.5  # a quadratic search takes 16 times as long


def test_a_placeholder_that_a_model_writes_around_a_key_hides_nothing() -> None:
    """What stands in a placeholder is searched like any other text; a real placeholder stays as it is."""
    key = "sk-proj-" + "Ab3dEf6hIj9k" * 4
    redactor = TextRedactor(known={"MY_KEY": "correct horse battery"})

    assert key not in redactor.text(f"[redacted:{key}:1]")
    assert "correct horse" not in redactor.text("[redacted:correct horse battery:1]")
    once = redactor.text(f"Authorization: Bearer {key}")
    assert redactor.text(once) == once
    assert key not in str(redactor.value({"api_key": f"[redacted:x:1] {key}"}))
