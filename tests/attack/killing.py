"""Small workspaces, experiments in them that are killed, and the way back that is printed.

`boundaries/sitecustomize.py` does the killing. Two kinds of workspace: one whose stages are a
page that writes what the real ones do, with real git and DVC; and a real one, whose target is a
scripted model behind a server on loopback.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import forked

from skilltrail.cli.repair.at_work import workers
from skilltrail.params.edit import set_params
from tests import verify_project
from tests.fault_server import Answer, Call, FaultServer

HERE = Path(__file__).parent
EXPERIMENT = ("exp", "run", "-n", "calm-lynx", "-S", "lr=8")
LOG = "skills/events.jsonl"
RESULTS = (
    "params.yaml", "dvc.lock", LOG, "skills/best_skill.md", "data/rollouts/train/0.jsonl",
    "reports/out/metrics.json", "reports/out/curve.tsv", "reports/out/evaluation.jsonl",
    "reports/out/index.html",
)  # fmt: skip
EDITED = "README.md"
FIX_ALL = "skilltrail doctor --fix --yes"
_COMMAND = re.compile(r"(skilltrail [a-z -]+)")
_OURS = re.compile(r"refs/exps/(exec/EXEC_HEAD|[0-9a-f]{2}/.*)")  # what a good end leaves too

STAGE = """
import pathlib, sys
lr = pathlib.Path("params.yaml").read_text().split("lr: ")[1].split()[0]
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(f"{name} of {lr}\\n" * 9)
    draft.rename(path)
"""
PIPELINE = """
stages:
  train:
    cmd: {python} stage.py skills/events.jsonl skills/best_skill.md data/rollouts/train/0.jsonl
    deps: [stage.py]
    params: [lr]
    outs:
      - data/rollouts/train: {{persist: true}}
      - skills/events.jsonl: {{cache: false, persist: true}}
      - skills/best_skill.md: {{cache: false, persist: true}}
  evaluate:
    cmd: {python} stage.py reports/out/evaluation.jsonl
    deps: [stage.py, skills/events.jsonl]
    outs: [reports/out/evaluation.jsonl]
  report:
    cmd: {python} stage.py reports/out/index.html reports/out/curve.tsv reports/out/metrics.json
    deps: [stage.py, skills/events.jsonl, reports/out/evaluation.jsonl]
    outs:
      - reports/out/index.html: {{persist: true}}
      - reports/out/curve.tsv: {{cache: false, persist: true}}
    metrics:
      - reports/out/metrics.json: {{cache: false, persist: true}}
"""
IGNORED = "/data\n/reports/out/index.html\n/reports/out/evaluation.jsonl\n/.skilltrail\n"


def typed(folder: Path, *words: str, **more: str) -> str:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("DVC_")}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    kept |= {"OPENAI_API_KEY": "none-is-asked", "DVC_NO_ANALYTICS": "1"} | more
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def small_workspace(folder: Path) -> None:
    """Write a workspace of small stages with a committed run."""
    folder.mkdir()
    texts = {"stage.py": STAGE, "params.yaml": "lr: 4\n", ".gitignore": IGNORED}
    texts |= {"dvc.yaml": PIPELINE.format(python=sys.executable), EDITED: "Read me.\n"}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    typed(folder, "git", "init", "-q", "-b", "main")
    typed(folder, "dvc", "init", "-q")
    typed(folder, "dvc", "config", "core.analytics", "false")
    _run(folder)


def says(call: Call) -> Answer:
    """Answer as the scripted target does; doctor's probe names no item."""
    probed = "number" not in json.dumps(call.body)
    return Answer("ok") if probed else verify_project.says(call)


