"""Errors that rollouts survive: logged once for each cause."""

from __future__ import annotations

import json
import logging
import re
import time

import httpx
import openai
import pytest
from tenacity import Future, RetryError

from environments.loop import log_once as log_once_module
from environments.loop.log_once import MOST_CAUSES, forget, log_once, logged

logger = logging.getLogger("a.layer")


@pytest.fixture(autouse=True)
def _anew():
    forget()


def raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def logged_texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_errors_that_differ_in_numbers_and_ids_have_one_cause(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(9):
        log_once(logger, raised(ValueError(f"port {number} of 4d5f-{number}")), "Rollout %d failed", number)

    assert len(logged_texts(caplog)) == 1
    assert logged_texts(caplog)[0].startswith("Rollout 0 failed: ValueError: port 0 of 4d5f-0\n")


def test_what_tenacity_gave_up_is_logged_as_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    """Each cause for itself, whatever layers of retries lie between."""
    for error in (ValueError("one"), KeyError("two")):
        for _ in range(2):
            failed: Future[None] = Future(2)
            failed.set_exception(error)
            error = RetryError(failed)  # noqa: PLW2901 - wrapped
        log_once(logger, raised(error), "The server failed")

    assert [text.splitlines()[0] for text in logged_texts(caplog)] == [
        "The server failed: ValueError: one (logged once)",
        "The server failed: KeyError: 'two' (logged once)",
    ]


def test_the_line_of_the_environment_is_logged_though_a_library_raised(caplog: pytest.LogCaptureFixture) -> None:
    """It is among the frames, and told with what was logged."""
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    log_once(logger, caught.value, "compute_reward failed")

    assert 'json.loads("{")' in logged_texts(caplog)[0]
    (told,) = logged("compute_reward failed")
    assert re.search(r"at \S*test_log_once\.py:\d+$", told)


def test_where_a_long_text_is_cut_makes_no_other_cause(caplog: pytest.LogCaptureFixture) -> None:
    for number in (1, 10, 1000):
        log_once(logger, raised(ValueError(f"call {number} {'of the same cause ' * 100}")), "Rollout failed")

    assert len(logged_texts(caplog)) == 1


def test_a_cause_is_logged_again_at_each_power_of_ten(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        log_once(logger, raised(ValueError("again")), "Rollout failed")

    assert [text.rpartition("(")[2] for text in logged_texts(caplog)[1:]] == ["10 times)", "100 times)"]


def test_the_last_frames_are_logged_unless_the_error_comes_from_the_server(caplog: pytest.LogCaptureFixture) -> None:
    request = httpx.Request("POST", "http://localhost/v1")
    log_once(logger, raised(openai.APIConnectionError(request=request)), "The server failed")
    log_once(logger, raised(KeyError("answer")), "compute_reward failed")

    server, reward = logged_texts(caplog)
    assert "raise error" not in server
    assert "raise error" in reward


def test_causes_are_not_kept_without_limit_and_hostile_text_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_CAUSES + 5):
        log_once(logger, raised(ValueError("x" * 50 + "abcdefghij"[number % 10] * (number // 10))), "Rollout failed")
    before = time.process_time()
    log_once(logger, raised(ValueError("a" * 1_000_000)), "Rollout failed")

    assert time.process_time() - before < 1.0
    assert len(log_once_module._logged) <= MOST_CAUSES
