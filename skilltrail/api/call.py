"""`optimize`: one training from arguments to result, as a program or a notebook calls it.

It is the same run that `dvc repro` makes: the same store, events and commits, in a git
repository of its own or one that is named.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

from skilltrail.api.items import Records, splits_of
from skilltrail.api.result import Result
from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.layout import EVENTS
from skilltrail.data.splits import write_splits
from skilltrail.envs.by_function import (
    ENVIRONMENT_FILE,
    FUNCTION,
    Metric,
    MetricEnv,
    MetricParams,
    named,
)
from skilltrail.history.git.process import make_repository
from skilltrail.history.git.repository import Git
from skilltrail.history.log.log import read_log
from skilltrail.methods.registry import train
from skilltrail.models.names import model_params
from skilltrail.params.edit import set_params
from skilltrail.params.read import load_params
from skilltrail.report.build import build
from skilltrail.runtime.console import console
from skilltrail.runtime.evaluation import asked_by_params, write_outputs
from skilltrail.runtime.evaluation import evaluate as measured
from skilltrail.runtime.session import Setup, open_session
from skilltrail.runtime.template import init_workspace
from skilltrail.runtime.training import open_training
from skilltrail.store.place import Place

SEED = "skills/seeds/metric.md"
Named = str | Mapping[str, Any]


def optimize(
    *,
    items: Records,
    metric: Metric,
    skill: str | Path = "",
    target: Named = "local",
    optimizer: Named | None = None,
    lr: int = 4,
    epochs: int = 4,
    seed: int = 42,
    ratio: str | None = None,
    columns: Mapping[str, str] | None = None,
    workspace: str | Path | None = None,
    evaluate: bool = True,
    progress: bool = True,
    **params: Any,
) -> Result:
    """Train a skill for `target` on `items` and return what came of it.

    Args:
        items: mappings with a `question` (or prompt, input, …) and whatever the metric reads;
            pairs of question and answer; a file's path; or a mapping of splits to such lists.
        metric: takes an item and a reply; returns a score in [0, 1], or score and feedback.
        skill: the text to start from, or the path of a Markdown file.
        target: `local`, `openai:gpt-4o-mini`, `ollama:qwen2.5:7b@URL`, or params of a role.
        optimizer: as target, or `rules`; None = the target itself, `rules` for `local`.
        lr: most edits applied in a step.
        epochs: passes over the train split.
        ratio: train:selection:test; None = alike up to 300 items.
        columns: fields of the items by what they are, `{"question": "Ticket text"}`, where
            their names do not say it.
        workspace: a folder, made a git repository if it is none; None = a temporary one that
            lives as long as the result.
        evaluate: False keeps the test split sealed.
        progress: False writes nothing to stderr.
        params: any other param of params.yaml, sections as mappings: `gate={"rule": "paired"}`.

    Raises:
        SkilltrailError: what was asked, what was found, what to do.

    Works where a loop is running already, as in a notebook. See `aoptimize` for a coroutine.
    """
    call = aoptimize(
        items=items, metric=metric, skill=skill, target=target, optimizer=optimizer, lr=lr,
        epochs=epochs, seed=seed, ratio=ratio, columns=columns, workspace=workspace,
        evaluate=evaluate, progress=progress, **params,
    )  # fmt: skip
    return _in_a_loop(call)


async def aoptimize(
    *,
    items: Records,
    metric: Metric,
    skill: str | Path = "",
    target: Named = "local",
    optimizer: Named | None = None,
    lr: int = 4,
    epochs: int = 4,
    seed: int = 42,
    ratio: str | None = None,
    columns: Mapping[str, str] | None = None,
    workspace: str | Path | None = None,
    evaluate: bool = True,
    progress: bool = True,
    **params: Any,
) -> Result:
    """The coroutine of `optimize`, with the same arguments."""
    kept = tempfile.TemporaryDirectory(prefix="skilltrail-") if workspace is None else None
    folder = Path(str(workspace) if kept is None else kept.name).resolve()
    text = _skill_text(skill)
    values = {"lr": lr, "epochs": epochs, "seed": seed, **_flat(params)}
    values |= _roles(target, optimizer)
    token = FUNCTION.set(metric)
    try:
        own = MetricParams(function=named(metric), **params.get("envs", {}).get("metric", {}))
        env = MetricEnv(own)
        with _quiet(not progress):
            splits = splits_of(items, env, seed, ratio, columns)
        await asyncio.to_thread(_prepare, folder, text, values, own)
        write_splits(folder, splits, {"env": env.name, "how": "by the program", "warnings": []})
        read = load_params(folder / "params.yaml", {"metric": MetricParams})
        setup = Setup(Place(folder, folder), read, env)
        with _quiet(not progress):
            async with (
                open_session("train", setup=setup) as session,
                open_training(session) as training,
            ):
                state = await train(training.run)
                training.write_outputs(state)
            async with open_session("evaluate", setup=setup) as session:
                training_log = read_log(folder / EVENTS)
                session.meter.belongs_to(training_log[-1].id)
                asked = asked_by_params(session, training_log)
                evaluation = await measured(session, asked) if evaluate else []
                write_outputs(session, evaluation)
            await asyncio.to_thread(build, folder, folder)
    finally:
        FUNCTION.reset(token)
    return Result(folder, state.best_skill, text, training_log, evaluation, kept)


def _in_a_loop(call: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, in a thread of its own where a loop is running here."""
    try:
        running = asyncio.get_running_loop() is not None
    except RuntimeError:
        running = False  # and the run outside this `except`, or its errors would hang from this
    if not running:
        return asyncio.run(call)
    found: list[Result] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(call))
        except BaseException as error:  # noqa: BLE001 (raised again where it was called)
            raised.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def _skill_text(skill: str | Path) -> str:
    from skilltrail.runtime.training import read_seed_skill

    is_path = isinstance(skill, Path) or ("\n" not in skill and skill.endswith(".md"))
    return read_seed_skill(Path(skill)) if is_path else str(skill)


