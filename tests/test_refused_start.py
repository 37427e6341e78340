"""A start that is refused takes nothing away: real DVC, real stages, in a fresh workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrail.params.edit import set_params
from skilltrail.runtime.template import init_workspace

STOOD = {"skills/events.jsonl": "{}\n", "skills/best_skill.md": "# Best\n\n- be brief\n"}


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("DVC_")}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return subprocess.run(words, cwd=folder, env=kept, capture_output=True, encoding="utf-8")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed workspace with outputs of training, whose target needs a key."""
    folder = tmp_path_factory.mktemp("refused")
    typed(folder, "git", "init", "-q", "-b", "main")
    init_workspace(folder, None)
    for split in ("train", "selection", "test"):
        rows = [{"id": f"{split}{n}", "question": f"{n} in {split}?", "answer": f"an oak {n}"}
                for n in range(4)]  # fmt: skip
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"data/qa/{split}.jsonl").write_text(text, "utf-8")
    (folder / "skills/seeds/qa.md").write_text("# Seed\n", "utf-8")
    for name, text in STOOD.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    target = {"backend": "openai", "model": "m", "provider": "lab",
              "key_env": "NOBODY_SET_THIS", "base_url": "http://127.0.0.1:9/v1"}  # fmt: skip
    set_params(
        folder / "params.yaml", {"env": "qa"} | {f"target.{k}": v for k, v in target.items()}
    )
    typed(folder, "git", "add", ".")
    assert typed(folder, "git", "commit", "-q", "-m", "a workspace").returncode == 0
    return folder


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("repro",), "NOBODY_SET_THIS"),
        (("exp", "run", "-S", "seed=7"), "NOBODY_SET_THIS"),
        (("exp", "run", "-S", "lr=0"), "lr:"),
    ],
)
def test_after_a_refused_start_the_log_and_the_best_skill_are_there(
    workspace: Path, words: tuple[str, ...], why: str
) -> None:
    done = typed(workspace, "dvc", *words)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    stands = {name: (workspace / name).read_text("utf-8") for name in STOOD}
    assert stands == STOOD
    assert typed(workspace, "git", "rev-parse", "--abbrev-ref", "HEAD").stdout == "main\n"
    if "exp" in words:
        assert "HEAD is detached (experiment " in done.stderr
        assert "dvc puts it back on main when it ends" in done.stderr
        typed(workspace, "git", "restore", ".")
