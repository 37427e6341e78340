"""Recorded calls of one model, in a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skilltrail.models.protocol import Request


class RecordedCalls:
    """Records in a plain list of {"request", "reply"}, all made by one model."""

    def __init__(self, calls: Iterable[Mapping[str, Any]], identity: Mapping[str, Any]) -> None:
        made = [(call["request"], call["reply"]) for call in calls]
        self._requests = [request for request, _ in made]
        self._replies = {Request.from_json(r).key(identity): reply for r, reply in made}

    def reply(self, key: str) -> Mapping[str, Any] | None:
        return self._replies.get(key)

    def requests(self) -> Iterable[Mapping[str, Any]]:
        return self._requests
