"""setup() where only this computer can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Set up without a network, and take an item."""
    from pytest_hermes_env.atropos.no_network import no_network  # noqa: PLC0415 - only where it is needed

    async def take_item() -> None:
        await stage.env.setup()
        stage.item = await stage.next_item()

    with no_network() as asked:
        await stage.play(
            "setup_offline",
            take_item,
            more=lambda _: {"note": f"asked for {', '.join(dict.fromkeys(asked))}" if asked else ""},
        )


FAMILY = Family(
    name="offline",
    scenarios={
        "setup_offline": "setup() is called, and an item is taken, while no other machine can be reached and no dataset is cached"
    },
    play=play,
    is_alone=True,
)
