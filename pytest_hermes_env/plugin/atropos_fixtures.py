"""Fixtures of the room of services: run-api, the trainer, wandb and the dataset hub."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.plugin.fault_fixtures import planned_faults
from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import allows_leftovers

if TYPE_CHECKING:
    from pytest_hermes_env.atropos.dataset_hub import DatasetHub
    from pytest_hermes_env.atropos.run_api import RunApiThread
    from pytest_hermes_env.atropos.trainer import Step, Trainer
    from pytest_hermes_env.atropos.wandb_runs import WandbCapture


@pytest.fixture
def run_api(request: pytest.FixtureRequest) -> Iterator[RunApiThread]:
    """Atropos' real run-api in this process, empty: ``run_api.url``, ``.envs``, ``.queue``, ``.restart()``."""
    from pytest_hermes_env.atropos.run_api import RunApiThread  # noqa: PLC0415 - atroposlib takes seconds

    with RunApiThread(faults=planned_faults(request)) as api:
        yield api


@pytest.fixture
def trainer(request: pytest.FixtureRequest, run_api: RunApiThread) -> Trainer:
    """A trainer double for ``run_api``: it pulls batches and refuses what Atropos' example trainer would crash on.

    Not registered yet: set ``trainer.batch_size`` (2 sequences), ``.steps`` (3) or ``.max_token_len`` first, then
    ``trainer.register()``; ``trainer.pull()`` returns a batch, ``trainer.train()`` registers and yields each checked `Step`.
    """
    from pytest_hermes_env.atropos.trainer import Trainer  # noqa: PLC0415 - pydantic takes 100 ms

    return Trainer(run_api.url, faults=planned_faults(request))


@pytest.fixture
def train_steps(run_api: RunApiThread) -> Callable[..., Awaitable[list[Step]]]:
    """Runs an environment as ``serve`` does, on ``run_api``, until a trainer double has its batches.

    ``steps = await train_steps(env, steps=3)``. See `pytest_hermes_env.atropos.train_steps`.
    """
    from pytest_hermes_env.atropos.train_steps import train_steps  # noqa: PLC0415 - heavy

    return functools.partial(train_steps, run_api=run_api)


@pytest.fixture
def wandb_capture() -> Iterator[WandbCapture]:
    """What is logged to wandb, in memory: ``wandb_capture.steps``, ``.values(name)``, ``.runs``.

    ``make_env`` switches ``use_wandb`` on in a test that has this fixture. Each step is a `LoggedStep` with ``step`` and
    ``metrics``; a table has ``columns`` and ``rows``.
    """
    from pytest_hermes_env.atropos.wandb_runs import capturing_runs  # noqa: PLC0415 - wandb takes a second

    with capturing_runs() as capture:
        yield capture


@pytest.fixture
def hub(request: pytest.FixtureRequest) -> Iterator[DatasetHub]:
    """Answers ``load_dataset("any/name")``: ``hub.add("any/name", [{"question": ...}])``, rows or a JSONL or Parquet file.

    The real datasets library reads them. Every other dataset is refused at once, as on a machine without a network, and fails the
    test at teardown unless ``hub.refuse("any/name")`` expects it; so does a table that nobody loaded.
    """
    from pytest_hermes_env.atropos.dataset_hub import answering_datasets  # noqa: PLC0415 - datasets takes seconds

    with answering_datasets(allow_leftovers=allows_leftovers(request)) as answering, verifying(request.node, answering.verify):
        yield answering
