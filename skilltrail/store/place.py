"""Where a project keeps its live state: `.skilltrail/` of the main repository.

DVC names the main repository in `DVC_ROOT`, in temporary experiment workspaces too, so all
experiments of one clone share facts. Without DVC the project root is the nearest folder, from
the working directory upwards, that holds `dvc.yaml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from skilltrail.core.errors import UsageError
from skilltrail.store.owner import process_of

STATE = ".skilltrail"


@dataclass(frozen=True)
class Place:
    """The folders of one run.

    Attributes:
        root: the main repository's project folder; the live state lies here.
        workspace: the folder whose files this run reads and writes; differs from `root` in a
            temporary experiment workspace.
        experiment: the DVC experiment's name; None outside experiments.
    """

    root: Path
    workspace: Path
    experiment: str | None = None

    @property
    def state(self) -> Path:
        return self.root / STATE

    @property
    def is_temporary(self) -> bool:
        """True in an experiment that runs in a workspace of its own."""
        return self.experiment is not None and self.workspace != self.root


def find_place(cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> Place:
    """Return the place of a run started in `cwd` (default: the working directory).

    Raises:
        UsageError: no project folder is found.
    """
    environ = os.environ if environ is None else environ
    cwd = (Path.cwd() if cwd is None else cwd).resolve()
    named = environ.get("DVC_ROOT", "")
    workspace = project_above(cwd)
    if named:
        root = Path(named).resolve()
        if not root.is_dir():
            raise UsageError(
                "DVC_ROOT must name the main repository", f"no folder {named}", "Unset DVC_ROOT"
            )
    elif workspace is not None:
        root = workspace
    else:
        raise UsageError(
            f"No Skilltrail project at {cwd} or above it",
            "no dvc.yaml",
            "Change into a workspace, or make one here: `skilltrail init --data FILE`",
        )
    experiment = environ.get("DVC_EXP_NAME", "")
    return Place(
        root=root,
        workspace=root if workspace is None else workspace,
        experiment=experiment if experiment else None,
    )


def project_above(folder: Path) -> Path | None:
    """Return the nearest folder, from this one upwards, that holds `dvc.yaml`."""
    for candidate in (folder, *folder.parents):
        if (candidate / "dvc.yaml").is_file():
            return candidate
    return None


def dvc_run() -> str | None:
    """Return what names the running `dvc` command (pid and start time), None without one.

    Stages of one `dvc repro` have the same answer, stages of another one have another.
    """
    try:
        parents = psutil.Process().parents()
    except psutil.Error:
        return None
    return next((name for name in map(_dvc_name, parents) if name is not None), None)


def _dvc_name(process: psutil.Process) -> str | None:
    """Return the process's name for `dvc_run` if it is DVC, told by its first words."""
    try:
        words = [Path(word).name for word in process.cmdline()[:3]]
        return f"{process.pid}@{process_of(process.pid).ticks}" if "dvc" in words else None
    except psutil.Error:
        return None
