"""What a rollout service refuses before anything runs."""

from __future__ import annotations


class Refused(Exception):
    """A request that is not served: the HTTP status and the code of the answer. Its text quotes no secret."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
