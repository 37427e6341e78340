"""The wheel holds all that the source tree holds, and what is imported is declared."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def carried() -> dict[str, str]:
    """Return what the wheel carries from beside the package: path here -> path in it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("wheel.force-include]")[1].split("\n[")[0]
    return dict(re.findall(r'^"(.+)" = "(.+)"$', section, re.MULTILINE))


def sources() -> list[Path]:
    """Return every file that the wheel is made of, relative to the root."""
    tops = [ROOT / "skilltrail", *(ROOT / name for name in carried())]
    return sorted(
        path.relative_to(ROOT)
        for top in tops
        for path in ([top] if top.is_file() else top.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel in a copy and return it unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    copy, out = place / "copy", place / "out"
    for path in [*sources(), *map(Path, ("pyproject.toml", "README.md", "LICENSE"))]:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)
    code = "import sys; from hatchling import build as b; b.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=copy, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    [built] = out.glob("skilltrail-*.whl")
    zipfile.ZipFile(built).extractall(place / "unpacked")
    return place / "unpacked"


def placed(path: Path) -> Path:
    """Return where a file of the source tree lies in the wheel."""
    for here, there in carried().items():
        if path.is_relative_to(here):
            return Path(there) / path.relative_to(here)
    return path


def test_the_wheel_holds_every_prompt_schema_rule_and_page(wheel: Path) -> None:
    """Case cli-09: an installed wheel that lacks its prompt files."""
    missing = [path.as_posix() for path in sources() if not (wheel / placed(path)).is_file()]
    assert missing == []
    changed = [
        path
        for path in sources()
        if (wheel / placed(path)).read_bytes() != (ROOT / path).read_bytes()
    ]
    assert changed == []


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"skilltrail"}


def test_prompts_and_schemas_load_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    code = """
from importlib.resources import files
import pathlib, skilltrail
from skilltrail.core import schemas
assert not pathlib.Path(skilltrail.__file__).is_relative_to(%r)
names = [f"events/{name}" for name in schemas.names("events")]
assert len(names) > 10
assert all(schemas.load(name)["type"] == "object" for name in names)
for path in %r:
    room, *rest = path.split("/")
    assert files(room).joinpath(*rest).read_text(encoding="utf-8").strip()
"""
    data = [
        placed(path).as_posix()
        for path in sources()
        if path.suffix in (".md", ".yaml", ".json")
    ]
    python(code % (str(ROOT), data), wheel, tmp_path)


def test_the_command_runs_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    code = "import sys; from skilltrail.cli.main import run; sys.exit(run(['--help']))"
    assert "skilltrail params" in python(code, wheel, tmp_path)
    entry = next(wheel.glob("*.dist-info/entry_points.txt")).read_text(encoding="utf-8")
    assert "skilltrail = skilltrail.cli.main:main" in entry


def python(code: str, wheel: Path, folder: Path) -> str:
    """Run code that finds the wheel, and not the source tree."""
    env = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- dependencies ---


def declared() -> dict[str, set[str]]:
    """Return the distributions that pyproject.toml names, by extra ("" = always installed)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = {"": listed(text, "dependencies")}
    extras = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    for name in re.findall(r"^(\w+) = \[", extras, re.MULTILINE):
        found[name] = listed(extras, name)
    return found


def listed(text: str, name: str) -> set[str]:
    body = re.search(rf"^{name} = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    return {normal(re.split(r"[<>=!~;\[ ]", one)[0]) for one in re.findall(r'"(.*?)"', body[1])}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Return the top-level names of foreign modules that the package imports."""
    names = set()
    for path in sources():
        if path.suffix == ".py" and path.parts[0] == "skilltrail":
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.add(node.module.split(".")[0])
    return names - {"skilltrail"} - set(sys.stdlib_module_names)


def test_what_is_imported_is_a_declared_dependency() -> None:
    known = packages_distributions()
    allowed = set().union(*declared().values())
    undeclared = {
        name
        for name in imported()
        if not {normal(one) for one in known.get(name, [name])} & allowed
        and not any(one.startswith(f"{normal(name)}-") for one in allowed)
    }
    assert undeclared == set()


def test_what_is_always_installed_is_imported() -> None:
    """All but DVC, which is run as a program."""
    known = packages_distributions()
    used = {normal(one) for name in imported() for one in known.get(name, [name])}
    assert declared()[""] - used <= {"dvc"}


def test_every_dependency_is_pinned() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line for line in pins if not re.match(r"[a-z0-9-]+==[^ ]+( ; .*)?$", line)] == []
    pinned = {line.split("==")[0] for line in pins}
    assert set().union(*declared().values()) - pinned == set()
