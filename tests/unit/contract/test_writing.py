"""A file that a command writes is the text, and hermes' terminal runs the command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_hermes_env.play.cases.writing import writing

TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


@given(text=TEXTS)
@example(text="END_OF_FILE\n")
@example(text="Smith & Sons\n$HOME `id` \\\n")
@example(text="no line end")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_is_the_text(tmp_path: Path, text: str) -> None:
    """Byte for byte, in a folder that was not there."""
    place = tmp_path / "new folder" / "file"

    subprocess.run(["bash", "-c", writing(f"'{place}'", text, folder=f"'{place.parent}'")], check=True)

    assert place.read_bytes() == text.encode()


@pytest.mark.parametrize("text", ["Smith & Sons\n", "DROP TABLE prices;\n", "DELETE FROM prices;\n", "server &\n", "plain\n"])
def test_hermes_terminal_writes_it(fake_sandbox, text: str) -> None:
    """Also where it refuses the text as words of a command."""
    result = json.loads(fake_sandbox.call("terminal", {"command": writing("file", text)}))

    assert (result.get("error"), result["exit_code"]) == (None, 0)
    assert fake_sandbox.read_bytes("file").decode() == text
