"""The pipeline as DVC sees it: what dvc.yaml says, and what a clone does with it.

The clone's stages are stubs that write their outputs, so that only DVC's part is tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from skilltrail.params.fields import Params
from skilltrail.params.knob import fields_of

ROOT = Path(__file__).resolve().parents[1]
STAGES: dict[str, Any] = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text("utf-8"))["stages"]
PARAMS: dict[str, Any] = YAML(typ="safe").load((ROOT / "params.yaml").read_text("utf-8"))
EVALUATION = "reports/out/evaluation.jsonl"
KINDS = ("outs", "metrics", "plots")


def outputs(stage: str) -> dict[str, dict[str, Any]]:
    """Return the options of each output of a stage, by path."""
    found: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        for entry in STAGES[stage].get(kind, []):
            found |= {entry: {}} if isinstance(entry, str) else entry
    return found


# --- what dvc.yaml says ---


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_deps_and_outs_and_none_is_always_changed(stage: str) -> None:
    """Case dvc-03: such stages are restored wrongly, or never."""
    assert STAGES[stage]["deps"]
    assert outputs(stage)
    assert "always_changed" not in STAGES[stage]


def test_the_stages_come_in_the_order_of_the_method() -> None:
    assert list(STAGES) == ["split", "train", "evaluate", "report"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_params_that_exist(stage: str) -> None:
    for key in STAGES[stage].get("params", []):
        value: Any = PARAMS
        for part in key.split("."):
            value = value[part]


def test_training_depends_on_every_param_but_those_of_other_stages() -> None:
    # Where rollouts are made and facts are shared is no result: another place runs nothing.
    places = {"executor", "ray", "store"}
    named = {key.split(".")[0] for key in STAGES["train"]["params"]}
    assert {field.key for field in fields_of(Params)} - named == {"evaluate"} | places


@pytest.mark.parametrize("stage", ["split", "train", "evaluate"])
def test_the_chosen_environment_is_a_param_of_every_stage_that_opens_it(stage: str) -> None:
    assert {"env", "envs"} <= set(STAGES[stage]["params"])


def test_paths_that_a_person_may_set_alone_are_tracked_by_their_value() -> None:
    assert {"data/${env}", "${data.path}", "${data.split_dir}"} <= set(STAGES["split"]["deps"])
    for stage in ("train", "evaluate"):
        assert {"${skill.seed}", "skills/seeds/${env}.md"} <= set(STAGES[stage]["deps"])
    for path in (PARAMS["data"]["path"], PARAMS["data"]["split_dir"], PARAMS["skill"]["seed"]):
        assert (ROOT / path).exists()


def test_training_never_depends_on_the_test_split() -> None:
    deps = STAGES["train"]["deps"]
    assert not [dep for dep in deps if dep in ("data/splits", "data/splits/test.jsonl")]


def test_a_refused_start_takes_no_output_away() -> None:
    """DVC deletes before a stage runs what is not `persist`."""
    kept = {
        path: options.get("persist", False)
        for stage in STAGES
        for path, options in outputs(stage).items()
    }
    assert {path for path, persists in kept.items() if not persists} <= {EVALUATION}


def test_the_report_depends_on_all_of_its_code() -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "reports").rglob("*")
        if path.is_file() and not {"out", "__pycache__"} & set(path.parts)
    }
    deps = tuple(STAGES["report"]["deps"])
    covered = {file for file in files if file in deps or file.rpartition("/")[0] in deps}
    assert files - covered <= {"skilltrail/report/__init__.py"}


# --- git ---


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, capture_output=True, encoding="utf-8", env=clean_env()
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def clean_env() -> dict[str, str]:
    """Return an environment in which neither an outer DVC nor an outer git is felt."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("DVC_", "GIT_")) and key != "PYTHONDONTWRITEBYTECODE"
    }
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    for who in ("AUTHOR", "COMMITTER"):
        kept |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org"}
    return kept


@pytest.mark.parametrize("stage", STAGES)
def test_ignore_rules_stand_in_the_repository_before_any_run(stage: str) -> None:
    """Case dvc-11: rules that DVC adds on the fly are rolled back when a later stage fails."""
    for path, options in outputs(stage).items():
        ignored = bool(git(ROOT, "check-ignore", "--no-index", path))
        assert ignored is options.get("cache", True), path


def test_no_ignore_file_stands_where_dvc_would_have_put_one() -> None:
    for path in ("data/.gitignore", "skills/.gitignore", "reports/out/.gitignore"):
        assert not (ROOT / path).exists()


