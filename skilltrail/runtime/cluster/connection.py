"""Connecting to Ray, and what every node is handed: code, own environments, files of items.

They lie in one folder that Ray packs, names by a digest of its content and brings to each node
once (a working directory in its words). No key is in it: a node that calls a provider has the
key in an environment of its own.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skilltrail.core.errors import ParamError, SkilltrailError
from skilltrail.core.schemas import FOLDER as SCHEMAS
from skilltrail.envs.kit.files import NamesFiles
from skilltrail.envs.protocol import Environment
from skilltrail.envs.registry import OWN
from skilltrail.models.protocol import Model
from skilltrail.params.executor import RayOptions
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.cluster.maker import RayMaker, Report, refuse_models_of_here
from skilltrail.runtime.cluster.purse import Purse
from skilltrail.runtime.code_identity import PACKAGE
from skilltrail.runtime.console import say
from skilltrail.runtime.spending import Accounts

_STARTED_HERE = "local"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git*", ".env*")


class Cluster:
    """A connection to Ray; makers of one session share it."""

    def __init__(
        self, ray: Any, resources: Mapping[str, float], accounts: Accounts, report: Report
    ) -> None:
        self._ray, self._resources = ray, resources
        self._accounts, self._report = accounts, report
        self._purses: dict[str, Any] = {}

    def maker(
        self, env: Environment, role: str, options: RoleOptions, target: Model
    ) -> RayMaker:
        """Return who makes rollouts of `env` by this target on the cluster.

        Raises:
            ModelConfigError: the target answers on this machine alone, or is several.
        """
        refuse_models_of_here(role, options, target)
        return RayMaker(
            self._ray, env, role, options, target, self._resources,
            purse=lambda: self._purse(role, options), say=say, report=self._report,
        )  # fmt: skip

    def _purse(self, role: str, options: RoleOptions) -> Any:
        """Return the actor that keeps a role's account, started beside the head."""
        limits = options.budget
        if (limits.calls, limits.tokens, limits.usd) == (None, None, None):
            return None
        if role not in self._purses:
            node = self._ray.get_runtime_context().get_node_id()
            beside = {"label_selector": {"ray.io/node-id": node}, "num_cpus": 0}
            actor = self._ray.remote(Purse).options(max_concurrency=1000, **beside)
            self._purses[role] = actor.remote(role, options, self._accounts.ledger)
        return self._purses[role]


@contextmanager
def connected(
    workspace: Path, options: RayOptions, env: Environment, accounts: Accounts, report: Report
) -> Iterator[Cluster]:
    """Yield a connection to the cluster that params name.

    Raises:
        ParamError: what a rollout takes is no amount, or files lie outside the workspace.
        SkilltrailError: Ray is not installed, or the cluster does not answer.
    """
    resources = needs_of(options)
    ray = _imported()
    with TemporaryDirectory(prefix="skilltrail-") as folder:
        stage(Path(folder), workspace, env)
        _connect(ray, options.address, folder)
        try:
            yield Cluster(ray, resources, accounts, report)
        finally:
            ray.shutdown()


def needs_of(options: RayOptions) -> dict[str, float]:
    """Return what a rollout takes of a node.

    Raises:
        ParamError: nothing, or something that is no positive amount.
    """
    if not options.resources:
        raise ParamError("ray.resources", "empty", "Write what a rollout takes, such as cpu: 1")
    for name, amount in options.resources.items():
        known = isinstance(amount, (int, float)) and not isinstance(amount, bool)
        if not known or not 0 < amount < math.inf:
            raise ParamError(f"ray.resources.{name}", repr(amount), "Write a positive number")
    return {name: float(amount) for name, amount in options.resources.items()}


def stage(folder: Path, workspace: Path, env: Environment) -> None:
    """Fill a folder with what a rollout reads, laid out as a workspace is.

    Raises:
        ParamError: the environment's files lie outside the workspace.
    """
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=_LEFT_OUT)
    shutil.copytree(SCHEMAS, folder / "schemas", ignore=_LEFT_OUT)
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")
    if (workspace / OWN).is_dir():
        shutil.copytree(workspace / OWN, folder / OWN, ignore=_LEFT_OUT)
    for found in env.folders if isinstance(env, NamesFiles) else ():
        # Files that items name by digest; links, as into DVC's cache, become files.
        inside = Path(os.path.normpath(found))
        if not inside.is_relative_to(workspace):
            raise ParamError(
                f"envs.{env.name}.data_dirs",
                f"{found}, outside the workspace, with executor: ray",
                "Put the folder, or a link to it, into the workspace: nodes are handed it",
            )
        there = folder / inside.relative_to(workspace)
        shutil.copytree(found, there, ignore=_LEFT_OUT, dirs_exist_ok=True)


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise SkilltrailError(
            "executor: ray", str(error), 'Install it: pip install "skilltrail[ray]"'
        ) from error
    return ray


def _connect(ray: Any, address: str, folder: str) -> None:
    """Connect, and leave signals to who had them: Ray would end the process at once."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    mine = threading.current_thread() is threading.main_thread()
    kept = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address,
            runtime_env={"working_dir": folder},
            logging_level="error",
            log_to_driver=False,
            **({"include_dashboard": False} if address == _STARTED_HERE else {}),
        )
    except Exception as error:  # Ray raises bare ones too
        ray.shutdown()
        raise SkilltrailError(
            f"ray.address: {address}",
            str(error).strip(),
            "Start a cluster (`ray start --head`), name one, or write `local`",
        ) from error
    finally:
        if mine:
            signal.signal(signal.SIGTERM, kept)
