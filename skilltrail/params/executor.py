"""Where rollouts are made, and where facts are shared. Nothing here changes a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.params.knob import operational

EXECUTORS = ("local", "ray")


@dataclass(frozen=True)
class RayOptions:
    """The cluster that rollouts are made on; see docs/howto/clusters.md."""

    address: str = operational(
        "local", "`local` = one started here; `auto` = the one of this machine; or HOST:PORT."
    )
    resources: Mapping[str, Any] = operational(
        {"cpu": 1}, "What one rollout takes of a node, such as {cpu: 1, docker: 1}."
    )


@dataclass(frozen=True)
class StoreOptions:
    """Facts of a team; see docs/sharing.md."""

    remote: str | None = operational(
        None, "file:///FOLDER, s3://BUCKET/FOLDER or gs://BUCKET/FOLDER; null = none."
    )
