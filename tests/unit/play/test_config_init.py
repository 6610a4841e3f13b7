"""Which names a configuration silently drops, whatever way config_init makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pytest_hermes_env.play.builder import config_init_of


class Settings(BaseModel):
    """Has one field."""

    limit: int = 3


class Open(Settings):
    """Takes any name."""

    model_config = ConfigDict(extra="allow")


class Renaming(Settings):
    """Takes the name of an older version."""

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields by their new names."""
        return {"limit": given.get("most", 3)}


class Aliased(Settings):
    """Has a field by another name."""

    top: int = Field(default=1, alias="highest")


MADE_BEFORE = Settings(most=5)


def dropped(kind: type[Settings], make: Callable[[], Any]) -> tuple[str, ...] | None:
    env_class = type("Env", (), {"env_config_cls": kind, "config_init": classmethod(lambda _: (make(), []))})
    return config_init_of(env_class)[2]


@pytest.mark.parametrize(
    ("kind", "make", "expected"),
    [
        (Settings, lambda: Settings(limit=4), ()),
        (Settings, lambda: Settings(**dict(zip(["most"], [5], strict=True))), ("most",)),
        (Settings, lambda: Settings.model_validate({"limit": 4, "most": 5}), ("most",)),
        (Settings, lambda: Settings.model_construct(most=5), ("most",)),
        (Settings, lambda: Settings().model_copy(update={"most": 5}), ("most",)),
        (Open, lambda: Open(most=5), ()),  # type: ignore[call-arg]
        (Renaming, lambda: Renaming(most=5), ()),  # type: ignore[call-arg]
        (Aliased, lambda: Aliased(highest=2), ()),
        (Settings, lambda: MADE_BEFORE, None),
        (Renaming, lambda: Settings(limit=4), None),
    ],
)
def test_names_that_are_dropped_are_told_and_what_was_not_seen_is_not_passed(
    kind: type[Settings], make: Callable[[], Any], expected: tuple[str, ...] | None
) -> None:
    assert dropped(kind, make) == expected


def test_an_error_of_config_init_is_its_own() -> None:
    class Env:
        env_config_cls = None

        @classmethod
        def config_init(cls) -> Any:
            return Settings(limit="many")  # type: ignore[arg-type]

    returned, error, names = config_init_of(Env)

    assert (returned, names) == (None, None)
    assert error.startswith("ValidationError: 1 validation error for Settings")
