"""A model that only repeats what was recorded, for tests and audits.

An unseen request is an error that shows the recorded request nearest to it, so that a golden
run that drifted says where.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from skilltrail.models.client.identity import abilities_of, identity_of, style_of
from skilltrail.models.errors import UnseenRequest
from skilltrail.models.protocol import Reply, Request
from skilltrail.params.model_options import RoleOptions

_SHOWN_CHARS = 300
_COMPARED_CHARS = 4000


class Records(Protocol):
    """Recorded calls."""

    def reply(self, key: str) -> Mapping[str, Any] | None:
        """Return the recorded reply (`Reply.to_json`) of this call key, or None."""

    def requests(self) -> Iterable[Mapping[str, Any]]:
        """Return the recorded requests (`Request.to_json`), for error messages."""


class ReplayModel:
    """Answers from records only. With `replays` set it has that backend's identity, so it finds
    the facts of a real run."""

    style = "chat"
    workers = 1

    def __init__(self, role: str, options: RoleOptions, records: Records) -> None:
        self._role, self._records = role, records
        self.identity = identity_of(options)
        self.style = style_of(options)
        self.abilities = abilities_of(options)

    async def complete(self, request: Request) -> Reply:
        recorded = self._records.reply(request.key(self.identity))
        if recorded is not None:
            return Reply.from_json(recorded)
        raise UnseenRequest(
            f"{self._role}: replay of a recorded answer",
            self._nearest(request),
            "Record it with the real backend, or undo the change that made the request differ",
        )

    async def close(self) -> None:
        """Nothing is held."""

    def _nearest(self, request: Request) -> str:
        """Return a sentence with the nearest recorded request and where it first differs."""
        wanted = _text(request.to_json())
        recorded = [_text(request) for request in self._records.requests()]
        if not recorded:
            return "this request is not recorded, and nothing else is either"
        alike, best = max((_likeness(wanted, text), text) for text in recorded)
        at = len(os.path.commonprefix([wanted, best]))
        start = max(0, at - 40)
        return (
            f"this request is not recorded; the nearest one is {alike:.0%} alike and "
            f"first differs at character {at}: asked {wanted[start : start + _SHOWN_CHARS]!r}, "
            f"recorded {best[start : start + _SHOWN_CHARS]!r}"
        )


def _likeness(one: str, other: str) -> float:
    matcher = difflib.SequenceMatcher(None, one[:_COMPARED_CHARS], other[:_COMPARED_CHARS])
    return matcher.quick_ratio()


def _text(request: Mapping[str, Any]) -> str:
    return json.dumps(request, ensure_ascii=False, sort_keys=True)
