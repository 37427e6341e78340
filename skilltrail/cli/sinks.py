"""Handing a run to other programs: what `skilltrail export` calls, each with its own extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skilltrail.core.errors import UsageError
from skilltrail.core.redact import Redactor
from skilltrail.history.ask.sources import LogFound, Project
from skilltrail.runtime.console import emit, say

if TYPE_CHECKING:
    from skilltrail.history.log.events import Event


def write_inspect(folder: Path, events: Sequence[Event]) -> None:
    """Write rollouts as `.eval` logs."""
    from skilltrail.core.item import SPLITS
    from skilltrail.core.trajectory import Trajectory
    from skilltrail.data.splits import read_split
    from skilltrail.runtime.workspace import environment_of, load_params
    from skilltrail.store.place import find_place

    sink = _sink("inspect", "inspect_logs")
    place = find_place()
    env = environment_of(load_params(place.workspace))
    items = {i.id: i for split in SPLITS for i in read_split(place.workspace, split)}
    with _facts(place.root) as fact:

        def trajectory_of(key: str) -> Trajectory | None:
            found = fact(key)
            return None if found is None else Trajectory.from_json(found["trajectory"])

        for path in sink.write_eval_logs(folder, events, items, env, trajectory_of):
            say(f"wrote {path}")


def export_to_sinks(
    mlflow: str | None,
    otlp: str | None,
    here: Project,
    source: LogFound,
    evaluation: Sequence[Event],
) -> None:
    """Give a run to those programs that were named."""
    if mlflow is not None:
        write_mlflow(mlflow, source.name, source.events, evaluation)
    if otlp is not None:
        send_otlp(otlp, here, [source.events, evaluation])


def write_mlflow(
    uri: str, name: str, training: Sequence[Event], evaluation: Sequence[Event]
) -> None:
    """Write a finished run to a tracking store of MLflow."""
    from skilltrail.history.log.erasure import end_of

    if end_of(training) is None:
        raise UsageError("--mlflow", "the run has not finished", "Export it when it has")
    sink, hide = _sink("mlflow", "mlflow_run"), _redactor()
    try:
        id, new = sink.write_run(uri, name, training, evaluation, hide)
    except Exception as error:  # noqa: BLE001  whatever the store at that address says
        found = str(hide.value(f"{type(error).__name__}: {error}"))[:300]
        remedy = "A folder is file:PATH or sqlite:///FILE, a server http://HOST:PORT"
        raise UsageError("--mlflow", found, remedy) from error
    emit(f"MLflow run {id}" if new else f"MLflow has this run already: {id}")


def send_otlp(url: str, here: Project, logs: Sequence[Sequence[Event]]) -> None:
    """Send recorded calls as OpenTelemetry spans."""
    sink = _sink("otlp", "otlp")
    with _facts(here.root) as fact:
        count = sink.send(url, [log for log in logs if log], fact, _redactor())
    emit(f"sent {count} spans")


def _sink(extra: str, module: str) -> Any:
    """Return a sink's module.

    Raises:
        UsageError: the package that it needs is not installed.
    """
    try:
        return import_module(f"skilltrail.report.sinks.{module}")
    except ModuleNotFoundError as error:
        remedy = f"Run `pip install 'skilltrail[{extra}]'`"
        raise UsageError(f"--{extra}", f"{error.name} is not installed", remedy) from error


@contextmanager
def _facts(root: Path) -> Iterator[Any]:
    """Yield what looks recorded facts up by key."""
    from skilltrail.store.reader import open_reading

    with open_reading(root) as store:

        def fact(key: str) -> Mapping[str, Any] | None:
            return None if store is None else store.get(key)

        yield fact


def _redactor() -> Redactor:
    """Return what hides keys in whatever leaves this machine."""
    from skilltrail.models.environ import redactor
    from skilltrail.runtime.session import key_names
    from skilltrail.runtime.workspace import load_params
    from skilltrail.store.place import find_place

    return redactor(names=key_names(load_params(find_place().workspace)))
