"""Which handlers catch everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge.statements import is_caught_broadly


@pytest.mark.parametrize(
    ("head", "foot", "is_broad"),
    [
        ("try:", "except Exception: pass", True),
        ("try:", "except: pass", True),
        ("try:", "except (OSError, BaseException): pass", True),
        ("try:", "except builtins.Exception: pass", True),
        ("try:", "except AttributeError: pass", False),
        ("try:", "finally: pass", False),
        ("with contextlib.suppress(Exception):", "", True),
        ("with suppress(KeyError):", "", False),
        ("with open(path) as file:", "", False),
        ("if True:", "", False),
    ],
)
def test_handler_is_broad(tmp_path: Path, head: str, foot: str, is_broad: bool) -> None:
    """Where it names everything, or nothing."""
    (tmp_path / "code.py").write_text(f"{head}\n    work()\n{foot}\n")

    assert is_caught_broadly(str(tmp_path / "code.py"), 2) is is_broad


def test_innermost_handler_counts(tmp_path: Path) -> None:
    """It decides first."""
    (tmp_path / "code.py").write_text(
        "try:\n    try:\n        work()\n    except KeyError:\n        pass\nexcept Exception:\n    pass\n"
    )

    assert not is_caught_broadly(str(tmp_path / "code.py"), 3)


def test_file_that_cannot_be_read_has_no_handler(tmp_path: Path) -> None:
    """Nor has one that is no Python."""
    (tmp_path / "code.py").write_text("try:\n")

    assert not is_caught_broadly(str(tmp_path / "code.py"), 1)
    assert not is_caught_broadly(str(tmp_path / "none.py"), 1)
