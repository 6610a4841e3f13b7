"""setup() a second time, with other random numbers, and without a network."""

from __future__ import annotations

import random
import socket
import sys
from typing import Any

from pytest_hermes_env.atropos.dataset_hub import hub_offline_without_caches
from pytest_hermes_env.live.network_guard import NetworkGuard
from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.raised import is_from_outside
from pytest_hermes_env.play.scenario import ItemSeen
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

MOST = 40
"""The most items that are taken."""
SEED = 20_260_117
"""The seed of the shared generators: any state other than the one at the first setup."""


@family(
    {"setup_again": "setup() is called on a second instance, and its items are taken, with other random numbers"},
    needs="nothing",
    is_alone=True,
)
async def second_setup(stage: Stage) -> None:
    """Set up again and take items."""
    seen: list[ItemSeen] = []

    async def take() -> None:
        _reseed()
        await stage.env.setup()
        while len(seen) < MOST and (item := await stage.next_item()) is not None:
            key = repr(picture(item))
            seen.append(ItemSeen(value=None, key=key, prompt=_prompt(stage.env, item)))

    if stage.may_begin():
        await stage.play("setup_again", take, more=lambda _: {"items": tuple(seen)})


def _prompt(env: Any, item: Any) -> Any:
    """Return the prompt of an item; None if format_prompt raises, which another scenario records."""
    try:
        return env.format_prompt(item)
    except BaseException as error:
        if is_from_outside(error):
            raise
        return None


def _reseed() -> None:
    """Reseed the generators of `random`, and of numpy if it is loaded."""
    random.seed(SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(SEED)


class _NoNetwork(NetworkGuard):
    """Raises the errors of a machine without a network."""

    def _error(self, host: str, what: str) -> OSError:
        text = f"no network in this scenario: {host} was requested"
        return socket.gaierror(socket.EAI_NONAME, text) if what.startswith("get") else ConnectionError(text)


@family(
    {
        "setup_offline": "setup() is called, and an item is taken, while no other machine can be reached and no dataset is cached"
    },
    needs="nothing",
    is_alone=True,
)
async def offline_setup(stage: Stage) -> None:
    """Set up without a network, and take an item."""
    if not stage.may_begin():
        return
    with _NoNetwork(test="") as network, hub_offline_without_caches():
        await stage.play(
            "setup_offline",
            stage.take_first_item,
            more=lambda _: {"note": f"requested {', '.join(network.hosts)}" if network.hosts else ""},
        )
