import re
from pathlib import Path

from pytest_hermes_env.cassette.escape import UNPACKERS
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import REPLY_HEADERS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cassettes.md").read_text()


def test_the_page_names_every_notation_and_header():
    """Every notation that a file can contain is on the page; the styles of JSON are one entry."""
    marks = {mark.partition("_")[0] for mark in UNPACKERS} | {"~as", "~ids_of", "~define", "~shared"}

    assert {mark for mark in marks if mark not in PAGE} == set()
    assert {header for header in REPLY_HEADERS if f"`{header}`" not in PAGE} == set()


def test_the_fixture_on_the_page_redacts():
    """The example runs unchanged and does what its comments describe."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(code.replace("@pytest.fixture\n", ""), names)

    redactor = names["hermes_redaction"]()

    assert isinstance(redactor, Redactor)
    assert redactor.text("customer-123456 at internal.example") == "[redacted:customer:1] at [redacted:host:1]"
