"""What DVC itself shows of a run: its plots and metrics, and the table of experiments."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_world import Project, make_project
from ruamel.yaml import YAML

from skilltrail.report.tables import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
PIPELINE: dict[str, Any] = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text("utf-8"))
PLOTS = {name: plot for entry in PIPELINE["plots"] for name, plot in entry.items()}
CURVE = "reports/out/curve.tsv"
FILES = ("dvc.yaml", "params.yaml", ".dvc/config", ".dvc/plots/verdicts.json")


def columns(plot: dict[str, Any]) -> list[str]:
    wanted = plot["y"][CURVE]
    return [wanted] if isinstance(wanted, str) else wanted


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A committed project as `dvc repro` leaves it, over the toy world."""
    if shutil.which("git") is None:
        pytest.skip("DVC needs git")
    made = make_project(tmp_path_factory.mktemp("views"), {"epochs": 2, "batch_size": 4})
    for name in FILES:
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, made.folder / name)
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for command in ("init -q -b main", "add -f .", "commit -qm a"):
        subprocess.run(["git", *who, *command.split()], cwd=made.folder, check=True)
    return made


def dvc(project: Project, *command: str) -> str:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_"))}
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *command],
        cwd=project.folder,
        env=environ,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plots_draw_columns_that_the_curve_has() -> None:
    assert set(PLOTS) == {"score", "edits", "verdicts"}
    assert all(set(columns(plot)) <= set(COLUMNS) for plot in PLOTS.values())


def test_every_way_a_step_ends_has_its_row_in_the_plot_of_verdicts() -> None:
    schema = json.loads((ROOT / "schemas/events/step.ended.schema.json").read_text("utf-8"))
    template = json.loads((ROOT / ".dvc/plots/verdicts.json").read_text("utf-8"))
    results = schema["$defs"]["StepResult"]["enum"]
    assert sorted(template["encoding"]["y"]["scale"]["domain"]) == sorted(results)


def test_dvc_plots_shows_every_step_of_every_curve(project: Project) -> None:
    shown = json.loads(dvc(project, "plots", "show", "--json"))
    assert "errors" not in shown
    steps = (project.folder / CURVE).read_text("utf-8").count("\n") - 1
    for name, plot in PLOTS.items():
        (drawn,) = shown["data"][name]
        points = drawn["content"]["data"]["values"]
        assert len(points) == steps * len(columns(plot))
        assert "DVC_METRIC" not in json.dumps(drawn["content"])


def test_dvc_metrics_has_the_columns_one_wants_and_tells_their_difference(
    project: Project,
) -> None:
    path = project.folder / "reports/out/metrics.json"
    numbers = json.loads(path.read_text("utf-8"))
    shown = json.loads(dvc(project, "metrics", "show", "--json"))
    assert shown[""]["data"]["reports/out/metrics.json"]["data"] == numbers
    path.write_text(json.dumps(numbers | {"calls": numbers["calls"] + 5}), "utf-8")
    changed = json.loads(dvc(project, "metrics", "diff", "--json"))
    path.write_text(json.dumps(numbers, indent=2, sort_keys=True) + "\n", "utf-8")
    diff = changed["reports/out/metrics.json"]
    assert {name: row["diff"] for name, row in diff.items()} == {"calls": 5}


def test_the_documented_table_of_experiments_has_its_columns(project: Project) -> None:
    text = (ROOT / "docs/report.md").read_text("utf-8")
    (keep,) = re.findall(r"dvc exp show --drop '\.\*' --keep '([^']+)'", text)
    shown = dvc(project, "exp", "show", "--csv", "--drop", ".*", "--keep", keep)
    header = next(csv.reader(shown.splitlines()))
    wanted = {"selection.best", "test.best", "test.gain", "accepted", "calls", "tokens"}
    assert {"Experiment", "skill_tokens", *wanted} <= set(header)
