"""Plays an environment on the mock model and writes its rollouts as records, for `compare`: a program for any Python, also of another version.

It is run by its path, with the packages of that Python. ``python play_for_compare.py TARGET OUTPUT MODE FILE...``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLACES = re.compile(r"tokenizer|path|url|(?:^|_)dir|wandb|(?:^|_)port$", re.IGNORECASE)
"""Names of settings whose values name a place or a run."""
_PLACE = re.compile(r"(?<=item) \d+\b")
"""The number of an item, which is paired with the same item of the other side, wherever that stands."""
MOST_ITEMS, LONGEST_S = 1_000, 60
SCENARIOS = ("items", "happy", "silent", "evaluate", "evaluate_gold", "wandb_log", "cases")


def main(target: str, output: str, mode: str, *files: str) -> None:
    """Write the records of what is played with the cases beside the first of these files that has some, and next to them what holds for all: schemas of the tools, settings, metrics."""
    import logging  # noqa: PLC0415

    from hermes_env_shared.rollout_record import FORMAT, Record  # noqa: PLC0415
    from pytest_hermes_env.layer import find_class  # noqa: PLC0415
    from pytest_hermes_env.play.builder import EnvironmentBuilder, initial_config  # noqa: PLC0415
    from pytest_hermes_env.play.cases.yaml_file import cases_for  # noqa: PLC0415
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415
    from pytest_hermes_env.play.hermes_home import HermesHome  # noqa: PLC0415
    from pytest_hermes_env.play.tool_backend import opened_sandbox  # noqa: PLC0415
    from pytest_hermes_env.sandbox.seam import ToolSeam  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    home = HermesHome(None)
    home.enter()
    try:
        (env_class,) = find_class(target)[:1]
        found = (cases_for(Path(file), env_class.__name__) for file in files)
        cases = next((one for one in found if one is not None), None)
        server_type = "vllm" if mode == "token" else "openai"
        with (
            opened_sandbox("fake") as sandbox,
            ToolSeam(sandbox) as seam,
        ):  # what is offered is what is played, whatever keys there are
            builder = EnvironmentBuilder(seam=lambda: seam, allow_leftovers=True)
            env = builder.build(env_class, server_type=None if mode == "chat" else server_type)
            schemas, _ = env._resolve_tools_for_group()  # noqa: SLF001 - the layer's own name for it
            settings = env.config.model_dump(mode="json")
            items = asyncio.run(first_items(env))
            builder.release()
        own = str(getattr(initial_config(env_class), "tokenizer_name", ""))
        template = rendered_by(own, schemas)
        with noting_files(env_class) as prepared:
            played = Collector(env_class, server_type=server_type, cases=cases, is_sequential=True).collect(SCENARIOS)
    finally:
        home.leave()
    rows = [row for name in SCENARIOS for row in rows_of(played.scenarios.get(name), prepared)]
    facts = {
        "tools": schemas,
        "items": items,
        "settings": {
            **{name: value for name, value in settings.items() if not PLACES.search(name)},
            "tokenizer_name": Path(own).name if Path(own).is_absolute() else own,
        },
        "template": template,
        "judges": {one.name: judged_in(one) for name in SCENARIOS for one in parts_of(played.scenarios.get(name))},
        "metrics": {name: logged_by(scenario) for name, scenario in played.scenarios.items()},
        "errors": {name: scenario.error or str(scenario.unavailable or "") for name, scenario in played.scenarios.items()},
    }
    Path(output).write_text("".join(f"{Record(**{'format': FORMAT, **row}).line()}\n" for row in rows), encoding="utf-8")
    Path(f"{output}.facts.json").write_text(json.dumps(facts, default=str), encoding="utf-8")


async def first_items(env: Any) -> list[str]:
    """Return the first training items in their order, up to one that comes again, or to an error, which is the last."""
    found: dict[str, None] = {}
    random.seed(0)
    try:
        await asyncio.wait_for(env.setup(), LONGEST_S)
        while len(found) < MOST_ITEMS:
            text = _as_json(await asyncio.wait_for(env.get_next_item(), LONGEST_S))
            if text in found:
                break
            found[text] = None
    except Exception as error:  # noqa: BLE001 - of the environment: the other side has the same one, or differs
        found[f"then {type(error).__name__}: {error}"] = None
    return [*found]


def _as_json(item: Any) -> str:
    return json.dumps(item, sort_keys=True, ensure_ascii=False, default=str)


def parts_of(scenario: Any) -> list[Any]:
    """Return a scenario, after those of the cases that it played."""
    return [*getattr(scenario, "played", ()), *([scenario] if scenario is not None else [])]


@contextlib.contextmanager
def noting_files(env_class: Any) -> Iterator[dict[str, dict[str, str]]]:
    """Yield the files with which the sandbox of each rollout begins, by its task id, as they become known."""
    from pytest_hermes_env.layer import layer_of  # noqa: PLC0415
    from pytest_hermes_env.patches import intercept  # noqa: PLC0415
    from pytest_hermes_env.play.journal import current_journal  # noqa: PLC0415
    from pytest_hermes_env.play.tool_backend import files_left  # noqa: PLC0415

    noted: dict[str, dict[str, str]] = {}

    async def run(real: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
        task = str(getattr(loop, "task_id", ""))
        machine = getattr(getattr(current_journal.get(), "sandbox", None), "rollouts", {}).get(task)
        files = files_left(machine) if machine is not None else {}
        noted[task] = {path: node.data.decode(errors="backslashreplace") for path, node in files.items()}
        noted[task] |= {f"{path}, its mode": f"{node.mode:o}" for path, node in files.items()}
        return await real(loop, *args, **kwargs)

    with intercept("HermesAgentLoop.run", run, owner=layer_of(env_class).agent_loop.HermesAgentLoop):
        yield noted


def rendered_by(name: str, schemas: list[Any]) -> str:
    """Return a conversation as the chat template of a tokenizer writes it, and its tokens; why not, where it is not on this machine."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - heavy

    call = {"id": "call", "type": "function", "function": {"name": "search", "arguments": {"text": "a b"}}}
    texts = {"system": "Be good.", "user": "Do it, 12 times.", "assistant": "", "tool": "found"}
    more: dict[str, Any] = {"assistant": {"tool_calls": [call]}, "tool": {"tool_call_id": "call", "name": "search"}}
    said = [{"role": role, "content": text, **more.get(role, {})} for role, text in texts.items()]
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
        text = tokenizer.apply_chat_template(said, tools=schemas, tokenize=False, add_generation_prompt=True)
        return f"{text}\n{tokenizer.encode(text, add_special_tokens=False)}"
    except OSError:
        return "not on this machine"
    except Exception as error:  # noqa: BLE001 - templates are programs
        return f"not known: {type(error).__name__}: {error}"


