"""Credentials in URLs are not shown; the rest of the URL is."""

from __future__ import annotations

import pytest

from environments.tokens.answer_checks import without_credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:KEY@host:1/v1", "http://***@host:1/v1"),
        ("see https://TOKEN@host/x, please", "see https://***@host/x, please"),
        ("http://host/v1?api_key=KEY&x=1#a", "http://host/v1?api_key=***&x=1#a"),
        ("http://host/v1?x=1&X-Amz-Signature=KEY", "http://host/v1?x=1&X-Amz-Signature=***"),
        ("http://host:8000/v1?n=2&keyword=a", "http://host:8000/v1?n=2&keyword=a"),
        ("mailto:a@b.example and git@host:x.git", "mailto:a@b.example and git@host:x.git"),
    ],
)
def test_a_url_is_shown_without_its_credentials(text: str, shown: str) -> None:
    """User, password, token, and parameters that are named like secrets."""
    assert without_credentials(text) == shown
