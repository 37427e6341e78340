"""Finding an environment by its name: a folder with an `env.py`.

The library has its own beside this file; a workspace may have more in `envs/<name>/`. Those are
imported as `skilltrail.envs.<name>` too, so that their modules name each other the same way.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import skilltrail.envs
from skilltrail.core.errors import SkilltrailError, UsageError, raised_at
from skilltrail.envs.protocol import Environment
from skilltrail.store.place import project_above

LIBRARY = Path(__file__).resolve().parent
OWN = "envs"  # the folder of a workspace's own environments


def environment_folders() -> dict[str, Path]:
    """Return the folder of every environment by name, sorted; `_template` is none.

    Raises:
        UsageError: one of the workspace bears a name of the library.
    """
    found: dict[str, Path] = {}
    own = own_folder()
    for path in [*LIBRARY.glob("*/env.py"), *([] if own is None else own.glob("*/env.py"))]:
        name = path.parent.name
        if name in found:
            remedy = "Rename the folder, and `name` in its env.py"
            raise UsageError(f"{OWN}/{name}", "a name of the library", remedy)
        if not name.startswith("_"):
            found[name] = path.parent
    return dict(sorted(found.items()))


def own_folder() -> Path | None:
    """Return the folder of the workspace's own environments, where there may be any."""
    root = project_above(Path.cwd())
    return None if root is None else root / OWN


def environment_names() -> list[str]:
    """Return the names of all environments, sorted."""
    return list(environment_folders())


@functools.cache
def is_foreign(kind: type) -> bool:
    """Return whether an environment's class is not the library's own."""
    return not Path(inspect.getfile(kind)).resolve().is_relative_to(LIBRARY)


def environment_class(name: str) -> type[Any]:
    """Return the class of one environment; only its own module is imported.

    Raises:
        UsageError: there is no such environment, or its module cannot be imported.
    """
    folders = environment_folders()
    if name not in folders:
        near = difflib.get_close_matches(name, folders, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            "env in params.yaml",
            f"no environment {name!r}",
            f"{hint}There are {', '.join(folders)}; `skilltrail new-env {name}` makes one",
        )
    if folders[name].parent != LIBRARY:
        _reach(folders[name])
    try:
        found: type[Any] = importlib.import_module(f"skilltrail.envs.{name}.env").ENVIRONMENT
    except SkilltrailError:
        raise
    except Exception as error:  # foreign code
        raise UsageError(
            f"the environment {name}", raised_at(error), f"Fix {folders[name].name}/env.py"
        ) from error
    return found


def _reach(folder: Path) -> None:
    """Let Python find a workspace's environment, and forget one of another workspace."""
    if str(folder.parent) not in skilltrail.envs.__path__[1:]:
        skilltrail.envs.__path__[1:] = [str(folder.parent)]
    package = f"skilltrail.envs.{folder.name}"
    known = sys.modules.get(f"{package}.env")
    if known is not None and Path(inspect.getfile(known)).parent != folder:
        for module in [m for m in sys.modules if m == package or m.startswith(f"{package}.")]:
            del sys.modules[module]
    importlib.invalidate_caches()


def load_environment(name: str, params: Any) -> Environment:
    """Return an environment with its typed params.

    Raises:
        UsageError: as `environment_class`, or its class lacks what each must have.
    """
    try:
        environment: Environment = environment_class(name)(params)
    except TypeError as error:
        asked = f"the environment {name}"
        raise UsageError(asked, str(error), "Write what it lacks") from error
    return environment


class ParamClasses(Mapping[str, type]):
    """Environment name -> its params class, imported only when asked for."""

    def __getitem__(self, name: str) -> type:
        if name not in environment_names():
            raise KeyError(name)
        params: type = environment_class(name).Params
        return params

    def __iter__(self) -> Iterator[str]:
        return iter(environment_names())

    def __len__(self) -> int:
        return len(environment_names())
