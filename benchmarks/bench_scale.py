"""What a training costs as it grows: memory, time a step, report, exports, a second `repro`.

    python benchmarks/bench_scale.py [--rollouts 1000 10000 100000] [--json FILE]

Every size is a workspace of its own whose environment answers by arithmetic
(`bench_verify.AGENT`), so that rollouts cost what Skilltrail does and nothing else; the real
stages run in processes of their own. A run of N rollouts has N / 10 train items, five epochs
and N / 50 steps of 25 train and up to 25 selection rollouts. The last lines are the exponents
of CPU time against rollouts: 1 is a cost that stays the same for each.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from bench_verify import cpu_s, git, run, write  # noqa: E402

from skilltrail.store.exports import import_shards  # noqa: E402
from skilltrail.store.facts import FactStore  # noqa: E402

BATCH, EPOCHS = 25, 5
STEP = b'"type":"step.ended"'
COSTS = ("train", "restart", "import", "report", "verify")
MOST = {"peak MiB": 400.0, "report s": 30.0, "report MB": 10.0, "again s": 1.0}


def main() -> int:
    """Print a table of the sizes and the exponents; return 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rollouts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for rollouts in sorted(options.rollouts):
        with tempfile.TemporaryDirectory() as name:
            rows.append(measured(Path(name) / "project", rollouts))
        sys.stdout.write("  ".join(f"{k} {v:,.4g}" for k, v in rows[-1].items()) + "\n")
        sys.stdout.flush()
    for cost in COSTS:
        found = exponent([(row["rollouts"], row[f"{cost} cpu s"]) for row in rows])
        sys.stdout.write(f"CPU of {cost} grows with rollouts to the power {found:.2f}\n")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8", newline="\n")
    return int(any(rows[-1][name] > limit for name, limit in MOST.items()))


def measured(folder: Path, rollouts: int) -> dict[str, float]:
    """Return what each part of a run of about so many rollouts took."""
    write(folder, train=rollouts // 10, selection=BATCH, test=BATCH, skills=1, params={
        "epochs": EPOCHS, "batch_size": BATCH, "patience": 0, "use_gate": True,
    })  # fmt: skip
    run(folder, "-m", "stages.split")
    row, steps = trained(folder)
    for name, words in (
        ("restart", ("-m", "stages.train")),
        ("evaluate", ("-m", "stages.evaluate")),
        ("report", ("-m", "stages.report")),
        ("verify", ("-m", "skilltrail", "verify")),
    ):
        row |= timed(name, folder, words)
    row |= imported(folder)
    row["report MB"] = (folder / "reports/out/index.html").stat().st_size / 1e6
    run(folder, "-m", "dvc", "commit", "--force", "--quiet")
    row["again s"] = again(folder) - again(two_files(folder.parent))
    log = (folder / "skills/events.jsonl").read_bytes().splitlines()
    scored = [json.loads(line)["data"] for line in log if b'"type":"rollouts.scored"' in line]
    made = float(sum(len(one["items"]) for one in scored))
    return {"rollouts": made, "events": float(len(log)), "steps": float(steps), **row}


def trained(folder: Path) -> tuple[dict[str, float], int]:
    """Train; return time, peak of memory and how a late step compares, and the steps."""
    before, began = cpu_s(), time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "stages.train"], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    seen: list[tuple[float, int]] = []
    peak = [0]

    def watch() -> None:
        one = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                peak[0] = max(peak[0], one.memory_info().rss)
            except psutil.NoSuchProcess:
                return
            logs = list((folder / ".skilltrail/runs").glob("*/events.jsonl"))
            seen.append((time.monotonic(), sum(log.read_bytes().count(STEP) for log in logs)))
            time.sleep(0.5)

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, said = process.communicate()
    watcher.join()
    if process.returncode:
        raise RuntimeError(said.decode()[-3000:])
    steps = (folder / "skills/events.jsonl").read_bytes().count(STEP)
    early, late = pace(seen, 0, steps // 3), pace(seen, 2 * steps // 3, steps)
    return {
        "train s": time.monotonic() - began,
        "train cpu s": cpu_s() - before,
        "peak MiB": peak[0] / 2**20,
        "late over early, s a step": late / early if early else math.nan,
    }, steps


def pace(seen: Sequence[tuple[float, int]], start: int, end: int) -> float:
    """Return the seconds a step took between two steps, as far as they were seen."""
    inside = [one for one in seen if start <= one[1] < end and one[1]]
    if len(inside) < 2 or inside[0][1] == inside[-1][1]:
        return math.nan
    return (inside[-1][0] - inside[0][0]) / (inside[-1][1] - inside[0][1])


def timed(name: str, folder: Path, words: Sequence[str]) -> dict[str, float]:
    before, began = cpu_s(), time.monotonic()
    run(folder, *words, fine=(0, 3))
    return {f"{name} s": time.monotonic() - began, f"{name} cpu s": cpu_s() - before}


def imported(folder: Path) -> dict[str, float]:
    """Import the exported rollouts into an empty store, as a second clone does."""
    began, busy = time.monotonic(), time.process_time()
    with FactStore.open(folder.parent / "second") as store:
        import_shards(store, folder / "data/rollouts/train")
    return {"import s": time.monotonic() - began, "import cpu s": time.process_time() - busy}


def again(folder: Path) -> float:
    """Return the best of three times of a `dvc repro` that has nothing to do."""
    took = []
    for _ in range(3):
        began = time.monotonic()
        run(folder, "-m", "dvc", "repro", "--quiet")
        took.append(time.monotonic() - began)
    return min(took)


def two_files(parent: Path) -> Path:
    """Return a pipeline of DVC's own with two files and one stage."""
    folder = parent / "two files"
    folder.mkdir()
    git(folder, "init", "-q")
    run(folder, "-m", "dvc", "init", "--quiet")
    (folder / "in").write_text("1\n", "utf-8")
    text = "stages:\n  one:\n    cmd: cp in out\n    deps: [in]\n    outs: [out]\n"
    (folder / "dvc.yaml").write_text(text, "utf-8")
    run(folder, "-m", "dvc", "repro", "--quiet")
    return folder


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """Return the slope of log cost on log size by least squares."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    if len(logs) < 2:
        return math.nan
    mx, my = (sum(p[i] for p in logs) / len(logs) for i in (0, 1))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


if __name__ == "__main__":
    sys.exit(main())
