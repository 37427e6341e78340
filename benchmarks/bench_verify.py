"""What `skilltrail verify` costs, by the number of rollouts of a run.

    python benchmarks/bench_verify.py [--rollouts 100000]

A project is made whose own environment answers by arithmetic, so that its rollouts are recorded
without a model; the real stages run, and then the real command, whose time is printed, by the
clock and of the processor (on a busy machine the second says more). Nearly all rollouts are of
the evaluation, of fifty skills.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
WANTED_S, SKILLS = 120.0, 50
# What makes an environment that asks nobody out of the template.
AGENT = '''
    async def rollout(self, item, skill, target):
        """Answer by arithmetic on the item and the skill's length."""
        from hashlib import sha256
        from skilltrail.core.trajectory import Turn
        known = sha256(item.id.encode()).digest()[0] < 80 + 9 * skill.count("- ")
        said = item.gold[0] if known else "no"
        return Trajectory((Turn(item.input["question"], said, "stop"),), said)

    def score('''


def main() -> int:
    """Print the time, and return 1 when it is more than wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000)
    rollouts = parser.parse_args().rollouts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        write(folder, train=60, selection=60, test=max(20, rollouts // SKILLS), skills=SKILLS,
              params={"epochs": 1, "batch_size": 60, "use_gate": False})  # fmt: skip
        for stage in ("split", "train", "evaluate", "report"):
            run(folder, "-m", f"stages.{stage}")
        began, busy = time.monotonic(), cpu_s()
        done = run(folder, "-m", "skilltrail", "verify", "--json", fine=(0, 3))
        took, busy = time.monotonic() - began, cpu_s() - busy
    rows = {r["rule"]: r for one in json.loads(done)["levels"] for r in one["rules"]}
    found = rows["rollouts"]
    sys.stdout.write(
        f"{found['checked']} of {found['of']} rollouts checked, each scored and told again: "
        f"{took:.1f} s, {busy:.1f} s of one processor (wanted: {WANTED_S:.0f} s for 100000)\n"
    )
    return int(min(took, busy) > WANTED_S * max(1.0, rollouts / 100_000))


def cpu_s() -> float:
    """Return the processor time of processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write(
    folder: Path, *, train: int, selection: int, test: int, skills: int, params: dict[str, Any]
) -> None:
    """Write a workspace with its own environment, splits of these sizes and skills, in git."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    run(folder, "-m", "skilltrail", "init")
    run(folder, "-m", "skilltrail", "new-env", "sums")
    source = folder / "envs/sums/env.py"
    text = source.read_text("utf-8")
    assert "\n    def score(" in text
    source.write_text(text.replace("\n    def score(", AGENT, 1), "utf-8")
    data = folder / "data/many"
    data.mkdir()
    for split, n in (("train", train), ("selection", selection), ("test", test)):
        rows = [
            {
                "id": f"{split}-{i}",
                "question": f"{words(i)} {split}: {i} plus 7?",
                "answers": [str(i + 7)],
            }
            for i in range(n)
        ]
        (data / f"{split}.jsonl").write_text(
            "".join(f"{json.dumps(row)}\n" for row in rows), "utf-8"
        )
    names = [f"skills/seeds/made-{k}.md" for k in range(skills)]
    for k, name in enumerate(names):
        (folder / name).write_text("# Sums\n" + "- add\n" * k, "utf-8")
    path = folder / "params.yaml"
    asked: Any = YAML().load(path.read_text("utf-8"))
    asked |= {"env": "sums", **params}
    asked["data"]["split_dir"] = "data/many"
    asked["evaluate"]["skills"] = names
    with path.open("w", encoding="utf-8", newline="\n") as file:
        YAML().dump(asked, file)
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-qm", "begin")


def words(number: int) -> str:
    """Return four of a thousand words, other ones for each number."""
    digest = sha256(str(number).encode()).digest()
    return " ".join(f"w{int.from_bytes(digest[at : at + 2], 'big') % 1000}" for at in range(4))


def git(folder: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=folder, check=True)


def run(folder: Path, *words: str, fine: tuple[int, ...] = (0,)) -> str:
    """Run Python in the workspace and return what it printed."""
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, encoding="utf-8"
    )
    if done.returncode not in fine:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
