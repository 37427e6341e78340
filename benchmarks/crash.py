"""Kill the pipeline at random moments, again and again, and compare with an undisturbed run.

    python -m benchmarks.crash --kills 20 --items 24

Two clones of this repository run `dvc repro` on a part of the default data: one undisturbed,
one killed (SIGKILL, the whole process group) at random moments and started again. Checked:
the final log, best skill and metrics are the same bytes; every fact of the undisturbed run was
made once; besides them the store holds at most what was in flight when a candidate was judged.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
COMPARED = ("skills/events.jsonl", "skills/best_skill.md", "reports/out/metrics.json")


def main() -> int:
    """Run the trial and return 0 when every check holds."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--items", type=int, default=24, help="items per split")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    try:
        whole, cut = clone(folder / "whole", asked.items), clone(folder / "cut", asked.items)
        started = time.monotonic()
        finish(whole)
        wall_s = time.monotonic() - started
        tell(f"undisturbed: {wall_s:.0f} s, {len(facts(whole))} facts")
        disturb(cut, asked.kills, wall_s, random.Random(asked.seed))
        finish(cut)
        return report(whole, cut)
    finally:
        shutil.rmtree(folder)


def clone(folder: Path, items: int) -> Path:
    """Clone this repository and make its run small."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    yaml = YAML()
    path = folder / "params.yaml"
    params = yaml.load(path.read_text(encoding="utf-8"))
    for split in ("train", "selection", "test"):
        params["data"]["limit"][split] = items
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yaml.dump(params, file)
    return folder


def environment() -> dict[str, str]:
    """Return this process's environment: its own Python first, and no stage's DVC_ROOT."""
    here = {name: value for name, value in os.environ.items() if name != "DVC_ROOT"}
    here["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{here['PATH']}"
    return here


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "--quiet"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(folder: Path) -> None:
    process = start(folder)
    _, error = process.communicate()
    if process.returncode:
        raise SystemExit(f"dvc repro failed in {folder}:\n{error.decode()}")


def disturb(folder: Path, kills: int, wall_s: float, dice: random.Random) -> None:
    """Start the pipeline and kill it at a random moment, `kills` times.

    The moments lie within the share of the undisturbed time that a run can still need.
    """
    for number in range(1, kills + 1):
        process = start(folder)
        time.sleep(dice.uniform(0.5, max(wall_s * 2 / kills, 6)))
        ended = process.poll() is not None
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        count = len(facts(folder))
        tell(f"kill {number}: {'it had ended' if ended else 'killed'}, {count} facts kept")


def facts(folder: Path) -> set[str]:
    """Return the keys of all rollouts in a clone's store."""
    path = folder / ".skilltrail/store.db"
    if not path.exists():
        return set()
    with sqlite3.connect(path) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM facts")}


def report(whole: Path, cut: Path) -> int:
    """Print and check how the two clones compare."""
    same = [(whole / name).read_bytes() == (cut / name).read_bytes() for name in COMPARED]
    for name, equal in zip(COMPARED, same, strict=True):
        tell(f"{name}: {'same bytes' if equal else 'DIFFERENT'}")
    one, two = facts(whole), facts(cut)
    tell(f"facts: {len(one)} undisturbed, {len(two)} killed, {len(one & two)} in both")
    twice = (cut / ".skilltrail/ops.jsonl").read_text(encoding="utf-8").count("fact.conflict")
    tell(f"calls that gave a second answer to one key: {twice}")
    return 0 if all(same) and not twice else 1


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
