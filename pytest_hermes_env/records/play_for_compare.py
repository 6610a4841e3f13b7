"""Plays an environment on the mock model and writes its rollouts as records, for `compare`: a program for any Python, also of another version.

It is run by its path, with the packages of that Python. ``python play_for_compare.py TARGET OUTPUT MODE FILE...``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCENARIOS = ("items", "happy", "silent", "evaluate", "cases")


def main(target: str, output: str, mode: str, *files: str) -> None:
    """Write the records of what is played with the cases beside the first of these files that has some, and next to them what holds for all: schemas of the tools, settings, metrics."""
    import logging  # noqa: PLC0415

    from hermes_env_shared.rollout_record import FORMAT, Record  # noqa: PLC0415
    from pytest_hermes_env.layer import find_class  # noqa: PLC0415
    from pytest_hermes_env.play.builder import EnvironmentBuilder  # noqa: PLC0415
    from pytest_hermes_env.play.cases.yaml_file import cases_for  # noqa: PLC0415
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415
    from pytest_hermes_env.play.hermes_home import HermesHome  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    home = HermesHome(None)
    home.enter()
    try:
        (env_class,) = find_class(target)[:1]
        found = (cases_for(Path(file), env_class.__name__) for file in files)
        cases = next((one for one in found if one is not None), None)
        server_type = "vllm" if mode == "token" else "openai"
        builder = EnvironmentBuilder(allow_leftovers=True, allow_unconfined=True)
        env = builder.build(env_class, server_type=None if mode == "chat" else server_type)
        schemas, _ = env._resolve_tools_for_group()  # noqa: SLF001 - the layer's own name for it
        settings = env.config.model_dump(mode="json")
        builder.release()
        played = Collector(env_class, server_type=server_type, cases=cases, is_sequential=True).collect(SCENARIOS)
    finally:
        home.leave()
    rows = [row for name in SCENARIOS for row in rows_of(played.scenarios.get(name))]
    facts = {
        "tools": schemas,
        "settings": {name: value for name, value in settings.items() if "tokenizer" not in name and "path" not in name},
        "metrics": {name: logged_by(scenario) for name, scenario in played.scenarios.items()},
        "errors": {name: scenario.error or str(scenario.unavailable or "") for name, scenario in played.scenarios.items()},
    }
    Path(output).write_text("".join(f"{Record(**{'format': FORMAT, **row}).line()}\n" for row in rows), encoding="utf-8")
    Path(f"{output}.facts.json").write_text(json.dumps(facts, default=str), encoding="utf-8")


def rows_of(scenario: Any) -> Iterator[dict[str, Any]]:
    """Yield the fields of a record for each reward of a scenario, and of the cases that it played."""
    for one in [*getattr(scenario, "played", ()), scenario]:
        events = getattr(one, "events", ())
        ends = {event.task_id: event for event in events if type(event).__name__ == "LoopEnded"}
        scored = {event.task_id: event for event in events if type(event).__name__ == "ItemScored"}
        for number, event in enumerate([event for event in events if type(event).__name__ == "Reward"], start=1):
            end, item = ends.get(event.task_id), scored.get(event.task_id)
            columns = {"tokens": list(item.tokens), "masks": list(item.masks), "logprobs": None} if item is not None else None
            yield {
                "id": f"{one.name} {number}",
                "environment": one.name,
                "item": json.loads(json.dumps(event.item, default=str)),
                "messages": [dict(message) for message in event.messages if isinstance(message, dict)],
                "end": getattr(end, "end", "") or "",
                "turns": getattr(end, "turns_used", None),
                "error": event.error,
                "reward": float(event.value) if isinstance(event.value, int | float) else None,
                "sequences": [columns] if columns else None,
            }


def logged_by(scenario: Any) -> Any:
    """Return the metrics that a scenario logged, without those of time."""
    metrics = [getattr(event, "metrics", None) for event in scenario.events if type(event).__name__ == "EvaluationLogged"]
    return [one for one in metrics if one]


if __name__ == "__main__":
    del sys.path[0]  # this directory: its modules have names of their own
    main(*sys.argv[1:])
