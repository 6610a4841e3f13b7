"""Items in shared places: when agents of several items have ended, a place that holds a single item has lost those of the others.

Each item has texts of its own. Before the first reward, the environment's attributes, those of its class and the names of its
module are searched for them, wherever and however they were put there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.scenario import Sighting

_SHORTEST = 4
"""The length of the shortest text that counts: shorter ones are in too many others."""


class SharedItems:
    """Knows the texts that only one of ``items`` has, and looks for places that hold a single one of them."""

    def __init__(self, env: Any, items: list[Any]) -> None:
        """Look around before rollouts begin: what holds an item by now is data, and no rollout's."""
        self._env = env
        self._keys = list(dict.fromkeys(repr(picture(item)) for item in items))
        self._texts = self._own_texts()
        self._data = {place for place, text in self._places() if self._items_in(text)}
        self._found: list[Sighting] | None = None

    def look(self) -> None:
        """Search all places, the first time that this is called: later, rewards have written there, too."""
        if self._found is None and len(self._keys) > 1:
            self._found = [
                Sighting(where=place[0], name=place[1], words=(self._texts[found.pop()][0],), is_of_an_item=True)
                for place, text in self._places()
                if place not in self._data and len(found := self._items_in(text)) == 1
            ]

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """The places that held the item of one rollout while several waited for their rewards."""
        return tuple(self._found or ())

    def _own_texts(self) -> list[tuple[str, ...]]:
        """Return for each item the texts in it that no other item has, the whole item first."""
        parts = [(key, *_texts_in(key)) for key in self._keys]
        return [
            tuple(text for text in mine if not any(text in other for other in self._keys if other != key))
            for key, mine in zip(self._keys, parts, strict=True)
        ]

    def _items_in(self, text: str) -> set[int]:
        return {number for number, texts in enumerate(self._texts) if any(own in text for own in texts)}

    def _places(self) -> Iterator[tuple[tuple[str, str], str]]:
        cls = type(self._env)
        module = sys.modules.get(cls.__module__)
        places = {
            "attribute": vars(self._env),
            "class attribute": {name: value for one in reversed(cls.__mro__) for name, value in vars(one).items()},
            "module": vars(module) if module is not None else {},
        }
        for where, values in places.items():
            for name, value in list(values.items()):
                if not name.startswith("__") and (seen := picture(value)) is not None:
                    yield (where, name), repr(seen)


def _texts_in(key: str) -> list[str]:
    """Return the texts in a picture: every quoted one, without its quotes."""
    return [text for text in key.replace('"', "'").replace("\\", "").split("'") if len(text) >= _SHORTEST]