def judged_in(scenario: Any) -> list[dict[str, Any]]:
    """Return what judges were asked: requests for a completion without tools that do not continue a rollout."""
    rollouts = [[*event.messages] for event in scenario.events if type(event).__name__ == "Reward"]
    asked = [one for one in scenario.requests if isinstance(one.get("messages"), list) and not one.get("tools")]
    found = [one for one in asked if not any(one["messages"] == said[: len(one["messages"])] for said in rollouts)]
    return sorted(found, key=lambda one: json.dumps(one, sort_keys=True, default=str))


def rows_of(scenario: Any, prepared: dict[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the fields of a record for each reward of a scenario, and of the cases that it played."""
    for one in parts_of(scenario):
        events = getattr(one, "events", ())
        ends = {event.task_id: event for event in events if type(event).__name__ == "LoopEnded"}
        scored = {event.task_id: event for event in events if type(event).__name__ == "ItemScored"}
        rewarded = {event.task_id for event in events if type(event).__name__ == "Reward"}
        asked = [
            event
            for event in events
            if type(event).__name__ == "LoopStarted"
            and event.task_id not in rewarded
            and one.name in {"evaluate", "evaluate_gold"}
        ]
        for number, event in enumerate(asked, start=1):  # an evaluation that scores by itself
            messages = [dict(message) for message in event.messages if isinstance(message, dict)]
            prompt = next((str(message.get("content")) for message in messages if message.get("role") == "user"), "")
            yield {
                "id": f"{one.name} {number}",
                "environment": one.name,
                "prompt": prompt,
                "messages": messages,
                "tools": [*event.tools],
            }
        for number, event in enumerate([event for event in events if type(event).__name__ == "Reward"], start=1):
            end, item = ends.get(event.task_id), scored.get(event.task_id)
            columns = {"tokens": list(item.tokens), "masks": list(item.masks), "logprobs": None} if item is not None else None
            yield {
                "id": f"{one.name} {number}",
                "environment": _PLACE.sub("", one.name),
                "item": json.loads(json.dumps(event.item, default=str)),
                "messages": [dict(message) for message in event.messages if isinstance(message, dict)],
                "end": getattr(end, "end", "") or "",
                "turns": getattr(end, "turns_used", None),
                "error": event.error,
                "reward": float(event.value) if isinstance(event.value, int | float) else None,
                "sequences": [columns] if columns else None,
                "extra": {"prepared": prepared.get(event.task_id, {})},
            }


def logged_by(scenario: Any) -> Any:
    """Return the metrics that a scenario logged, without those of time."""
    metrics = [getattr(event, "metrics", None) for event in scenario.events if type(event).__name__ == "EvaluationLogged"]
    logged = [row for row in getattr(scenario, "logged", ()) or () if scenario.name == "wandb_log"]
    return [*(one for one in metrics if one), *({name: type(value).__name__ for name, value in row.items()} for row in logged)]


if __name__ == "__main__":
    del sys.path[0]  # this directory: its modules have names of their own
    from pytest_hermes_env.errors import HermesEnvError

    try:
        main(*sys.argv[1:])
    except HermesEnvError as error:
        sys.exit(str(error))
