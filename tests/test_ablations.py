"""The recipe of the ablations: a queue of experiments, and a page made from the runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ruamel.yaml import YAML
from test_arena import STAGE
from verify_project import says, write_project

from skilltrail.history.ask.arena import Arena, Interval
from skilltrail.params.model_options import STAGES
from tests.fault_server import FaultServer

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    place = ROOT / "recipes" / "ablations.py"
    spec = importlib.util.spec_from_file_location("ablations", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["ablations"] = made
    spec.loader.exec_module(made)
    return made


def project_of(folder: Path, url: str) -> None:
    """A project whose pipeline is one stage that trains and evaluates, under DVC."""
    write_project(folder, url)
    (folder / "run_all.py").write_text(STAGE, "utf-8")
    outs = [{"skills/events.jsonl": {"cache": False}}, "reports/out/evaluation.jsonl"]
    params = ["seed", "lr", "use_gate", "patience", "evaluate"]
    stage = {"cmd": "python run_all.py", "params": params, "outs": outs}
    tree = YAML(typ="safe").load((folder / "params.yaml").read_text("utf-8"))
    tree |= {"seed": 42, "lr": 4, "use_gate": True, "patience": 0, "evaluate": {"skills": []}}
    with (folder / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(tree, file)
    with (folder / "dvc.yaml").open("w", encoding="utf-8") as file:
        YAML().dump({"stages": {"train": stage}}, file)
    for words in ("dvc init -q", "git add .", "git commit -qm pipeline"):
        subprocess.run(words.split(), cwd=folder, check=True, env={**os.environ})


def test_the_rows_are_a_queue_and_a_second_time_makes_no_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: ModuleType,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = ["--only", "lr=1,gate off", "--seeds", "1", "--out", "page.md", "-S", "epochs=1"]
    with FaultServer(say=says) as server:
        project_of(tmp_path, server.url)
        assert recipe.main([*command, "--no-run"]) == 1
        assert "no run is there yet" in capsys.readouterr().err
        assert recipe.main(command) == 0
        page, calls = Path("page.md").read_text("utf-8"), len(server.calls)
        assert recipe.main(command) == 0
        assert len(server.calls) == calls
    assert Path("page.md").read_text("utf-8") == page
    rows = [line.split("|")[2].strip() for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["base", "lr=1", "gate off"]
    assert "6 items" in page
    assert "not run" not in page


def test_rows_that_the_paper_names_and_those_that_moved_run_with_all_seeds(
    recipe: ModuleType,
) -> None:
    def gain(mean: float) -> Interval:
        return Interval(mean, mean - 1, mean + 1, 10, 1)

    base, far, near = (recipe.Row("g", name, named=False) for name in ("base", "far", "near"))
    named = recipe.Row("g", "named")
    gains = {"base": gain(0.2), "far": gain(0.24), "near": gain(0.21), "named": gain(0.2)}
    found = recipe.wanted([base, far, near, named], Arena((), gains, {}))
    assert [row.name for row in found] == ["far", "named"]


def test_every_row_is_a_setting_that_params_know(recipe: ModuleType) -> None:
    from skilltrail.runtime.workspace import changes_of, params_with

    base = params_with(ROOT, changes_of(list(recipe.BASE)))
    for row in recipe.ROWS:
        changed = params_with(ROOT, changes_of([*recipe.BASE, *row.changes]))
        assert (changed != base) == bool(row.changes), row.name
    assert len({row.name for row in recipe.ROWS}) == len(recipe.ROWS)


def test_the_row_without_memory_tells_no_stage_what_earlier_steps_tried(
    recipe: ModuleType,
) -> None:
    from skilltrail.runtime.workspace import changes_of, params_with

    row = next(row for row in recipe.ROWS if row.group == "memory")
    params = params_with(ROOT, changes_of([*recipe.BASE, *row.changes]))
    assert set(params_with(ROOT, {}).optimizer.past_to) == set(STAGES)
    assert params.optimizer.past_to == ()


def test_a_row_that_rules_cannot_read_is_left_out_with_rules_and_said_so(
    recipe: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    command = ["--plan", "--only", "rejected-edit memory off"]
    assert recipe.main(command) == 0
    out, err = capsys.readouterr()
    assert "rejected-edit memory off" not in out
    assert "'rejected-edit memory off' needs a prompted optimizer" in err
    openai = ["optimizer.backend=openai", "optimizer.model=any"]
    assert recipe.main([*command, *(word for one in openai for word in ("-S", one))]) == 0
    out, err = capsys.readouterr()
    assert "rejected-edit memory off" in out
    assert err == ""
    page = recipe.page(Arena((), {}, {}), recipe.ROWS, "rules", "command", "about")
    assert "| memory | rejected-edit memory off | needs a prompted optimizer | | 0 | |" in page
    assert "| base | base | not run | | 0 | |" in page


def test_a_row_that_is_not_there_is_named(
    recipe: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        recipe.main(["--only", "lr=3"])
    assert "no row 'lr=3'; there are base, lr=1" in capsys.readouterr().err
