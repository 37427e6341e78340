"""Everything back to the run of HEAD: its branch, params, dvc.lock, data, skills, reports.

An experiment leaves its params and results in the workspace, finished or not. What git holds of
a run comes back from git, what DVC holds from its cache, by the dvc.lock of HEAD; what stood
there before is kept, unless an experiment's commit has it. Code, items and seeds are a person's
and stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from skilltrail.cli.repair.case import Site
from skilltrail.cli.repair.doctor import fix_all, refuse_at_work, refuse_under_way
from skilltrail.cli.repair.files import PIPELINE
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.history.git.repository import Git
from skilltrail.params.read import FILE
from skilltrail.runtime.last_lock import LOCK

ASKED = "Taking everything back to the run of HEAD"


@dataclass(frozen=True)
class Outputs:
    """What the pipeline writes, by who holds it: git, or DVC's cache; and its stages."""

    in_git: tuple[str, ...]
    stages: tuple[str, ...]


def back(case: Site) -> Iterator[str]:
    """Take everything back, and yield what was done.

    Raises:
        UsageError: a run is on, this is no git repository, HEAD has no commit, or a merge or
            the like is under way.
        SkilltrailError: git or DVC refused.
    """
    refuse_at_work(case, ASKED)
    git = case.git
    if git is None or case.head is None:
        raise UsageError(
            ASKED, "no commit is here to go back to", "`git init`, then commit a run"
        )
    refuse_under_way(case, ASKED)
    yield from fix_all(case)
    outputs = outputs_at_head(git)
    yield from _from_git(case, git, outputs)
    if git.ask("cat-file", "-e", f"HEAD:./{LOCK}") is None:
        yield f"HEAD has no {LOCK}, so no run: the outputs that are here stay"
    else:
        yield from _from_cache(case, outputs)


def outputs_at_head(git: Git) -> Outputs:
    """Return what the dvc.yaml of HEAD says that its stages write.

    Raises:
        UsageError: HEAD has none, or one that cannot be read.
    """
    text = git.ask("cat-file", "--filters", f"HEAD:./{PIPELINE}")
    try:
        stages = YAML(typ="safe").load(b"" if text is None else text)["stages"]
        kept = [
            path for stage in stages.values() for path, cached in _outs(stage) if not cached
        ]
    except (YAMLError, KeyError, TypeError, AttributeError) as error:
        remedy = f"Commit a whole {PIPELINE} first"
        raise UsageError(ASKED, f"HEAD has no {PIPELINE} that can be read", remedy) from error
    return Outputs(tuple(kept), tuple(stages))


def _outs(stage: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield each output's path and whether DVC caches it."""
    for kind in ("outs", "metrics", "plots"):
        for entry in stage.get(kind, []):
            path, options = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            yield path, options.get("cache", True)


def _from_git(case: Site, git: Git, outputs: Outputs) -> Iterator[str]:
    """Restore params, dvc.lock and results that git holds; keep what no experiment has."""
    names = [name for name in (FILE, LOCK, *outputs.in_git) if _committed(git, name)]
    changed = sorted({*_changed(git, names), *_changed(git, names, "--cached")})
    if not changed:
        return
    saved = _experiment_with(git, changed)
    for name in changed if saved is None else []:
        case.kept.keep(name)
    git.here("restore", "--source=HEAD", "--staged", "--worktree", "--", *changed)
    yield f"as HEAD has them: {', '.join(changed)}"
    if saved is not None:
        yield f"the experiment is kept: `dvc exp apply {saved}` brings it here again"


def _changed(git: Git, names: Sequence[str], *how: str) -> list[str]:
    asked = ("diff", "--name-only", "--no-renames", "-z", "--relative", *how, "HEAD", "--")
    return [os.fsdecode(name) for name in git.here(*asked, *names).split(b"\0") if name]


def _from_cache(case: Site, outputs: Outputs) -> Iterator[str]:
    """Let DVC check out what the dvc.lock of HEAD names."""
    from dvc.exceptions import CheckoutError, DvcException  # a second, which only this needs
    from dvc.repo import Repo

    try:
        with Repo(str(case.root)) as repo:
            repo.checkout(targets=list(outputs.stages), force=True)
    except CheckoutError as error:
        missing = ", ".join(
            sorted(os.path.relpath(path, case.root) for path in error.target_infos)
        )
        yield (
            f"not in the cache: {missing}; `dvc pull` brings it, or `dvc repro`, which makes "
            "no call that is recorded"
        )
    except DvcException as error:
        raise SkilltrailError("dvc checkout", str(error), "`dvc status` says more") from error
    else:
        yield "data, rollouts and pages are those of HEAD's run"


def _committed(git: Git, name: str) -> bool:
    return git.ask("cat-file", "-e", f"HEAD:./{name}") is not None


def _experiment_with(git: Git, names: Sequence[str]) -> str | None:
    """Return an experiment whose commit has all these files as they are here."""
    for ref in git.refs("refs/exps"):
        parts = ref.split("/")  # refs/exps/ab/cdef…/NAME
        if len(parts) == 5 and git.ask("diff", "--quiet", ref, "--", *names) is not None:
            return parts[-1]
    return None
