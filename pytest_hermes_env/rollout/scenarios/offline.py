"""setup() without a network: no other machine can be reached, and no dataset is cached."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pytest_hermes_env.atropos.dataset_hub import hub_offline_without_caches
from pytest_hermes_env.live.network_guard import NetworkGuard
from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


class _NoNetwork(NetworkGuard):
    """Raises the errors of a machine without a network."""

    def _error(self, host: str, what: str) -> OSError:
        text = f"no network in this scenario: {host} was asked for"
        return socket.gaierror(socket.EAI_NONAME, text) if what.startswith("get") else ConnectionError(text)


async def play(stage: Stage) -> None:
    """Set up without a network, and take an item."""

    async def take_item() -> None:
        await stage.env.setup()
        stage.item = await stage.next_item()

    with _NoNetwork(test="") as network, hub_offline_without_caches():
        await stage.play(
            "setup_offline",
            take_item,
            more=lambda _: {"note": f"asked for {', '.join(network.hosts)}" if network.hosts else ""},
        )


FAMILY = Family(
    name="offline",
    scenarios={
        "setup_offline": "setup() is called, and an item is taken, while no other machine can be reached and no dataset is cached"
    },
    play=play,
    is_alone=True,
)