@contextmanager
def real_workspace(folder: Path) -> Iterator[None]:
    """Write a workspace of real stages with a committed run; its model answers meanwhile."""
    with FaultServer(say=says) as server:
        folder.mkdir()
        typed(folder, "git", "init", "-q", "-b", "main")
        typed(folder, "skilltrail", "init")
        for split in verify_project.SPLITS:
            records = [
                {"id": f"{split}-w{n}", "question": f"Which tree is number {n} of {split}?",
                 "answer": f"an oak {n}"} for n in range(verify_project.ITEMS)
            ]  # fmt: skip
            text = "".join(f"{json.dumps(record)}\n" for record in records)
            (folder / f"data/qa/{split}.jsonl").write_text(text, "utf-8")
        (folder / "skills/seeds/qa.md").write_text(verify_project.SEED_SKILL, "utf-8")
        role = verify_project.role(server.url, "target")
        values = {"env": "qa", "epochs": 1, "batch_size": 3}
        set_params(
            folder / "params.yaml", values | {f"target.{key}": v for key, v in role.items()}
        )
        _run(folder)
        yield


def _run(folder: Path) -> None:
    """Commit the workspace and a run of it; then edit a file that no stage reads."""
    typed(folder, "dvc", "repro")
    typed(folder, "git", "add", ".")
    typed(folder, "git", "commit", "-q", "-m", "a run")
    with (folder / EDITED).open("a", encoding="utf-8") as file:
        file.write("\nA note that nobody has committed.\n")


@dataclass(frozen=True)
class State:
    """All that must be as it was."""

    branch: str
    status: str
    refs: str
    files: dict[str, bytes]

    @staticmethod
    def of(folder: Path) -> State:
        told = ("for-each-ref", "--format=%(refname)", "refs/exps", "refs/stash")
        refs = typed(folder, "git", *told).split()
        names = (*RESULTS, EDITED)
        return State(
            branch=typed(folder, "git", "rev-parse", "--abbrev-ref", "HEAD").strip(),
            status=typed(folder, "git", "status", "--porcelain"),
            refs=" ".join(ref for ref in refs if _OURS.fullmatch(ref) is None),
            files={n: (folder / n).read_bytes() for n in names if (folder / n).is_file()},
        )

    def difference(self, other: State) -> list[str]:
        """Return what differs, in words."""
        names = [n for n in self.files if self.files[n] != other.files.get(n)]
        own = [n for n in ("branch", "status", "refs") if getattr(self, n) != getattr(other, n)]
        return names + [f"{name} is {getattr(other, name)!r}" for name in own]


def experiment(folder: Path, journal: Path, at: int = 0, by: int = 0) -> list[str]:
    """Run the experiment, to be killed at boundary `at` (0: never) by a signal; return the
    boundaries that it came to."""
    journal.unlink(missing_ok=True)
    environ = {
        "BOUNDARIES": str(journal),
        "KILL_AT": str(at),
        "KILL_BY": str(by),
        "PYTHONPATH": f"{HERE / 'boundaries'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_API_KEY": "none-is-asked",
    }

    def before() -> None:
        os.environ.update(environ)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.path.insert(0, str(HERE / "boundaries"))
        sys.modules.pop("sitecustomize", None)
        __import__("sitecustomize").watch_dvc()

    ended = forked.dvc(folder, *EXPERIMENT, "--force", before=before)  # it may be done already
    assert at or ended.code == 0, ended.err[-3000:]
    return journal.read_text("utf-8").splitlines() if journal.exists() else []


def way_back(folder: Path) -> list[str]:
    """Type what doctor prints, then the step that takes everything back; return the former.

    A stage that outlived its dvc is waited for, as both commands say.
    """
    deadline = time.monotonic() + 180
    while workers(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    told = json.loads(forked.skilltrail(folder, "doctor", "--no-probe", "--json").out)
    found = (_COMMAND.search(check["remedy"]) for check in told if check["verdict"] != "ok")
    commands = {match[1].strip() for match in found if match is not None} - {NOT_OURS}
    if FIX_ALL in commands:
        commands -= {FIX_ALL.removesuffix(" --yes")}  # it does all that the shorter one does
    for command in commands:
        forked.skilltrail(folder, *command.split()[1:])
    ended = forked.skilltrail(folder, "back")
    assert ended.code == 0, (ended.out, ended.err)
    return sorted(commands)


NOT_OURS = "skilltrail init --upgrade"


def copy_of(folder: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, symlinks=True)
    return target
