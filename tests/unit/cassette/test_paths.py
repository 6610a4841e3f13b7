from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_hermes_env.cassette.format import cassette_path

WORDS = st.text(min_size=1) | st.from_regex(r"[A-Ca-c.]{1,3}(\[[a-c.-]{0,3}\])?(-[0-9a-f]{10})?", fullmatch=True)


@pytest.mark.parametrize(
    ("module", "test", "expected"),
    [
        ("tests/test_my_env.py", "test_one", "cassettes/tests/test_my_env/test_one.json"),
        ("terminal_test_env", "test_one", "cassettes/terminal_test_env/test_one.json"),
        ("test_a.py", "TestIt::test_one[a-b]", "cassettes/test_a/TestIt-test_one-a-b-6b0d897357.json"),
        ("../up.py", "con", "cassettes/_-5ec1f7e700/up/con-1143da2bc5.json"),
    ],
)
def test_a_test_has_a_file_whose_name_can_be_read(module, test, expected):
    """Plain names stay as they are; others keep what is safe, with a digest."""
    assert cassette_path(Path("cassettes"), module, test) == Path(expected)


def test_a_long_name_is_cut():
    """A parametrised test with a text of 5,000 characters still has a file that file systems take."""
    path = cassette_path(Path("cassettes"), "test_a.py", f"test_one[{'long ' * 1000}]")

    assert (
        path.name == "test_one-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-813d2db7ab.json"
    )


@given(WORDS, WORDS)
def test_two_tests_never_share_a_file(one, other):
    """Names that differ have files that differ, also where capitals make no difference, and none leaves the directory."""
    first, second = (cassette_path(Path("c"), "test_a.py", name) for name in (one, other))

    assert (str(first).lower() == str(second).lower()) == (one == other)
    assert len(first.parts) == 3
    assert len(first.name.encode()) < 255
