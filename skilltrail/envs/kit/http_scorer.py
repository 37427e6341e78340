"""A scorer in any language: a web service that is asked about each reply.

    POST URL   {"item": {"id", "question", "context", "answers", …}, "reply": "…"}
    200        {"score": 0.5, "feedback": "the unit is missing"}

`score` is in [0, 1]; `feedback` may be left out. The same question must get the same score:
runs are recomputed, never believed.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skilltrail.core.errors import UsageError

TIMEOUT_S = 30.0
_MOST_BYTES = 1 << 20


def asked(url: str | None, item: Mapping[str, Any], reply: str) -> tuple[float, str | None]:
    """Return score and feedback of a reply.

    Raises:
        UsageError: there is no URL, nobody answers, or what comes is no score.
    """
    if url is None or not url.startswith(("http://", "https://")):
        raise UsageError("The scorer http", f"url {url!r}", "Set envs.qa.url to a web address")
    return _asked(url, json.dumps({"item": item, "reply": reply}, sort_keys=True))


@lru_cache(maxsize=4096)
def _asked(url: str, body: str) -> tuple[float, str | None]:
    request = urllib.request.Request(
        url, data=body.encode(), headers={"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            said = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"The scorer at {url}", str(error), "Start it, then run again"
        ) from error
    score = said.get("score") if isinstance(said, Mapping) else None
    feedback = said.get("feedback") if isinstance(said, Mapping) else None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        remedy = 'It answers {"score": 0.5, "feedback": "…"}, a score from 0 to 1'
        raise UsageError(f"The scorer at {url}", f"{str(said)[:80]!r}", remedy)
    return float(score), None if feedback is None else str(feedback)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
