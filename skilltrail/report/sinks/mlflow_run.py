"""A run as a run of MLflow: params, the curve by step, the final numbers, the best skill.

Everything comes from the two logs, after the fact. A run that is there already, known by the id
of its last event, is not written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# It would tell its makers of each use; and a folder, the store that needs no server, is to be
# asked for by name. Both are read when it is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
# A server that is not there is said after some seconds; of itself it is asked for four minutes.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")

from mlflow.entities import Metric, Param, RunTag  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402

from skilltrail.core.redact import Redactor  # noqa: E402
from skilltrail.history.log.consumed import consumed_items, consumed_params  # noqa: E402
from skilltrail.history.log.events import Event  # noqa: E402
from skilltrail.history.log.replay import version_of  # noqa: E402
from skilltrail.report.tables import columns_of, curve, metrics  # noqa: E402

TAG = "skilltrail.run"
_MOST = 500  # characters that every store of MLflow takes in a param
_BATCH = 900  # metrics in one call; servers take 1000
_TEXTS = ("verdict",)  # columns of the curve that are no number


def write_run(
    uri: str, name: str, training: Sequence[Event], evaluation: Sequence[Event], hide: Redactor
) -> tuple[str, bool]:
    """Write a finished run to the tracking store at `uri`; return its id there, and whether it
    is new."""
    client, last = MlflowClient(tracking_uri=uri), training[-1].id
    started = training[0].data
    experiment = _experiment(client, f"skilltrail {started['env']}")
    known = client.search_runs([experiment], f"tags.`{TAG}` = '{last}'", max_results=1)
    if known:
        return str(known[0].info.run_id), False
    tags = {TAG: last, "skilltrail.env": started["env"], "mlflow.runName": name}
    run = client.create_run(experiment, tags={k: _text(v, hide) for k, v in tags.items()})
    id = str(run.info.run_id)
    at = run.info.start_time
    consumed = consumed_params(training) | consumed_items(training)
    client.log_batch(
        id,
        params=[Param(key, _text(value, hide)) for key, value in consumed.items()],
        tags=[RunTag("skilltrail.events", str(len(training)))],
    )
    rows = [Metric(key, value, at, step) for key, value, step in _series(training)]
    rows += [Metric(key, value, at, 0) for key, value in _leaves(metrics(training, evaluation))]
    for start in range(0, len(rows), _BATCH):
        client.log_batch(id, metrics=rows[start : start + _BATCH])
    best = version_of(training, "best").text
    client.log_text(id, _text(best, hide, None), "best_skill.md")
    client.set_terminated(id)
    return id, True


def _experiment(client: MlflowClient, name: str) -> str:
    known = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if known is None else known.experiment_id)


def _series(training: Sequence[Event]) -> Iterator[tuple[str, float, int]]:
    for row in curve(training):
        for name in columns_of(training):
            if name not in ("step", *_TEXTS) and row[name] is not None:
                yield f"curve.{name}", float(row[name]), row["step"]


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{prefix}{name}.")
        elif isinstance(inner, (int, float)):
            yield f"{prefix}{name}", float(inner)


def _text(value: Any, hide: Redactor, most: int | None = _MOST) -> str:
    return str(hide.value(str(value)))[:most]