def test_a_skill_has_the_same_bytes_wherever_it_is_checked_out(tmp_path: Path) -> None:
    """Case dvc-09: with autocrlf a skill would change its hash on the way."""
    source, clone = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    git(source, "init", "-q")
    shutil.copy(ROOT / ".gitattributes", source)
    (source / "skills").mkdir()
    text = "# Skill\n\n- a → b\n".encode()
    (source / "skills" / "best_skill.md").write_bytes(text)
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "a")
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "-q", "a", "b")
    assert (clone / "skills" / "best_skill.md").read_bytes() == text


# --- a clone ---

STUB = """
import pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"name": "{name}"}}\\n')
import skilltrail.runtime.shared
"""
FILES = {
    "split": [f"data/splits/{name}.jsonl" for name in ("train", "selection", "test")],
    "train": ["data/rollouts/train/0.jsonl", "skills/events.jsonl", "skills/best_skill.md"],
    "evaluate": ["data/rollouts/test/0.jsonl", "reports/out/evaluation.jsonl"],
    "report": [f"reports/out/{name}" for name in ("index.html", "metrics.json", "curve.tsv")],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed project with stub stages, in a folder with a blank in its name."""
    folder = tmp_path_factory.mktemp("pipe") / "my project"
    folder.mkdir()
    for name in ("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore", ".gitattributes"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("tmp", "cache")
    )
    for path, text in {
        "data/none/README.md": "none",
        "data/textqa/items.jsonl": "{}",
        "data/other/items.jsonl": "{}",
        "mine/train.jsonl": "{}",
        "skills/seeds/default": "default",
        "skills/seeds/textqa.md": "seed",
        "skills/seeds/other.md": "other",
        "schemas/x.json": "{}",
        "envs/README.md": "own",
        **{
            f"{dep}/x.py": ""
            for dep in STAGES["report"]["deps"]
            if dep.startswith("skilltrail/")
        },
        "skilltrail/__init__.py": "",
        "skilltrail/runtime/shared.py": "",
        "skilltrail/cli/commands/blame.py": "",
        **{f"stages/{name}.py": stub(name) for name in FILES},
    }.items():
        if "out/" not in path:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text + "\n", encoding="utf-8", newline="\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "template")
    return folder


def stub(stage: str) -> str:
    return STUB.replace("sys.argv[1:]", repr(FILES[stage]))


def stages_run(folder: Path, *command: str) -> list[str]:
    """Run dvc and return the stages that it ran."""
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *command],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env=clean_env(),
    )
    assert done.returncode == 0, done.stderr
    mark = "Running stage '"
    return [
        line[len(mark) :].split("'")[0]
        for line in done.stdout.splitlines()
        if line.startswith(mark)
    ]


def test_a_clone_runs_what_has_to_run_and_nothing_else(project: Path) -> None:
    assert stages_run(project, "repro") == list(STAGES)
    assert git(project, "status", "--porcelain", "-uall").split() == [
        "??", "dvc.lock", "??", "reports/out/curve.tsv", "??", "reports/out/metrics.json",
        "??", "skills/best_skill.md", "??", "skills/events.jsonl",
    ]  # fmt: skip
    assert list(project.rglob("__pycache__")), "the byte code that must not count is there"
    assert stages_run(project, "repro") == []

    (project / "skilltrail/cli/commands/blame.py").write_text("# changed\n", "utf-8")
    assert stages_run(project, "repro") == []
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "reference run")

    clone = project.parent / "clone"
    git(project.parent, "clone", "-q", project.name, "clone")
    assert stages_run(clone, "repro") == list(STAGES)
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("override", "tracked"),
    [
        ("env=other", "data/other"),
        ("data.split_dir=mine", "mine"),
    ],
)
def test_one_override_alone_is_enough_and_is_tracked(
    project: Path, override: str, tracked: str
) -> None:
    assert "split" in stages_run(project, "exp", "run", "-S", override)
    assert f"path: {tracked}\n" in (project / "dvc.lock").read_text("utf-8")
    git(project, "checkout", "-q", ".")


def test_dvc_sends_no_statistics_and_stages_nothing_by_itself() -> None:
    config = (ROOT / ".dvc" / "config").read_text("utf-8")
    assert "analytics = false" in config
    assert "autostage = false" in config


@pytest.mark.parametrize("stage", ["split", "train", "report"])
def test_what_stood_there_stays_when_a_stage_refuses_to_start(
    project: Path, stage: str
) -> None:
    stages_run(project, "repro")
    before = {path: (project / path).read_bytes() for path in FILES[stage]}
    page = project / "stages" / f"{stage}.py"
    page.write_text("raise SystemExit(2)\n", encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "repro"],
            cwd=project, capture_output=True, encoding="utf-8", env=clean_env(),
        )  # fmt: skip
    finally:
        page.write_text(stub(stage) + "\n", encoding="utf-8", newline="\n")
    assert done.returncode != 0
    assert f"failed to reproduce '{stage}'" in done.stderr
    assert {path: (project / path).read_bytes() for path in FILES[stage]} == before