def _roles(target: Named, optimizer: Named | None) -> dict[str, Any]:
    found = _role("target", target)
    if optimizer is None:
        embedded = found["target.backend"] in ("local", "openvino")
        optimizer = "rules" if embedded else target
    return found | _role("optimizer", optimizer)


def _role(role: str, said: Named) -> dict[str, Any]:
    return model_params(role, said) if isinstance(said, str) else _flat({role: said})


def _flat(params: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested params by dotted key; `envs` is left to its environment."""
    found: dict[str, Any] = {}
    for key, value in params.items():
        if key == "envs" and not before:
            continue
        if isinstance(value, Mapping) and key not in ("price", "budget", "retry", "exec"):
            found |= _flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def _prepare(folder: Path, skill: str, values: Mapping[str, Any], own: MetricParams) -> None:
    """Make the workspace, or take the one that an earlier call made, and set its params."""
    params = folder / "params.yaml"
    if not params.exists():
        _repository(folder)
        init_workspace(folder, None)
        write_atomic(folder / "envs" / "metric" / "env.py", ENVIRONMENT_FILE)
    elif not (folder / "envs" / "metric" / "env.py").exists():
        raise UsageError(
            f"workspace={folder}",
            "a workspace that `optimize` did not make",
            "Name another folder; `dvc repro` trains in this one",
        )
    write_atomic(folder / SEED, skill)
    options = {"function": own.function, "whole": own.whole}
    set_params(
        params,
        {"env": "metric", "skill.seed": SEED, "envs": {"metric": options}, **values},
    )


def _repository(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if Git.find(folder) is None:
        make_repository(folder)


@contextmanager
def _quiet(quiet: bool) -> Iterator[None]:
    before = console().quiet
    console().quiet = quiet or before
    try:
        yield
    finally:
        console().quiet = before
