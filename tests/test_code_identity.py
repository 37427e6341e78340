"""What counts as code that can change a result: one list, which DVC and the digest share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dvc.ignore import DvcIgnoreFilter
from dvc.repo import Repo
from ruamel.yaml import YAML

from skilltrail.runtime.code_identity import PACKAGE, ROOMS, code_digest, counted_files

ROOT = Path(__file__).resolve().parents[1]
CODE = {"schemas", *(f"skilltrail/{room}" for room in ROOMS)}
STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text("utf-8"))["stages"]


@pytest.mark.parametrize("name", list(STAGES))
def test_a_stage_depends_on_the_rooms_of_the_digest_and_on_no_other(name: str) -> None:
    own = {"skilltrail/report", "skilltrail/verify"} if name == "report" else set()
    deps = {
        dep for dep in STAGES[name]["deps"] if dep.split("/")[0] in ("schemas", "skilltrail")
    }
    assert deps == CODE | own


def test_dvc_hashes_the_files_of_the_digest_and_no_other() -> None:
    ignore: DvcIgnoreFilter = Repo(str(ROOT)).dvcignore
    seen = {
        path
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*")
        if path.is_file() and path.suffix in (".py", ".md", ".yaml")
        if not ignore.is_ignored_file(str(path))
    }
    assert seen == set(counted_files())


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for room in (*ROOMS, "cli", "report"):
        (tmp_path / room).mkdir()
    (tmp_path / "method" / "loop.py").write_text("a = 1\n", "utf-8")
    (tmp_path / "method" / "README.md").write_text("one\n", "utf-8")
    (tmp_path / "cli" / "main.py").write_text("b = 1\n", "utf-8")
    return tmp_path


def changed(package: Path, path: str) -> bool:
    before = code_digest.__wrapped__(package)
    (package / path).write_text("c = 2\n", "utf-8")
    return code_digest.__wrapped__(package) != before


def test_an_edit_to_a_readme_or_a_command_leaves_the_digest_as_it_is(package: Path) -> None:
    assert not changed(package, "method/README.md")
    assert not changed(package, "cli/main.py")


def test_an_edit_to_the_method_or_a_new_prompt_changes_the_digest(package: Path) -> None:
    assert changed(package, "method/loop.py")
    assert changed(package, "optimizers/new.md")
    shutil.rmtree(package / "optimizers")
    assert changed(package, "core/x.yaml")
