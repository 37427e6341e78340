"""From a task of Inspect to records, and from an item back to the task's sample.

A record holds the whole sample, so that a rollout needs no data set and no network: what the
agent may see in `input`, target and metadata beside it. Since the task's own scorer runs inside
the rollout, a digest of the latter is part of the input: a changed target is another rollout.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skilltrail.core.canon import digest
from skilltrail.core.errors import DataError, ParamError, raised_at
from skilltrail.core.item import Item
from skilltrail.envs.kit.files import file_digest, find_known

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample

TRACKED = ("data/inspect", "envs")  # what DVC watches: a task elsewhere could change unseen
_PARAM = "envs.inspect.task"
_FORMS = "Write data/inspect/FILE.py@NAME, or PACKAGE/NAME of an installed package"
_GROUP = "inspect_ai"  # the entry points by which packages name their tasks


def load_task(root: Path, spec: str, args: Mapping[str, Any]) -> Task:
    """Return the task that `spec` names: `FILE.py@NAME` under `root`, or `PACKAGE/NAME`.

    Raises:
        ParamError: there is no such task, or it cannot be made with `args`.
    """
    place, _, name = spec.rpartition("@" if ".py" in spec else "/")
    if not place or not name:
        raise ParamError(_PARAM, f"{spec!r}", _FORMS)
    path = _tracked(root, place) if place.endswith(".py") else None
    try:
        with nullcontext() if path is None else _beside(path.parent):
            module = _package(place) if path is None else _file(path)
            made = getattr(module, name, None)
            if not callable(made):
                raise ParamError(_PARAM, f"no task {name!r} in {place}", _FORMS)
            return _checked(made(**args), spec)
    except ParamError:
        raise
    except Exception as error:  # foreign code
        remedy = "Mend the task, or envs.inspect.task_args"
        raise ParamError(f"{_PARAM}: {spec}", raised_at(error), remedy) from error


def _checked(made: Any, spec: str) -> Task:
    from inspect_ai import Task

    if not isinstance(made, Task):
        raise ParamError(_PARAM, f"{spec} gives a {type(made).__name__} and no Task", _FORMS)
    if made.scorer is None:
        raise ParamError(
            _PARAM, f"{spec} has no scorer", "Give the task one: training needs it"
        )
    return made


def folder_of(root: Path, spec: str) -> Path:
    """Return the folder that relative paths of a task start from: that of its file."""
    place = spec.rpartition("@")[0]
    return (root / place).resolve().parent if place.endswith(".py") else root


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Be where Inspect is while it reads a task's file: in its folder, whose modules can be
    imported. They are forgotten afterwards, as a change of theirs would stay unseen."""
    here, path, known, cached = Path.cwd(), sys.path, set(sys.modules), sys.dont_write_bytecode
    sys.path, sys.dont_write_bytecode = [str(folder), *path], True
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        sys.path, sys.dont_write_bytecode = path, cached
        for name in sys.modules.keys() - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]


def task_version(root: Path, spec: str) -> str:
    """Return what stands for the task's code in fact keys: its file's digest, or the version
    of its package; modules that a file imports are not in it.
    """
    place = spec.rpartition("@")[0]
    if place.endswith(".py"):
        path = root / place
        return file_digest(path)[:16] if path.is_file() else "absent"
    package = spec.partition("/")[0]
    try:
        return importlib.metadata.version(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return "absent"


def _tracked(root: Path, place: str) -> Path:
    path = (root / place).resolve()
    if not any(path.is_relative_to((root / folder).resolve()) for folder in TRACKED):
        found = f"{place} is under neither {' nor '.join(TRACKED)}, so no change would be seen"
        raise ParamError(_PARAM, found, f"Move it there. {_FORMS}")
    if not path.is_file():
        raise ParamError(_PARAM, f"there is no file {place}", _FORMS)
    return path


def _file(path: Path) -> Any:
    # From the text itself: Python's own cache takes a file of the same second and size for the
    # old one.
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def _package(name: str) -> Any:
    for entry in importlib.metadata.entry_points(group=_GROUP):
        if entry.name == name:
            return entry.load()
    known = sorted(entry.name for entry in importlib.metadata.entry_points(group=_GROUP))
    found = (
        f"no installed package {name!r} offers tasks; there are {', '.join(known) or 'none'}"
    )
    raise ParamError(_PARAM, found, _FORMS)


def records_of(task: Task, root: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one record per sample of the task, in its order; `folder`: see `folder_of`.

    Samples without an id bear their place, from 1, as Inspect counts them.
    """
    for place, sample in enumerate(task.dataset, 1):
        shown = sample.model_dump(mode="json", exclude_none=True)
        if not isinstance(sample.input, str):
            # Inspect gives each message an id of its own at each start.
            shown["input"] = [_without_id(message) for message in shown["input"]]
        if sample.files:
            shown["files"] = {k: _file_of(v, root, folder) for k, v in sample.files.items()}
        scored = {name: shown.pop(name, None) for name in ("target", "metadata")}
        id = shown.pop("id", place)
        kind = (scored["metadata"] or {}).get("task_type")
        yield {"id": str(id), "sample": shown, **scored, "task_type": kind}


def _without_id(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "id"}


def _file_of(value: str, root: Path, folder: Path) -> Any:
    """Return a file of a sample as it is kept: an inline text, or a path and its digest."""
    named = len(value) < 4096 and not {"\n", "\0"} & set(value)
    paths = [base / value for base in (folder, root)] if named else []
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return value
    inside = path.resolve()
    if not inside.is_relative_to(root.resolve()):
        found = f"its file {path.name} lies outside the project"
        raise DataError("A sample of the task", found, "Keep its files under data/inspect")
    place = inside.relative_to(root.resolve()).as_posix()
    return {"path": place, "sha256": file_digest(inside)}


def input_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of the item of a record; see the module's docstring."""
    scored = {"target": record.get("target"), "metadata": record.get("metadata")}
    return {"sample": record["sample"], "scored_by": digest("inspect-gold/1", scored)}


def sample_of(item: Item, root: Path, id: str) -> Sample:
    """Return the sample of an item under another id.

    Raises:
        DataError: one of its files is not what it was.
    """
    from inspect_ai.dataset import Sample

    shown = dict(item.input["sample"])
    files = {
        name: one
        if isinstance(one, str)
        else str(find_known(one["path"], one["sha256"], [root]))
        for name, one in shown.get("files", {}).items()
    }
    about = {**shown, **item.gold, "id": id} | ({"files": files} if files else {})
    return Sample.model_validate({k: v for k, v in about.items() if v is not None})


def question_of(sample: Mapping[str, Any]) -> str:
    """Return what a sample asks, as one text: its messages, then its choices."""
    asked = sample["input"]
    texts = [asked] if isinstance(asked, str) else [_text(message) for message in asked]
    choices = sample.get("choices") or []
    lines = [f"{chr(ord('A') + n)}) {choice}" for n, choice in enumerate(choices)]
    return "\n".join([*texts, *lines])


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
